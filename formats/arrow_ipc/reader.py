"""Arrow IPC files back as record batches.

Where record batches begin stands in the footer, a table of flatbuffers that pyarrow checks and keeps to
itself. The table is found from its first four bytes; its fields by 16-bit offsets, which stand where it
says and are 0 for fields that are left out.
Source: Arrow's ``File.fbs``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from formats import columns, reading, splitting
from formats.read_limits import guard_of
from formats.splitting import Split, Units

_END: Final = 10  # bytes behind the footer: its length and "ARROW1"
_BATCHES: Final = 3  # field of the footer
_WORDS: Final = 3  # of eight bytes in a block: its offset, the length of its metadata, that of its body


def open_reader(
    file: BinaryIO, *, schema: pa.Schema | None, split: Split | None = None
) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader`` and, for a split, ``BulkWriterFactory.open_split``."""
    source, found = _opened(file)
    numbers = range(found.num_record_batches) if split is None else _units(source).of(split)
    return reading.reader(
        found.schema, lambda: source.checked(_batches(found, numbers)), wanted=schema, guard=guard_of(file)
    )


def splits(file: BinaryIO, *, target: int) -> list[Split]:
    """See ``BulkWriterFactory.splits``."""
    source, _ = _opened(file)
    return _units(source).splits(target)


def _opened(file: BinaryIO) -> tuple[Any, Any]:
    source: Any = reading.Source(file)
    with source.as_damage("no readable Arrow file"):
        found = pa.ipc.open_file(source)
        _ = found.schema
        return source, found


def _units(source: Any) -> Units:
    """The record batches of a file that pyarrow has opened."""
    with source.as_damage("no readable Arrow file"):
        size = splitting.size_of(source)
        return Units.at(_offsets(source, size), size=size)


def _offsets(file: BinaryIO, size: int) -> list[int]:
    """Where they begin, by the footer."""
    file.seek(size - _END)
    (length,) = struct.unpack("<i", reading.exactly(file, 4))
    file.seek(size - _END - length)
    footer = reading.exactly(file, length)
    (table,) = struct.unpack_from("<I", footer)
    fields = table - struct.unpack_from("<i", footer, table)[0]
    (fields_size,) = struct.unpack_from("<H", footer, fields)
    place = 4 + 2 * _BATCHES
    (field,) = struct.unpack_from("<H", footer, fields + place) if place < fields_size else (0,)
    if not field:
        return []
    begin = table + field
    begin += struct.unpack_from("<I", footer, begin)[0]
    (count,) = struct.unpack_from("<I", footer, begin)
    words = np.frombuffer(footer, "<i8", count=_WORDS * count, offset=begin + 4)
    offsets: list[int] = words[::_WORDS].tolist()
    return offsets


def _batches(file: Any, numbers: range) -> Iterator[pa.RecordBatch]:
    for number in numbers:
        batch = file.get_batch(number)
        batch.validate(full=True)  # offsets that lead out of their buffers are seen only so
        rows = reading.rows_per_batch(columns.size(batch), batch.num_rows)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)
