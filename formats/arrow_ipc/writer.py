"""Arrow's own file format: what Arrow, DuckDB and polars map into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import pyarrow as pa

from formats import columns, spark_only_types, splitting
from formats.api import BulkWriter, BulkWriterFactory
from formats.arrow_ipc import reader as arrow_reader
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.compressed.codec_names import codec_name
from formats.errors import FormatError
from formats.guarded_output import ArrowOutput
from formats.sizes import parse_size
from formats.splitting import Split
from formats.text import zones

if TYPE_CHECKING:
    from formats.api import BinaryOutput

IpcCompression = Literal["zstd", "lz4", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowWriterFactory(BulkWriterFactory):
    """Arrow IPC files ("Feather version 2"), with every type that Arrow has.

    Dictionaries are written as the values they stand for: a file can hold one dictionary a column.

    Attributes:
        compression: of the buffers; ``"none"`` for files that readers map into memory.
        batch_size: a record batch ends when it takes this much memory; bytes, or text such as ``"16MiB"``.

    Raises:
        FormatError: kind ``"option"``; an unknown codec or a size that is none.
    """

    compression: IpcCompression = "zstd"
    batch_size: int | str = "16MiB"

    extension = ".arrow"

    def __post_init__(self) -> None:
        """Check the options and turn sizes into bytes."""
        object.__setattr__(self, "batch_size", parse_size(self.batch_size, name="batch_size"))
        object.__setattr__(self, "compression", codec_name(self.compression, IpcCompression, what="Arrow"))

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return ArrowBulkWriter(output, schema, self)

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        return f"arrow compression={self.compression} batch={self.batch_size}"

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``; a record batch of the file is in memory at a time."""
        return arrow_reader.open_reader(file, schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``BulkWriterFactory.splits``: between record batches; reads the footer."""
        return arrow_reader.splits(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_split``; any ranges of bytes. Reads footer and record batches."""
        splitting.check(file, split)
        return arrow_reader.open_reader(file, schema=schema, split=split)

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``."""
        if not len(schema):
            raise FormatError("an Arrow file needs at least one column")
        spark_only_types.refuse(schema)


class ArrowBulkWriter(BufferedBulkWriter):
    """Collects slices and writes them as record batches.

    Args:
        output: takes the file; not touched before the first record batch.
        schema: of every batch.
        factory: the options.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: ArrowWriterFactory) -> None:
        super().__init__(schema, Limits(size=cast("int", factory.batch_size)))
        self._output = ArrowOutput(output)
        self._codec = None if factory.compression == "none" else factory.compression
        metadata: Any = schema.metadata
        self._plain = pa.schema([columns.nullable(field, _plain_type) for field in schema], metadata)
        self._writer: Any = None

    def _begin(self) -> None:
        with self._output.asked() as stream:
            options = pa.ipc.IpcWriteOptions(compression=self._codec)
            self._writer = pa.ipc.new_file(stream, self._plain, options=options)

    def _put(self, table: pa.Table) -> None:
        with self._output.asked() as stream:
            self._writer.write_table(columns.as_schema(table, self._plain).combine_chunks())
            stream.flush()

    def _end(self) -> None:
        with self._output.asked() as stream:
            self._writer.close()
            stream.detach()


def _plain_type(kind: Any) -> Any:
    return zones.with_known_zone(columns.without_dictionary(kind))
