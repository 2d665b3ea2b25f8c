"""What a SequenceFile begins with, and the VInts that it and blocks are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Final

from formats import reading
from formats.sequence_file import writables
from formats.sync_marker import MARKER_SIZE

#: In the place of the length of a record, before a sync marker.
ESCAPE: Final = b"\xff\xff\xff\xff"
_VERSION: Final = 6
_MOST_NAME: Final = 1 << 10  # bytes of the name of a class
_MOST_METADATA: Final = 1 << 16  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Classes and codec without their packages, and the sync marker."""

    key: str
    value: str
    codec: str | None
    in_blocks: bool
    sync: bytes


def read_header(file: BinaryIO) -> Header:
    """The header of a file, from its first byte on.

    Raises:
        EOFError: it is cut off.
        ValueError: it is none.
    """
    if reading.exactly(file, 4) != b"SEQ" + bytes([_VERSION]):
        raise ValueError(f"no SequenceFile of version {_VERSION}")
    key, value = _class(file), _class(file)
    compressed, in_blocks = reading.exactly(file, 2)
    codec = _class(file, "compress.") if compressed else None
    room = _MOST_METADATA
    for _ in range(2 * int.from_bytes(reading.exactly(file, 4))):
        size = read_vint(file)
        room -= 1 + size
        if room < 0:
            raise ValueError("too many metadata")
        reading.exactly(file, size)
    return Header(
        key=key, value=value, codec=codec, in_blocks=bool(in_blocks), sync=reading.exactly(file, MARKER_SIZE)
    )


def _class(file: BinaryIO, package: str = "") -> str:
    size = read_vint(file)
    if size > _MOST_NAME:
        raise ValueError("the name of a class is too long")
    return reading.exactly(file, size).decode().removeprefix(writables.PACKAGE + package)


def read_vint(file: BinaryIO) -> int:
    """The VInt that comes next.

    Raises:
        EOFError: it is cut off.
        ValueError: it is no size.
    """
    data = reading.exactly(file, 1)
    if data[0] > 0x7F:
        data += reading.exactly(file, writables.more_bytes(data[0]))
    return int(writables.read_vints(data, 1)[0])
