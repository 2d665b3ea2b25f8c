"""Compressed files as streams of what was compressed: member after member, in bounded memory."""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa

from formats.errors import FormatError

_BLOCK: Final = 256 << 10  # bytes
_XZ_MEMORY: Final = 128 << 20  # bytes; twice what the highest level needs
_ARROW: Final[dict[str, Any]] = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd", "lz4": "lz4"}
#: What every file in snappy's framing format begins with.
SNAPPY_START: Final = b"\xff\x06\x00\x00sNaPpY"
_SNAPPY_LARGEST: Final = 1 << 17  # bytes of a chunk, which holds 64 KiB at most


def expanded(file: BinaryIO, codec: str) -> BinaryIO:
    """What ``file`` holds, to be read forward, and again from its beginning; its owner closes ``file``.

    ``read`` raises ``FormatError`` of kind ``"value"``: no such data, damaged, or cut off.
    """
    return io.BufferedReader(_Expanded(file, codec), _BLOCK)


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

    def __init__(self, file: BinaryIO, codec: str) -> None:
        self._file = file
        self._codec = codec
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
                raise FormatError(f"an empty file is no {self._codec} data", kind="value")
            self._file.seek(0)
        try:
            while not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    return 0
                self._rest = memoryview(piece)
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise FormatError(f"{self._codec} data is damaged or cut off", kind="value") from error
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        self._position += taken
        return taken


class _Lent(io.RawIOBase):
    """A file of somebody else's, which Arrow would close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """See ``io.RawIOBase.read``."""
        return self._file.read(size)


def _by_arrow(file: BinaryIO, codec: Any) -> Iterator[bytes]:
    lent: Any = _Lent(file)
    stream = pa.CompressedInputStream(pa.PythonFile(lent, mode="r"), codec)
    while piece := stream.read(_BLOCK):
        yield piece


def _xz(file: BinaryIO) -> Iterator[bytes]:
    left = b""
    while data := left or file.read(_BLOCK):
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        yield decoder.decompress(data, _BLOCK)
        while not decoder.eof:
            more = file.read(_BLOCK) if decoder.needs_input else b""
            if decoder.needs_input and not more:
                raise EOFError
            yield decoder.decompress(more, _BLOCK)
        left = decoder.unused_data


def _snappy(file: BinaryIO) -> Iterator[bytes]:
    """Chunks of a type, three bytes of length, and so many bytes; each is expanded by itself."""
    snappy = cramjam_snappy()
    if file.read(len(SNAPPY_START)) != SNAPPY_START:
        raise EOFError
    while head := file.read(4):
        size = int.from_bytes(head[1:], "little")
        body = file.read(size) if len(head) == 4 and size < _SNAPPY_LARGEST else b""
        if len(body) != size:
            raise EOFError
        if head[0] < 0x80:  # others are padding, or another beginning
            yield bytes(snappy.decompress(SNAPPY_START + head + body))
