"""Any row format, compressed: Flink's ``CompressWriterFactory``.

A file is a sequence of members (gzip's word; zstd and LZ4 say frame, xz and bzip2 stream), each of
which holds some whole records and stands for itself. So nothing but records waits in memory between
two writes, however many files are open, and a cut file loses no member before the cut. Every tool
that knows a codec reads such files as one.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast

import pyarrow as pa

from formats import file_extensions
from formats.api import BaseEncoder, BulkWriter, BulkWriterFactory
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.compressed import decompress as expanding
from formats.compressed.codec_names import codec_name
from formats.errors import FormatError
from formats.sizes import parse_size

if TYPE_CHECKING:
    from formats.api import BinaryOutput, Buffer

CompressionCodec = Literal["gzip", "zstd", "lz4", "bzip2", "xz", "snappy"]

_LEVELS: Final = {"gzip": (0, 9), "zstd": (1, 22), "lz4": (1, 12), "bzip2": (1, 9), "xz": (0, 9)}


@dataclass(frozen=True, kw_only=True)
class CompressWriterFactory(BulkWriterFactory):
    """Compressed files of a row format; their names end with both, as in ``.json.gz``.

    Attributes:
        encoder: the row format.
        codec: ``"snappy"`` is the framing format (``.sz``) and needs cramjam (``filesink[snappy]``);
            LZ4 is its frame format. Hadoop's own block formats of these two are others.
        level: of the codec; ``None`` for its default.
        block_size: a member is written when this much waits, in Arrow's form: bytes, or ``"4MiB"``.

    Raises:
        FormatError: kind ``"option"``; an unknown codec, or a level that it does not have.
    """

    encoder: BaseEncoder
    codec: CompressionCodec = "gzip"
    level: int | None = None
    block_size: int | str = "4MiB"
    extension: str = field(init=False, default="")
    writes_text: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Check the options; take the extensions of format and codec."""
        if not isinstance(self.encoder, BaseEncoder):
            raise FormatError("CompressWriterFactory takes an Encoder", kind="option")
        object.__setattr__(self, "codec", codec_name(self.codec, CompressionCodec, what="compression"))
        _check_level(self.codec, self.level)
        if self.codec == "snappy":
            expanding.cramjam_snappy()
        object.__setattr__(self, "block_size", parse_size(self.block_size, name="block_size"))
        object.__setattr__(self, "writes_text", self.encoder.writes_text)
        object.__setattr__(self, "extension", self.encoder.extension + file_extensions.OF_CODEC[self.codec])

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return CompressedWriter(output, schema, self)

    def compress(self, data: Buffer) -> bytes:
        """``data`` as one member."""
        return _compressor(self.codec, self.level)(memoryview(data))

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        return f"{self.codec} level={self.level} of {self.encoder.signature()}"

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``."""
        self.encoder.check_schema(schema)

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_continues``."""
        self.encoder.check_continues(old, new)

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``."""
        return self.encoder.open_reader(expanding.expanded(file, self.codec), schema=schema)


class CompressedWriter(BufferedBulkWriter):
    """Encodes and compresses what has been collected.

    Args:
        output: the file.
        schema: of the records.
        factory: its encoder and codec.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: CompressWriterFactory) -> None:
        super().__init__(schema, Limits(size=cast("int", factory.block_size)))
        self._output = output
        self._factory = factory
        self._encoder = factory.encoder.start_part()
        self._head: bytes | None = self._encoder.header(schema)

    def _put(self, table: pa.Table) -> None:
        head, self._head = self._head, None
        pieces = [memoryview(self._encoder.encode(batch)) for batch in table.to_batches()]
        self._output.write(self._factory.compress(b"".join([head or b"", *pieces])))

    def _end(self) -> None:
        if self._head is not None:
            self._output.write(self._factory.compress(self._head))


def _check_level(codec: str, level: object) -> None:
    if level is None:
        return
    lowest, highest = _LEVELS.get(codec, (1, 0))
    if not isinstance(level, int) or isinstance(level, bool) or not lowest <= level <= highest:
        levels = f"a level from {lowest} to {highest}" if highest else "no level"
        raise FormatError(f"codec {codec} takes {levels}", kind="option")


def _compressor(codec: CompressionCodec, level: int | None) -> Callable[[memoryview], bytes]:
    match codec:
        case "gzip":  # without a time, so that equal records are equal bytes
            return lambda data: gzip.compress(data, 6 if level is None else level, mtime=0)
        case "bzip2":
            return lambda data: bz2.compress(data, 9 if level is None else level)
        case "xz":
            return lambda data: lzma.compress(data, preset=level)
        case "snappy":
            return lambda data: bytes(expanding.cramjam_snappy().compress(data)) or expanding.SNAPPY_START
        case "zstd" | "lz4":
            return lambda data: _by_arrow(codec, level, data)


def _by_arrow(codec: str, level: int | None, data: memoryview) -> bytes:
    named: Any = pa.Codec
    chosen = named(codec) if level is None else named(codec, compression_level=level)
    compressed: bytes = chosen.compress(data, asbytes=True)
    return compressed
