"""What bombs are made of: files that are small, or made while they are read, and take much to read."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from formats import ExcelWriterFactory
from formats.avro.container import Header, block, zigzag

PIECE = 1 << 16


class Stream:
    """A file that is made while it is read: pieces, from the first one on."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces
        self.seek(0)

    def seek(self, offset: int, whence: int = 0) -> int:
        if (offset, whence) == (0, 0):
            self._iterator, self._rest, self._at = self._pieces(), b"", 0
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        while not self._rest and (piece := next(self._iterator, None)) is not None:
            self._rest = piece
        found, self._rest = self._rest[:size], self._rest[size:]
        self._at += len(found)
        return found


def repeated(head: bytes, unit: bytes, tail: bytes, *, size: int) -> Any:
    """A stream of about ``size`` bytes, of which the middle is one unit again and again."""
    piece = unit * (PIECE // len(unit))

    def pieces() -> Iterator[bytes]:
        yield head
        for _ in range((size - len(head) - len(tail)) // len(piece)):
            yield piece
        yield tail

    return Stream(pieces)


def avro(schema: str, count: int, data: bytes, codec: str = "null") -> Any:
    """A file of one block."""
    header = Header(metadata={"avro.schema": schema.encode(), "avro.codec": codec.encode()}, marker=b"m" * 16)
    return io.BytesIO(b"".join([header.to_bytes(), *block(count, data, marker=b"m" * 16)]))


def deflated(kind: str, limit: int) -> Any:
    """A file of one record of one value, a length of ``limit`` and so many zeros, in some kilobytes."""
    return avro(of_one(kind), 1, raw_deflate(zigzag(limit - 16) + bytes(limit - 15)), "deflate")


def of_one(kind: str) -> str:
    """An Avro schema of one field."""
    return f'{{"type":"record","name":"r","fields":[{{"name":"a","type":{kind}}}]}}'


def workbook(rows: str) -> Any:
    """A workbook whose sheet has a header and these rows."""
    batch = pa.record_batch({"a": ["x"]})
    made, output = io.BytesIO(), io.BytesIO()
    writer = ExcelWriterFactory().create(made, batch.schema)
    writer.write(batch)
    writer.finish()
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name == "xl/worksheets/sheet1.xml":
                text = text.replace("</sheetData>", f"{rows}</sheetData>")
            new.writestr(name, text)
    return output


def sequence(record: bytes) -> Any:
    """A SequenceFile of texts, of records that are not compressed."""
    names = b"".join(bytes([len(name)]) + name for name in (b"org.apache.hadoop.io.NullWritable", _TEXT))
    return io.BytesIO(b"SEQ\x06" + names + b"\0\0" + bytes(4) + b"s" * 16 + record)


_TEXT = b"org.apache.hadoop.io.Text"


def zipped(limit: int) -> Any:
    """Zeros of sixteen limits in some kilobytes."""
    return io.BytesIO(gzip.compress(bytes(16 * limit), 1))


def packed(codec: str) -> Callable[[int], Any]:
    """A line of sixteen limits in some kilobytes."""

    def file(limit: int) -> Any:
        named: Any = pa.Codec
        return io.BytesIO(named(codec).compress(b"x" * (16 * limit), asbytes=True))

    return file


def raw_deflate(data: bytes) -> bytes:
    """As Avro packs a block."""
    stream = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()
