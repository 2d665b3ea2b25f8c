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
_SNAPPY_START: Final = b"\xff\x06\x00\x00sNaPpY"
_SNAPPY_LARGEST: Final = 1 << 17  # bytes of a chunk, which holds 64 KiB at most


def expanded(file: BinaryIO, codec: str) -> BinaryIO:
    """What ``file`` holds, to be read forward; its owner closes ``file``.

    Raises:
        FormatError: kind ``"value"``, also from ``read``; no such data, damaged, or cut off.
    """
    file.seek(0)
    if not file.read(1):
        raise FormatError(f"an empty file is no {codec} data", kind="value")
    file.seek(0)
    match codec:
        case "xz":
            pieces = _xz(file)
        case "snappy":
            pieces = _snappy(file)
        case _:
            pieces = _by_arrow(file, _ARROW[codec])
    return io.BufferedReader(_Pieces(pieces, codec), _BLOCK)


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


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes], codec: str) -> None:
        self._pieces = pieces
        self._codec = codec
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """See ``io.RawIOBase.readinto``."""
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
        return taken


class _Lent(io.RawIOBase):
    """A file of somebody else's, which Arrow would close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

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
    if file.read(len(_SNAPPY_START)) != _SNAPPY_START:
        raise EOFError
    while head := file.read(4):
        size = int.from_bytes(head[1:], "little")
        body = file.read(size) if len(head) == 4 and size < _SNAPPY_LARGEST else b""
        if len(body) != size:
            raise EOFError
        if head[0] < 0x80:  # others are padding, or another beginning
            yield bytes(snappy.decompress(_SNAPPY_START + head + body))
