"""SequenceFiles back as record batches, whoever wrote them, as far as their Writables are known here.

The values of a block, or of the records between two sync markers, become columns at once. Only the
lengths of records that are in no block are read one after the other, since each says where the next is.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from formats import reading, sync_marker
from formats.arrow import Column
from formats.columns import Bytes, Offsets
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.sequence_file import writables
from formats.sequence_file.header import ESCAPE, Header, read_header, read_vint
from formats.sizes import MAX_SIZE
from formats.splitting import Split
from formats.sync_marker import MARKER_SIZE

#: Most records in a block, and most bytes that the writer puts there of several.
MOST_RECORDS: Final = 1 << 20
MOST_OF_SEVERAL: Final = 16 << 20
_PIECE: Final = 4 << 20  # bytes of records that are read at a time
_BEHIND: Final = (
    128 << 10
)  # and behind a split, where the next mark is 100 KiB away at most if Hadoop wrote it
_STREAMS: Final[dict[str, Callable[[], Any]]] = {
    "DefaultCodec": zlib.decompressobj,
    "GzipCodec": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
    "BZip2Codec": bz2.BZ2Decompressor,
}


def open_reader(
    file: BinaryIO, *, names: tuple[str, str], schema: pa.Schema | None, split: Split | None = None
) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader`` and ``open_split``.

    Args:
        file: the file.
        names: of the column of keys, which is not there for ``NullWritable``, and of that of values.
        schema: what is wanted; ``None`` for the file's own.
        split: whose records are wanted; ``None`` for all.
    """
    file.seek(0)
    guard = guard_of(file)
    with guard.naming():
        try:
            header, begin = read_header(file), file.tell()
        except (EOFError, ValueError) as error:
            raise FormatError("the file is no SequenceFile, or it is cut off", kind="value") from error
    if header.codec is not None and header.codec not in _STREAMS:
        raise FormatError(
            f"SequenceFiles with {header.codec[:80]!r} cannot be read here, only with {', '.join(_STREAMS)}",
            kind="option",
        )
    pair = zip(names, (header.key, header.value), strict=True)
    fields = [(column, _type(name)) for column, name in pair if name != writables.NULL]
    if len({column for column, _ in fields}) < len(fields) or not fields:
        raise FormatError(
            f"the file has no column, or two of the name {names[1]!r}: name both in the factory",
            kind="option",
        )
    found = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        file.seek(begin)
        if split is None:
            yield from _batches(file, header, found, guard)
        elif _seek_mark(file, header.sync, split):
            yield from _batches(file, header, found, guard, split.end)

    return reading.reader(found, batches, wanted=schema, guard=guard)


def _seek_mark(file: BinaryIO, sync: bytes, split: Split) -> bool:
    """Go to where records begin in ``split``, from the end of the header; whether there is such a place.

    Only an escape with the sync marker is one, and the end of the header.
    """
    if split.start <= file.tell():
        return file.tell() < split.end
    mark = ESCAPE + sync
    place = sync_marker.find(file, mark, start=split.start, end=split.end + len(mark) - 1)
    if place is not None:
        file.seek(place)
    return place is not None


def _batches(
    file: BinaryIO, header: Header, schema: pa.Schema, guard: Guard, end: int = MAX_SIZE
) -> Iterator[pa.RecordBatch]:
    """The records from here to the first mark that begins at ``end`` or behind it."""
    read = _blocks if header.in_blocks else _records
    try:
        for pieces in read(file, header, guard, end):
            batch = pa.RecordBatch.from_arrays(_columns(header, *pieces), schema=schema)
            rows = reading.rows_per_batch(batch.nbytes, batch.num_rows)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
    except FormatError:
        raise
    except (ValueError, EOFError) as error:
        raise FormatError("the SequenceFile is damaged or cut off", kind="value") from error


@dataclass(frozen=True, slots=True)
class _Cells:
    """Writables in ``data``: where each begins, and its size."""

    data: Bytes
    starts: Offsets
    sizes: Offsets


def _columns(header: Header, keys: _Cells, values: _Cells) -> list[Column]:
    found = [(header.key, keys), (header.value, values)]
    return [
        writables.read(name, cells.data, starts=cells.starts, sizes=cells.sizes)
        for name, cells in found
        if name != writables.NULL
    ]


def _blocks(file: BinaryIO, header: Header, guard: Guard, end: int) -> Iterator[tuple[_Cells, _Cells]]:
    place = file.tell()
    while escape := file.read(len(ESCAPE)):
        # The mark of the next split is looked at, too: were it damaged, nobody else would miss its block.
        if escape != ESCAPE or reading.exactly(file, MARKER_SIZE) != header.sync:
            raise ValueError("no block where one should begin")
        if place >= end:
            return
        count = read_vint(file)
        yield _block_half(file, header, count, guard), _block_half(file, header, count, guard)
        place = file.tell()


def _block_half(file: BinaryIO, header: Header, count: int, guard: Guard) -> _Cells:
    """Keys or values of a block: their lengths, then themselves."""
    if count > MOST_RECORDS:
        raise ValueError("a block claims too many records")
    packed = _sized(file, guard)
    sizes = writables.read_vints(_expanded(packed, header.codec, count * writables.LONGEST_VINT), count)
    total = int(sizes.sum())
    guard.check_record(total, "a block")
    data = _expanded(_sized(file, guard), header.codec, total)
    if len(data) != total:
        raise ValueError("there are fewer bytes than the lengths say")
    return _Cells(np.frombuffer(data, np.uint8), np.cumsum(sizes) - sizes, sizes)


def _sized(file: BinaryIO, guard: Guard) -> bytes:
    size = read_vint(file)
    guard.check_record(size, "a block")
    return reading.exactly(file, size)


def _records(file: BinaryIO, header: Header, guard: Guard, end: int) -> Iterator[tuple[_Cells, _Cells]]:
    """As many whole records at a time as a piece of the file holds, and at least one."""
    data, place, missing = b"", file.tell(), 0
    while more := reading.up_to(file, _wanted(end - place - len(data), missing)):
        data += more
        found = _heads(data, header.sync, end - place)
        yield from _pairs(data, found.heads, header.codec, guard)
        if found.is_last:
            return
        data, place, missing = data[found.end :], place + found.end, found.missing
        guard.check_record(len(data) + missing)
    if data:
        raise EOFError


def _wanted(left: int, missing: int) -> int:
    """Bytes to read next of a split with ``left`` bytes to its end, and of a record that lacks some."""
    return max(min(_PIECE, max(left, _BEHIND)), missing)


@dataclass(frozen=True, slots=True)
class _Found:
    """The whole records in some data.

    Attributes:
        heads: of each where it begins, where its value does, and where it ends.
        end: of the last one.
        missing: bytes that the next one lacks.
        is_last: whether the next one is of another split.
    """

    heads: list[tuple[int, int, int]]
    end: int
    missing: int = 0
    is_last: bool = False


def _heads(data: bytes, sync: bytes, limit: int) -> _Found:
    """The records before the first mark that begins at ``limit`` or behind it."""
    heads: list[tuple[int, int, int]] = []
    at, lengths = 0, struct.Struct(">ii")
    while at + lengths.size <= len(data):
        size, key = lengths.unpack_from(data, at)
        if size == -1:
            begin = at + len(ESCAPE)
            if begin + MARKER_SIZE > len(data):
                break
            if data[begin : begin + MARKER_SIZE] != sync:
                raise ValueError("no sync marker where one should be")
            if at >= limit:
                return _Found(heads, at, is_last=True)
            at = begin + MARKER_SIZE
            continue
        if not 0 <= key <= size:
            raise ValueError("a record has an impossible length")
        begin = at + lengths.size
        if begin + size > len(data):
            return _Found(heads, at, begin + size - len(data))
        heads.append((begin, begin + key, begin + size))
        at = begin + size
    return _Found(heads, at)


def _pairs(
    data: bytes, heads: list[tuple[int, int, int]], codec: str | None, guard: Guard
) -> Iterator[tuple[_Cells, _Cells]]:
    if not heads:
        return
    cells = np.frombuffer(data, np.uint8)
    begins, middles, ends = np.array(heads, np.int64).T
    if codec is None:
        yield _Cells(cells, begins, middles - begins), _Cells(cells, middles, ends - middles)
        return
    values: list[bytes] = []
    size = first = 0
    for number, (_, middle, end) in enumerate(heads, start=1):  # each by itself, as they were compressed
        value = _expanded(data[middle:end], codec, guard.record + 1)
        guard.check_record(len(value))
        values.append(value)
        size += len(values[-1])
        if size > reading.BATCH_BYTES or number == len(heads):
            part = slice(first, number)
            own = np.fromiter(map(len, values), np.int64, len(values))
            together = np.frombuffer(b"".join(values), np.uint8)
            values, size, first = [], 0, number
            keys = _Cells(cells, begins[part], middles[part] - begins[part])
            yield keys, _Cells(together, np.cumsum(own) - own, own)


def _expanded(data: bytes, codec: str | None, most: int) -> bytes:
    """``data`` without its codec; never more than ``most`` bytes, and one to tell that there are more."""
    if codec is None:
        found = data
    else:
        stream = _STREAMS[codec]()
        try:
            found = stream.decompress(data, most + 1)
        except (OSError, zlib.error) as error:
            raise ValueError(f"no data of {codec}") from error
        if not stream.eof and len(found) <= most:
            raise EOFError
    if len(found) > most:
        raise ValueError("more bytes than there can be, which is taken for a bomb")
    return found


def _type(name: str) -> pa.DataType:
    if name not in writables.TYPES:
        known = ", ".join(writables.TYPES)
        raise FormatError(f"SequenceFiles of {name[:80]!r} cannot be read here, only {known}", kind="option")
    return writables.TYPES[name]
