"""Avro's object container file: a header, then blocks, each ended by the marker that the header names.

    header   "Obj" 01, a map of metadata (schema and codec among it), 16 bytes of marker
    block    number of records, number of bytes (both zigzag), the bytes, the marker

Blocks of one marker may follow one another whoever wrote them: that is what lets a part file be
continued in another process by appending.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from formats import reading, sync_marker
from formats.errors import FormatError
from formats.read_limits import Guard
from formats.sizes import MAX_SIZE
from formats.splitting import Split
from formats.sync_marker import MARKER_SIZE
from formats.varint import varint

if TYPE_CHECKING:
    from formats.api import Buffer

_MAGIC: Final = b"Obj\x01"
_MOST_METADATA: Final = 16 << 20  # bytes of all of it; a schema is some kilobytes
_MOST_KEYS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What stands before the blocks: metadata, with Avro's own ``avro.…`` keys, and the marker."""

    metadata: Mapping[str, bytes]
    marker: bytes

    def to_bytes(self) -> bytes:
        """The header as it begins a file."""
        pairs = b"".join(
            _sized(name.encode()) + _sized(value) for name, value in sorted(self.metadata.items())
        )
        return b"".join((_MAGIC, zigzag(len(self.metadata)), pairs, b"\0", self.marker))


@dataclass(frozen=True, slots=True)
class Block:
    """Records, compressed as the header says."""

    count: int
    data: bytes


def block(count: int, data: Buffer, *, marker: bytes) -> list[Buffer]:
    """The pieces of one block; ``data`` is compressed already."""
    return [zigzag(count) + zigzag(len(data)), data, marker]


def read_header(file: BinaryIO) -> Header:
    """The header of a file, from its first byte on.

    Raises:
        FormatError: kind ``"value"``; no Avro file, or cut off.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        raise FormatError("no Avro file: it does not begin with Avro's mark", kind="value")
    metadata: dict[str, bytes] = {}
    room = _MOST_METADATA
    while count := _number(file):
        if count < 0:  # a block of the map may say its size
            count, _ = -count, _number(file)
        if len(metadata) + count > _MOST_KEYS:
            raise _damaged()
        for _ in range(count):
            key = _bytes(file, room)
            value = _bytes(file, room - len(key))
            room -= len(key) + len(value)
            metadata[key.decode(errors="replace")] = value
    return Header(metadata=metadata, marker=_exactly(file, MARKER_SIZE))


def seek_block(file: BinaryIO, marker: bytes, split: Split) -> bool:
    """Go to the first block that begins in ``split``, from the end of the header; whether there is one."""
    if split.start <= file.tell():
        return file.tell() < split.end
    first = split.start - MARKER_SIZE  # of a marker that ends where the split starts
    place = sync_marker.find(file, marker, start=first, end=split.end - 1)
    if place is not None:
        file.seek(place + MARKER_SIZE)
    return place is not None


def read_blocks(file: BinaryIO, marker: bytes, guard: Guard, end: int = MAX_SIZE) -> Iterator[Block]:
    """The blocks from here on that begin before ``end``.

    Raises:
        FormatError: kind ``"value"``; the file ends inside a block, a marker is missing, or a block is
            larger than a record may be: it is in memory as a whole.
    """
    while file.tell() < end and (first := file.read(1)):
        count = _number(file, first)
        size = _number(file)
        guard.check_record(size, "a block")
        data = _exactly(file, max(size, 0))
        if count < 0 or _exactly(file, MARKER_SIZE) != marker:
            raise _damaged()
        yield Block(count, data)


def zigzag(number: int) -> bytes:
    """A number in Avro's form; not negative."""
    return varint(number << 1)


def schema_bytes(schema: object) -> bytes:
    """The JSON of a schema; equal schemas give equal bytes."""
    return json.dumps(schema, separators=(",", ":")).encode()


def _sized(data: bytes) -> bytes:
    return zigzag(len(data)) + data


def _number(file: BinaryIO, first: bytes = b"") -> int:
    number = shift = 0
    while shift < 64:
        byte = (first or _exactly(file, 1))[0]
        first = b""
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)
    raise _damaged()


def _bytes(file: BinaryIO, most: int) -> bytes:
    size = _number(file)
    if not 0 <= size <= most:
        raise _damaged()
    return _exactly(file, size)


def _exactly(file: BinaryIO, size: int) -> bytes:
    try:
        return reading.exactly(file, size)
    except EOFError as error:
        raise _damaged() from error


def _damaged() -> FormatError:
    return FormatError("the Avro file is damaged or cut off", kind="value")
