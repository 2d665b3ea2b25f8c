"""The codecs of Avro's blocks: what a block is compressed with, and expanded again within bounds."""

from __future__ import annotations

import bz2
import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from formats.compressed import decompress as expanding
from formats.compressed.codec_names import codec_name
from formats.errors import FormatError
from formats.read_limits import Guard

if TYPE_CHECKING:
    from formats.api import Buffer

AvroCodecName = Literal["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]
_LEVELS: Final = {"deflate": (1, 9), "zstandard": (1, 22), "bzip2": (1, 9), "xz": (0, 9)}
_CHECKSUM: Final = 4  # bytes behind a snappy block


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroCodec:
    """A codec by its name in Avro's header, and its level, ``None`` for the default.

    Raises:
        FormatError: kind ``"option"``; an unknown codec, or a level that it does not have.
    """

    name: AvroCodecName = "snappy"
    level: int | None = None

    def __post_init__(self) -> None:
        """Check name and level."""
        object.__setattr__(self, "name", codec_name(self.name, AvroCodecName, what="Avro"))
        if self.level is None:
            return
        lowest, highest = _LEVELS.get(self.name, (1, 0))
        level: object = self.level
        if not isinstance(level, int) or isinstance(level, bool) or not lowest <= level <= highest:
            levels = f"a level from {lowest} to {highest}" if highest else "no level"
            raise FormatError(f"Avro's codec {self.name} takes {levels}, not {self.level!r}", kind="option")

    def compress(self, data: memoryview) -> Buffer:
        """The bytes of a block."""
        level = self.level
        match self.name:
            case "null":
                return data
            case "deflate":
                deflate = zlib.compressobj(6 if level is None else level, wbits=-zlib.MAX_WBITS)
                return deflate.compress(data) + deflate.flush()
            case "snappy":
                return _compressed("snappy", data) + zlib.crc32(data).to_bytes(_CHECKSUM)
            case "zstandard":
                return _compressed("zstd", data, level)
            case "bzip2":
                return bz2.compress(data, 9 if level is None else level)
            case "xz":
                return lzma.compress(data, preset=level)

    def expand(self, data: bytes, *, guard: Guard) -> bytes:
        """What ``compress`` was given, by us or any other writer; never more than a record may have.

        Raises:
            FormatError: kind ``"value"``; damaged. ``LimitError``: it is larger.
        """
        most = guard.record
        try:
            expanded = self._expand(data, most + 1)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise FormatError(f"a block is damaged: no {self.name} data", kind="value") from error
        guard.check_record(len(expanded), "a block")
        return expanded

    def _expand(self, data: bytes, most: int) -> bytes:
        match self.name:
            case "null":
                return data
            case "deflate":
                return _whole(zlib.decompressobj(-zlib.MAX_WBITS), data, most)
            case "snappy":
                return _unsnapped(data, most)
            case "zstandard":
                return pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(most)
            case "bzip2":
                return _whole(bz2.BZ2Decompressor(), data, most)
            case "xz":
                return _whole(lzma.LZMADecompressor(memlimit=expanding.XZ_MEMORY), data, most)


def _whole(stream: Any, data: bytes, most: int) -> bytes:
    expanded: bytes = stream.decompress(data, most)
    if not stream.eof and len(expanded) < most:
        raise EOFError
    return expanded


def _unsnapped(data: bytes, most: int) -> bytes:
    """Snappy says its length first; and behind it stands the CRC-32 of what was compressed."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size >= most:
        return bytes(most)  # its length is all that matters
    expanded: bytes = _arrow_codec("snappy").decompress(data[:-_CHECKSUM], size, asbytes=True)
    if zlib.crc32(expanded).to_bytes(_CHECKSUM) != data[-_CHECKSUM:]:
        raise ValueError("checksum")
    return expanded


def _compressed(name: str, data: memoryview, level: int | None = None) -> bytes:
    compressed: bytes = _arrow_codec(name, level).compress(data, asbytes=True)
    return compressed


def _arrow_codec(name: str, level: int | None = None) -> Any:
    codec: Any = pa.Codec
    return codec(name) if level is None else codec(name, compression_level=level)
