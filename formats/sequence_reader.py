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

from formats import reading, writables
from formats.arrow import Column
from formats.columns import Bytes, Offsets
from formats.errors import FormatError

ESCAPE: Final = b"\xff\xff\xff\xff"
_VERSION: Final = 6
_SYNC: Final = 16  # bytes
_MOST_NAME: Final = 1 << 10  # bytes of the name of a class
_MOST_METADATA: Final = 1 << 16  # entries
_PIECE: Final = 4 << 20  # bytes of records that are read at a time
_MOST_EXPANDED: Final = 256 << 20  # bytes of a block's values; Hadoop's default is 1 MB
_MOST_OF_ONE: Final = 2**31 - 1
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
    fields = [(value, _type(header.value))]
    if header.key != writables.NULL:
        fields.insert(0, (key, _type(header.key)))
    found = pa.schema(fields)
    return reading.reader(found, lambda: _batches(file, header, found), wanted=schema)


def _batches(file: BinaryIO, header: _Header, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for pieces in _blocks(file, header) if header.in_blocks else _records(file, header):
            batch = pa.RecordBatch.from_arrays(_columns(header, *pieces), schema=schema)
            rows = reading.rows_per_batch(batch.nbytes, batch.num_rows)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
    except (ValueError, OSError, EOFError, zlib.error, struct.error) as error:
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
        writables.read(name, cells.data, cells.starts, cells.sizes)
        for name, cells in found
        if name != writables.NULL
    ]


def _blocks(file: BinaryIO, header: _Header) -> Iterator[tuple[_Cells, _Cells]]:
    while escape := file.read(len(ESCAPE)):
        if escape != ESCAPE or reading.exactly(file, _SYNC) != header.sync:
            raise ValueError("no block where one should begin")
        count = _vint(file)
        yield _block_half(file, header, count), _block_half(file, header, count)


def _block_half(file: BinaryIO, header: _Header, count: int) -> _Cells:
    """Keys or values of a block: their lengths, then themselves."""
    most = _MOST_OF_ONE if count == 1 else _MOST_EXPANDED
    sizes = writables.read_vints(_expanded(reading.exactly(file, _vint(file)), header.codec, most), count)
    data = _expanded(reading.exactly(file, _vint(file)), header.codec, most)
    ends = np.cumsum(sizes)
    if int(ends[-1] if count else 0) != len(data):
        raise ValueError("there are more or fewer bytes than the lengths say")
    return _Cells(np.frombuffer(data, np.uint8), ends - sizes, sizes)


def _records(file: BinaryIO, header: _Header) -> Iterator[tuple[_Cells, _Cells]]:
    """As many whole records at a time as a piece of the file holds."""
    data = b""
    while more := file.read(max(_PIECE, len(data))):  # a long record is not looked at byte by byte
        data += more
        heads, end = _heads(data, header.sync)
        if len(heads):
            yield _pairs(data, heads, header.codec)
        data = data[end:]
    if data:
        raise EOFError


def _heads(data: bytes, sync: bytes) -> tuple[Offsets, int]:
    """Begin, size and size of the key of each whole record in ``data``, and where the last one ends."""
    heads: list[tuple[int, int, int]] = []
    at, lengths = 0, struct.Struct(">ii")
    while at + lengths.size <= len(data):
        size, key = lengths.unpack_from(data, at)
        if size == -1:
            if at + len(ESCAPE) + _SYNC > len(data):
                break
            if data[at + len(ESCAPE) : at + len(ESCAPE) + _SYNC] != sync:
                raise ValueError("no sync marker where one should be")
            at += len(ESCAPE) + _SYNC
            continue
        if not 0 <= key <= size:
            raise ValueError("a record has an impossible length")
        if at + lengths.size + size > len(data):
            break
        heads.append((at + lengths.size, size, key))
        at += lengths.size + size
    return np.array(heads, np.int64).reshape(-1, 3), at


def _pairs(data: bytes, heads: Offsets, codec: str | None) -> tuple[_Cells, _Cells]:
    starts, sizes, key_sizes = heads.T
    cells = np.frombuffer(data, np.uint8)
    keys = _Cells(cells, starts, key_sizes)
    begins, lengths = starts + key_sizes, sizes - key_sizes
    if codec is None:
        return keys, _Cells(cells, begins, lengths)
    spans = zip(begins.tolist(), (starts + sizes).tolist(), strict=True)
    values = [_expanded(data[begin:end], codec, _MOST_EXPANDED) for begin, end in spans]
    own = np.fromiter(map(len, values), np.int64, len(values))
    return keys, _Cells(np.frombuffer(b"".join(values), np.uint8), np.cumsum(own) - own, own)


def _expanded(data: bytes, codec: str | None, most: int) -> bytes:
    """``data`` without its codec; never more than ``most`` bytes."""
    if codec is None:
        return data
    stream = _STREAMS[codec]()
    expanded: bytes = stream.decompress(data, most)
    if not stream.eof:
        raise ValueError(f"cut off, or more than {most} bytes, which is taken for a bomb")
    return expanded


def _header(file: BinaryIO) -> _Header:
    if reading.exactly(file, 4) != b"SEQ" + bytes([_VERSION]):
        raise ValueError(f"no SequenceFile of version {_VERSION}")
    key, value = _class(file), _class(file)
    compressed, in_blocks = reading.exactly(file, 2)
    codec = _class(file, "compress.") if compressed else None
    entries = int.from_bytes(reading.exactly(file, 4))
    if entries > _MOST_METADATA:
        raise ValueError("too many metadata")
    for _ in range(2 * entries):
        reading.exactly(file, _vint(file))
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
