"""Avro object container files: as a row format that can be continued, and as a bulk format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa

from formats import columns, evolution, splitting, type_promotion
from formats.api import BaseEncoder, BulkWriter, BulkWriterFactory
from formats.arguments import check_pairs
from formats.arrow import Column
from formats.avro import container as avro_container
from formats.avro import reader as avro_reader
from formats.avro.codecs import AvroCodec, AvroCodecName
from formats.avro.container import Header
from formats.avro.layout import AvroLayout
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.errors import FormatError
from formats.sizes import parse_size
from formats.splitting import Split
from formats.sync_marker import new_marker
from formats.text import lines

if TYPE_CHECKING:
    from formats.api import BinaryOutput, Buffer

_COLLECTED: Final = 1 << 22  # bytes of Arrow data that a bulk writer waits for before it encodes them


@dataclass(frozen=True, kw_only=True)
class AvroOptions:
    """What the row format and the bulk format have in common.

    Attributes:
        compression: of the blocks; every codec of Avro's specification.
        compression_level: of the codec; ``None`` for its default.
        block_size: a block ends with the record that takes it to this size, before compression;
            bytes, or text such as ``"256KiB"``.
        metadata: key-value pairs for the header; keys that begin with ``avro.`` are Avro's own.
        schema: an Avro schema, as JSON or as what JSON stands for; columns are matched by name and must
            fit. ``None`` derives one from the columns, in which everything may be null.

    Raises:
        FormatError: kind ``"option"``; an unknown codec or level, a size that is none, or no schema.
    """

    compression: AvroCodecName = "snappy"
    compression_level: int | None = None
    block_size: int | str = "256KiB"
    metadata: Mapping[str, str] | None = None
    schema: str | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check the options, turn sizes into bytes and a schema into text."""
        object.__setattr__(self, "block_size", parse_size(self.block_size, name="block_size"))
        object.__setattr__(self, "compression", self._codec().name)
        check_pairs(self.metadata, name="metadata")
        if any(key.startswith("avro.") for key in self.metadata or {}):
            raise FormatError("metadata must have no key like 'avro.…'", kind="option")
        if self.schema is not None:
            object.__setattr__(self, "schema", _schema_text(self.schema))
            self._layout(pa.schema([]))

    def signature(self) -> str:
        """See ``Encoder.signature`` and ``BulkWriterFactory.signature``."""
        pairs = sorted((self.metadata or {}).items())
        return (
            f"avro compression={self.compression} level={self.compression_level}"
            f" block={self.block_size} metadata={pairs!r} schema={self.schema}"
        )

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``Encoder.check_schema`` and ``BulkWriterFactory.check_schema``."""
        if not len(schema):
            raise FormatError("Avro needs at least one column")
        self._layout(schema).check(schema)

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Encoder.check_continues``: what readers of Avro make of old files with the newest schema.

        With a schema of your own all files have that one, whatever the columns were.
        """
        evolution.check_continues(old, new)
        if self.schema is None:
            before, after = (AvroLayout.derived(schema).arrow for schema in (old, new))
            type_promotion.check_avro(before, after)

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``Encoder.open_reader``; any Avro file of records, whoever wrote it. Needs fastavro."""
        return avro_reader.open_reader(file, schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``Encoder.splits``: anywhere, without a look at the file."""
        return splitting.of_bytes(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``Encoder.open_split``; any ranges of bytes.

        Reads the header, looks for the sync marker, and goes on to the end of the last block that begins in
        the split.
        """
        splitting.check(file, split)
        return avro_reader.open_reader(file, schema=schema, split=split)

    def file_header(self, schema: pa.Schema, marker: bytes) -> bytes:
        """The first bytes of a file of records of ``schema``."""
        own = {name: value.encode() for name, value in (self.metadata or {}).items()}
        text = avro_container.schema_bytes(self._layout(schema).header)
        metadata = {**own, "avro.codec": self.compression.encode(), "avro.schema": text}
        return Header(metadata=metadata, marker=marker).to_bytes()

    def blocks(self, batch: pa.RecordBatch, marker: bytes) -> bytes:
        """The records of ``batch`` as blocks of one file."""
        layout = self._layout(batch.schema)
        pieces: list[Buffer] = []
        for records in lines.in_pieces(batch, layout.records):
            for count, data in _cut(records, cast("int", self.block_size)):
                pieces += avro_container.block(count, self._codec().compress(data), marker=marker)
        return b"".join(memoryview(piece) for piece in pieces)

    def _layout(self, schema: pa.Schema) -> AvroLayout:
        return AvroLayout.derived(schema) if self.schema is None else AvroLayout.given(str(self.schema))

    def _codec(self) -> AvroCodec:
        return AvroCodec(name=self.compression, level=self.compression_level)


@dataclass(frozen=True, kw_only=True)
class AvroEncoder(AvroOptions, BaseEncoder):
    """Avro as a row format: every slice of records becomes blocks of its own.

    ``encode(a + b)`` and ``encode(a) + encode(b)`` are the same records, in other blocks.

    Attributes:
        marker: of the part file; every part gets one of its own when it is started.
        make_marker: makes markers; anything that can be pickled.
    """

    marker: bytes = b""
    make_marker: Callable[[], bytes] = field(default=new_marker, repr=False)

    extension = ".avro"

    def start_part(self) -> BaseEncoder:
        """See ``Encoder.start_part``."""
        return replace(self, marker=self.make_marker())

    def carry_over(self) -> bytes:
        """See ``Encoder.carry_over``; the marker."""
        return self.marker

    def resume_part(self, carry_over: bytes) -> BaseEncoder:
        """See ``Encoder.resume_part``."""
        return replace(self, marker=carry_over)

    def header(self, schema: pa.Schema) -> bytes:
        """See ``Encoder.header``."""
        return self.file_header(schema, self.marker)

    def encode(self, batch: pa.RecordBatch) -> Buffer:
        """See ``Encoder.encode``. Only for the encoder of a part."""
        return self.blocks(batch, self.marker)


@dataclass(frozen=True, kw_only=True)
class AvroWriterFactory(AvroOptions, BulkWriterFactory):
    """Avro as a bulk format: blocks are filled across slices, so that files are smaller."""

    make_marker: Callable[[], bytes] = field(default=new_marker, repr=False)

    extension = ".avro"

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return AvroBulkWriter(output, schema, self)


class AvroBulkWriter(BufferedBulkWriter):
    """Collects slices and writes them as blocks.

    Args:
        output: takes the file; not touched before the first blocks.
        schema: of every batch.
        factory: the options.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: AvroWriterFactory) -> None:
        super().__init__(schema, Limits(size=max(_COLLECTED, 4 * cast("int", factory.block_size))))
        self._output = output
        self._schema = schema
        self._factory = factory
        self._marker = b""

    def _put(self, table: pa.Table) -> None:
        for batch in table.combine_chunks().to_batches():
            self._output.write(self._factory.blocks(batch, self._marker))

    def _begin(self) -> None:
        self._marker = self._factory.make_marker()
        self._output.write(self._factory.file_header(self._schema, self._marker))


def _cut(records: Column, size: int) -> Iterator[tuple[int, memoryview]]:
    """Number and bytes of the records of each block."""
    starts = columns.offsets(records)
    data = memoryview(columns.data(records))
    first = 0
    while first < len(records):
        full = int(np.searchsorted(starts, starts[first] + size))
        end = min(max(full, first + 1), len(records))
        yield end - first, data[starts[first] - starts[0] : starts[end] - starts[0]]
        first = end


def _schema_text(schema: object) -> str:
    try:
        parsed = json.loads(schema) if isinstance(schema, str) else schema
        return avro_container.schema_bytes(parsed).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError("schema must be an Avro schema in JSON", kind="option") from error
