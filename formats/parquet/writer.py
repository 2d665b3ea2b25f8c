"""Parquet through pyarrow: little memory for a writer that waits, one row group from many slices."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq

from formats import columns, evolution, spark_only_types, splitting, type_promotion
from formats.api import BulkWriter, BulkWriterFactory
from formats.arguments import check_pairs, instance_of
from formats.arrow import Field
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.compressed.codec_names import codec_name
from formats.errors import FormatError
from formats.guarded_output import ArrowOutput
from formats.parquet import reader as parquet_reader
from formats.parquet.encryption import ParquetEncryption
from formats.parquet.layout import ParquetLayout
from formats.sizes import parse_size
from formats.splitting import Split
from formats.text import zones

if TYPE_CHECKING:
    from formats.api import BinaryOutput

Compression = Literal["snappy", "zstd", "gzip", "lz4", "brotli", "none"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParquetWriterFactory(BulkWriterFactory):
    """Parquet files that Spark, DuckDB, Trino and pyarrow read alike.

    Timestamps are written in microseconds, as instants if they have a zone and as local times if not.

    Attributes:
        compression: of the pages.
        compression_level: of the codec; ``None`` for its default.
        row_group_rows: most records of a row group.
        row_group_size: a row group ends when its records take this much memory in Arrow's form;
            bytes, or text such as ``"64MiB"``.
        metadata: key-value pairs for the footer.
        layout: dictionaries, statistics, pages, Bloom filters, sort order, INT96.
        encryption: keys of the footer and of columns; ``None`` for plain files.

    Raises:
        FormatError: kind ``"option"``; an unknown codec, a level the codec does not have, or a limit
            that is not positive.
    """

    compression: Compression = "snappy"
    compression_level: int | None = None
    row_group_rows: int = 1_048_576
    row_group_size: int | str = "64MiB"
    metadata: Mapping[str, str] | None = None
    layout: ParquetLayout = field(default_factory=ParquetLayout)
    encryption: ParquetEncryption | None = None

    extension = ".parquet"

    def __post_init__(self) -> None:
        """Check the options and turn sizes into bytes."""
        object.__setattr__(self, "row_group_size", parse_size(self.row_group_size, name="row_group_size"))
        rows: object = self.row_group_rows
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise FormatError("row_group_rows must be a positive number", kind="option")
        object.__setattr__(self, "compression", codec_name(self.compression, Compression, what="Parquet"))
        _check_level(self.compression, self.compression_level)
        check_pairs(self.metadata, name="metadata")
        instance_of(self.layout, ParquetLayout, name="layout")
        if self.encryption is not None:
            instance_of(self.encryption, ParquetEncryption, name="encryption")

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return ParquetBulkWriter(output, schema, self)

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a file for records of ``schema``: all columns may be null, as in Spark's files.

        Spark sends nulls in fields that are never null inside of structs that are, and Arrow's
        writer refuses those.
        """
        own = {key.encode(): value.encode() for key, value in (self.metadata or {}).items()}
        metadata: Any = {**(schema.metadata or {}), **own} or None
        return pa.schema([columns.nullable(field, zones.with_known_zone) for field in schema], metadata)

    def open(self, stream: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
        """The writer of pyarrow, which writes the magic bytes at once and never closes ``stream``.

        Columns that come dictionary-encoded are written as they are, and the file says the type of
        their values: it is the file that plain columns would give.

        Raises:
            FormatError: kind ``"option"``; this pyarrow is too old for something in the layout.
        """
        plain = columns.without_dictionaries(schema)
        arguments, keys = self._arguments(schema)
        try:
            writer: Any = pq.ParquetWriter(stream, schema, store_schema=plain.equals(schema), **arguments)
        except TypeError as error:
            raise FormatError(
                f"pyarrow {pa.__version__} is too old for this layout", kind="option"
            ) from error
        writer.keys = keys  # they must live as long as the writer
        if not plain.equals(schema):
            # What the writer itself would store if the schema were the plain one.
            serialized = base64.b64encode(plain.serialize().to_pybytes())
            pairs: Any = {**(schema.metadata or {}), b"ARROW:schema": serialized}
            writer.add_key_value_metadata(pairs)
        opened: pq.ParquetWriter = writer
        return opened

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        pairs = sorted((self.metadata or {}).items())
        return (
            f"parquet compression={self.compression} level={self.compression_level}"
            f" rows={self.row_group_rows} size={self.row_group_size} metadata={pairs!r}"
            f" {self.layout} encryption={self.encryption and self.encryption.signature()}"
        )

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``; any Parquet file, whoever wrote it."""
        return parquet_reader.open_reader(file, schema=schema, encryption=self.encryption)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``BulkWriterFactory.splits``: between row groups; reads the footer, with its keys."""
        return parquet_reader.splits(file, target=target, encryption=self.encryption)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_split``; any ranges of bytes. Reads the footer and row groups."""
        splitting.check(file, split)
        return parquet_reader.open_reader(file, schema=schema, encryption=self.encryption, split=split)

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_continues``: what Spark's reader of Parquet takes."""
        evolution.check_continues(old, new)
        type_promotion.check_parquet(old, new)

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``: whatever pyarrow can map to Parquet."""
        if not len(schema):
            raise FormatError("Parquet needs at least one column")
        self.layout.check_schema(schema)
        spark_only_types.refuse(schema)
        refused = {path: column for path, column in columns.walk(schema) if not _is_writable(column)}
        if refused:
            # A struct with a refused field is refused itself; the innermost comes last on its path.
            path = next(
                path
                for path in refused
                if not any(other != path and _inside(other, path) for other in refused)
            )
            raise FormatError(
                f"column {path!r} of type {refused[path].type} cannot be written to Parquet: cast or drop it"
            )

    def _arguments(self, schema: pa.Schema) -> tuple[dict[str, Any], object]:
        arguments = self.layout.arguments(schema)
        arguments |= {"compression": self.compression, "compression_level": self.compression_level}
        if self.encryption is None:
            return arguments, None
        properties, keys = self.encryption.for_writing()
        return {**arguments, "encryption_properties": properties}, keys


class ParquetBulkWriter(BufferedBulkWriter):
    """Collects slices and writes them as one row group when a limit of the factory is reached.

    Args:
        output: takes the file; not touched before the first row group.
        schema: of every batch.
        factory: limits and properties.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: ParquetWriterFactory) -> None:
        super().__init__(
            schema, Limits(rows=factory.row_group_rows, size=cast("int", factory.row_group_size))
        )
        self._output = ArrowOutput(output)
        self._factory = factory
        self._writer: Any = None

    def _begin(self) -> None:
        with self._output.asked() as stream:
            self._writer = self._factory.open(stream, self._factory.file_schema(self._schema))

    def _put(self, table: pa.Table) -> None:
        with self._output.asked() as stream:
            # The writer gives up on a dictionary that changes within a row group.
            records = columns.as_schema(table, self._writer.schema).unify_dictionaries()
            self._writer.write_table(records, row_group_size=table.num_rows)
            stream.flush()

    def _end(self) -> None:
        with self._output.asked() as stream:
            self._writer.close()
            stream.detach()


def _check_level(name: Compression, level: object) -> None:
    if level is None:
        return
    codec: Any = None if name in {"none", "snappy", "lz4"} else pa.Codec
    if isinstance(level, bool) or not isinstance(level, int) or codec is None:
        raise FormatError(f"compression {name} takes no level {level!r}: leave it out", kind="option")
    lowest, highest = codec.minimum_compression_level(name), codec.maximum_compression_level(name)
    if not lowest <= level <= highest:
        raise FormatError(f"compression_level of {name} must be from {lowest} to {highest}", kind="option")


def _is_writable(field: Field) -> bool:
    """Whether pyarrow maps the type to Parquet; asked of pyarrow itself, whose list grows."""
    try:
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field.with_name("column")])).close()
    except (pa.ArrowException, NotImplementedError):
        return False
    return True


def _inside(path: str, outer: str) -> bool:
    return path.startswith((f"{outer}.", f"{outer}["))
