"""Avro files back as record batches: blocks by us, records by fastavro, columns by Arrow."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from formats import columns, reading
from formats.avro import container as avro_container
from formats.avro import types as avro_types
from formats.avro.codecs import AvroCodec, AvroCodecName
from formats.avro.container import Header
from formats.avro.items import check_items, damaged
from formats.avro.layout import require_fastavro, resolved
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.sizes import MAX_SIZE
from formats.splitting import Split

_SCHEMA: Final = "avro.schema"
_CODEC: Final = "avro.codec"
_MOST_EMPTY: Final = 1 << 24  # records of no bytes in one block; more are a bomb
_OF_A_FIELD: Final = 64  # bytes of memory, at least, while a record is Python's; in the file it may have none


def open_reader(
    file: BinaryIO, *, schema: pa.Schema | None, split: Split | None = None
) -> pa.RecordBatchReader:
    """See ``ReadableFormat.open_reader`` and ``open_split``; any Avro file of records, whoever wrote it."""
    require_fastavro()  # who asks with no file at all learns it, too
    guard = guard_of(file)
    with guard.naming():
        file.seek(0)
        records = _records(avro_container.read_header(file), guard)
        begin = file.tell()

    def batches() -> Iterator[pa.RecordBatch]:
        file.seek(begin)
        if split is None:
            yield from records.batches(file)
        elif avro_container.seek_block(file, records.header.marker, split):
            yield from records.batches(file, split.end)

    return reading.reader(records.schema, batches, wanted=schema, guard=guard)


def _records(header: Header, guard: Guard) -> _Records:
    try:
        avro = json.loads(header.metadata[_SCHEMA])
    except (KeyError, ValueError, RecursionError) as error:
        raise FormatError("the header of the Avro file has no schema", kind="value") from error
    whole = resolved(avro, kind="value")
    return _Records(
        header=header,
        avro=avro_types.without_times(avro),
        whole=whole,
        schema=avro_types.arrow_schema(whole),
        guard=guard,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """How the records of one file are read."""

    header: Header
    avro: Any
    whole: Any  # without names of types
    schema: pa.Schema
    guard: Guard

    def batches(self, file: BinaryIO, end: int = MAX_SIZE) -> Iterator[pa.RecordBatch]:
        """Those of the blocks from here on that begin before ``end``."""
        name = self.header.metadata.get(_CODEC, b"null").decode(errors="replace")
        codec = AvroCodec(name=cast("AvroCodecName", name))
        for block in avro_container.read_blocks(file, self.header.marker, self.guard, end):
            # One name for all, so that a block is there once before there are records of it.
            data = codec.expand(block.data, guard=self.guard)
            if block.count > max(len(data), _MOST_EMPTY):
                raise FormatError("a block claims more records than it can hold", kind="value")
            check_items(self.whole, block.count, data, self.guard)
            size, count = len(data), block.count
            del block
            if count == 1:  # which may be large, and fastavro would copy it
                record = self._single(data)
                del data
                yield self._batch([record])
                continue
            data = self._framed(count, data)
            yield from self._batches(count, size, _decoded(io.BytesIO(data)))

    def _single(self, data: bytes) -> Any:
        """The only record of a block."""
        from fastavro import schemaless_reader

        with _fitting():
            return schemaless_reader(io.BytesIO(data), self.avro, None)

    def _framed(self, count: int, data: bytes) -> bytes:
        """The records of an expanded block as a file of its own without codec."""
        metadata = {_SCHEMA: avro_container.schema_bytes(self.avro)}
        header = Header(metadata=metadata, marker=self.header.marker).to_bytes()
        return b"".join((header, *avro_container.block(count, data, marker=self.header.marker)))

    def _batches(self, count: int, size: int, records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        """The ``count`` records of a block of ``size`` bytes."""
        fields = sum(1 for _ in columns.walk(self.schema))
        rows = reading.rows_per_batch(max(size, _OF_A_FIELD * fields * count), count)
        for start in range(0, count, rows):
            yield self._batch(list(islice(records, min(rows, count - start))))

    def _batch(self, records: list[Any]) -> pa.RecordBatch:
        found: Any = pa.array(records, pa.struct(list(self.schema)))
        return pa.RecordBatch.from_struct_array(found)


def _decoded(file: io.BytesIO) -> Iterator[Any]:
    from fastavro import reader

    with _fitting():
        yield from reader(file)


@contextmanager
def _fitting() -> Iterator[None]:
    try:
        yield
    # fastavro says what is wrong in many classes, IndexError and UnicodeDecodeError among them; none
    # of them is passed over.
    except Exception as error:
        raise damaged() from error
