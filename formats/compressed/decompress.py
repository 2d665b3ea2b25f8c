"""Compressed files as streams of what was compressed: member after member, in bounded memory."""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa

from formats import reading
from formats.errors import FormatError
from formats.read_limits import Guard, bounded, guard_of

_BLOCK: Final = 256 << 10  # bytes
_ARROW: Final[dict[str, Any]] = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd", "lz4": "lz4"}
#: Most bytes of memory that xz data may ask for; twice what the highest level needs.
XZ_MEMORY: Final = 128 << 20
#: What every file in snappy's framing format begins with.
SNAPPY_START: Final = b"\xff\x06\x00\x00sNaPpY"
_SNAPPY_LARGEST: Final = 1 << 17  # bytes of a chunk, which holds 64 KiB at most


def expanded(file: BinaryIO, codec: str) -> BinaryIO:
    """What ``file`` holds, to be read forward, and again from its beginning; its owner closes ``file``.

    ``read`` raises ``FormatError`` of kind ``"value"``: no such data, damaged, or cut off.
    """
    guard = guard_of(file)
    lent: Any = io.BufferedReader(_Expanded(file, codec, guard), _BLOCK)
    return bounded(lent, limits=guard.limits, name=guard.name)


def cramjam_snappy() -> Any:
    """The module that knows snappy's framing format and its checksums.

    Raises:
        FormatError: kind ``"option"``; it is not installed.
    """
    try:
        from cramjam import snappy
    except ImportError as error:
        raise FormatError(
            "codec snappy needs cramjam: pip install 'filesink[snappy]'", kind="option"
        ) from error
    return snappy


class _Expanded(io.RawIOBase):
    """What members hold, one after the other."""

    def __init__(self, file: BinaryIO, codec: str, guard: Guard) -> None:
        self._file = reading.Source(file)
        self._codec = codec
        self._guard = guard
        self.seek(0)

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """To its beginning."""
        return True

    def tell(self) -> int:
        """Bytes that were read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Begin again, or stay."""
        if whence == io.SEEK_SET and offset == 0:
            self._file.seek(0)
            self._pieces, self._rest, self._position = self._members(), memoryview(b""), 0
        elif (whence, offset) not in {(io.SEEK_SET, self._position), (io.SEEK_CUR, 0)}:
            raise io.UnsupportedOperation("compressed data is read forward")
        return self._position

    def _members(self) -> Iterator[bytes]:
        match self._codec:
            case "xz":
                return _xz(self._file)
            case "snappy":
                return _snappy(self._file)
            case _:
                return _by_arrow(self._file, _ARROW[self._codec])

    def readinto(self, buffer: Any, /) -> int:
        """See ``io.RawIOBase.readinto``."""
        if self._file.tell() == 0:
            if not self._file.read(1):
                raise FormatError(f"an empty file is not {self._codec} data", kind="value")
            self._file.seek(0)
        # Each codec has classes of its own for what is wrong with its data.
        with self._file.as_damage(f"{self._codec} data is damaged or cut off", on=(Exception,)):
            while not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    return 0
                self._rest = memoryview(piece)
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        self._position += taken
        self._guard.check_file(self._position)
        return taken


def _by_arrow(file: reading.Source, codec: Any) -> Iterator[bytes]:
    lent: Any = file
    stream = pa.CompressedInputStream(pa.PythonFile(lent, mode="r"), codec)
    while piece := stream.read(_BLOCK):
        yield piece


def _xz(file: reading.Source) -> Iterator[bytes]:
    left = b""
    while data := left or file.read(_BLOCK):
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        yield decoder.decompress(data, _BLOCK)
        while not decoder.eof:
            more = file.read(_BLOCK) if decoder.needs_input else b""
            if decoder.needs_input and not more:
                raise EOFError
            yield decoder.decompress(more, _BLOCK)
        left = decoder.unused_data


def _snappy(file: reading.Source) -> Iterator[bytes]:
    """Chunks of a type, three bytes of length, and so many bytes; each is expanded by itself."""
    snappy = cramjam_snappy()
    if file.read(len(SNAPPY_START)) != SNAPPY_START:
        raise EOFError
    while head := file.read(4):
        size = int.from_bytes(head[1:], "little")
        body = file.read(size) if len(head) == 4 and size < _SNAPPY_LARGEST else b""
        if len(body) != size:
            raise EOFError
        if head[0] == SNAPPY_START[0] and head + body != SNAPPY_START:
            raise EOFError
        if head[0] < 0x80:  # others are padding, or another beginning
            yield bytes(snappy.decompress(SNAPPY_START + head + body))
