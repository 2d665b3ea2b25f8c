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

from formats import reading
from formats.arrow import Column
from formats.columns import Bytes, Offsets
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.sequence_file import writables

ESCAPE: Final = b"\xff\xff\xff\xff"
#: Most records in a block, and most bytes that the writer puts there of several.
MOST_RECORDS: Final = 1 << 20
MOST_OF_SEVERAL: Final = 16 << 20
_VERSION: Final = 6
_SYNC: Final = 16  # bytes
_MOST_NAME: Final = 1 << 10  # bytes of the name of a class
_MOST_METADATA: Final = 1 << 16  # bytes
_PIECE: Final = 4 << 20  # bytes of records that are read at a time
_STREAMS: Final[dict[str, Callable[[], Any]]] = {
    "DefaultCodec": zlib.decompressobj,
    "GzipCodec": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
    "BZip2Codec": bz2.BZ2Decompressor,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    key: str
    value: str
    codec: str | None
    in_blocks: bool
    sync: bytes


def open_reader(file: BinaryIO, *, key: str, value: str, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader``.

    Args:
        file: the file.
        key: name of the column of keys; there is none for ``NullWritable``.
        value: name of the column of values.
        schema: what is wanted; ``None`` for the file's own.
    """
    file.seek(0)
    try:
        header = _header(file)
    except (EOFError, ValueError) as error:
        raise FormatError("the file is no SequenceFile, or it is cut off", kind="value") from error
    if header.codec is not None and header.codec not in _STREAMS:
        raise FormatError(
            f"SequenceFiles with {header.codec[:80]!r} cannot be read here, only with {', '.join(_STREAMS)}",
            kind="option",
        )
    pair = [(key, header.key), (value, header.value)]
    fields = [(column, _type(name)) for column, name in pair if name != writables.NULL]
    if len({column for column, _ in fields}) < len(fields) or not fields:
        raise FormatError(
            f"the file has no column, or two of the name {value!r}: name both in the factory", kind="option"
        )
    found, guard = pa.schema(fields), guard_of(file)
    return reading.reader(found, lambda: _batches(file, header, found, guard), wanted=schema, guard=guard)


def _batches(file: BinaryIO, header: _Header, schema: pa.Schema, guard: Guard) -> Iterator[pa.RecordBatch]:
    read = _blocks if header.in_blocks else _records
    try:
        for pieces in read(file, header, guard):
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


def _columns(header: _Header, keys: _Cells, values: _Cells) -> list[Column]:
    found = [(header.key, keys), (header.value, values)]
    return [
        writables.read(name, cells.data, starts=cells.starts, sizes=cells.sizes)
        for name, cells in found
        if name != writables.NULL
    ]


def _blocks(file: BinaryIO, header: _Header, guard: Guard) -> Iterator[tuple[_Cells, _Cells]]:
    while escape := file.read(len(ESCAPE)):
        if escape != ESCAPE or reading.exactly(file, _SYNC) != header.sync:
            raise ValueError("no block where one should begin")
        count = _vint(file)
        yield _block_half(file, header, count, guard), _block_half(file, header, count, guard)


def _block_half(file: BinaryIO, header: _Header, count: int, guard: Guard) -> _Cells:
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
    size = _vint(file)
    guard.check_record(size, "a block")
    return reading.exactly(file, size)


def _records(file: BinaryIO, header: _Header, guard: Guard) -> Iterator[tuple[_Cells, _Cells]]:
    """As many whole records at a time as a piece of the file holds, and at least one."""
    data, wanted = b"", _PIECE
    while more := _up_to(file, wanted):
        data += more
        heads, end, missing = _heads(data, header.sync)
        yield from _pairs(data, heads, header.codec, guard)
        data = data[end:]
        guard.check_record(len(data) + missing)
        wanted = max(_PIECE, missing)
    if data:
        raise EOFError


def _up_to(file: BinaryIO, size: int) -> bytes:
    """In steps, so that a false size costs no more memory than the file has bytes."""
    pieces: list[bytes] = []
    while size and (piece := file.read(min(size, _PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _heads(data: bytes, sync: bytes) -> tuple[list[tuple[int, int, int]], int, int]:
    """Each whole record in ``data``, where the last one ends, and how many bytes the next one lacks.

    A record is where it begins, where its value does, and where it ends.
    """
    heads: list[tuple[int, int, int]] = []
    at, lengths = 0, struct.Struct(">ii")
    while at + lengths.size <= len(data):
        size, key = lengths.unpack_from(data, at)
        if size == -1:
            begin = at + len(ESCAPE)
            if begin + _SYNC > len(data):
                break
            if data[begin : begin + _SYNC] != sync:
                raise ValueError("no sync marker where one should be")
            at = begin + _SYNC
            continue
        if not 0 <= key <= size:
            raise ValueError("a record has an impossible length")
        begin = at + lengths.size
        if begin + size > len(data):
            return heads, at, begin + size - len(data)
        heads.append((begin, begin + key, begin + size))
        at = begin + size
    return heads, at, 0


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


def _header(file: BinaryIO) -> _Header:
    if reading.exactly(file, 4) != b"SEQ" + bytes([_VERSION]):
        raise ValueError(f"no SequenceFile of version {_VERSION}")
    key, value = _class(file), _class(file)
    compressed, in_blocks = reading.exactly(file, 2)
    codec = _class(file, "compress.") if compressed else None
    room = _MOST_METADATA
    for _ in range(2 * int.from_bytes(reading.exactly(file, 4))):
        size = _vint(file)
        room -= 1 + size
        if room < 0:
            raise ValueError("too many metadata")
        reading.exactly(file, size)
    return _Header(
        key=key, value=value, codec=codec, in_blocks=bool(in_blocks), sync=reading.exactly(file, _SYNC)
    )


def _class(file: BinaryIO, package: str = "") -> str:
    size = _vint(file)
    if size > _MOST_NAME:
        raise ValueError("the name of a class is too long")
    return reading.exactly(file, size).decode().removeprefix(writables.PACKAGE + package)


def _type(name: str) -> pa.DataType:
    if name not in writables.TYPES:
        known = ", ".join(writables.TYPES)
        raise FormatError(f"SequenceFiles of {name[:80]!r} cannot be read here, only {known}", kind="option")
    return writables.TYPES[name]


def _vint(file: BinaryIO) -> int:
    data = reading.exactly(file, 1)
    if data[0] > 0x7F:
        data += reading.exactly(file, writables.more_bytes(data[0]))
    return int(writables.read_vints(data, 1)[0])
