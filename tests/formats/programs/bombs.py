"""Makes one bomb, or reads it and prints what became of it and what memory that took.

    python -m tests.formats.programs.bombs make <name> <limit in bytes> <path>
    python -m tests.formats.programs.bombs read <name> <limit in bytes> <path>

Two processes, since making one may take more memory than reading it. Some need no file. Prints the
outcome (``read`` or the class of the error), its message and the growth of the peak of resident memory in
bytes, with tabs between.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro  # noqa: F401 - what is imported later would be counted
import openpyxl  # noqa: F401
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from formats import (
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    ExcelWriterFactory,
    FormatError,
    ReadLimits,
    SequenceFileWriterFactory,
    XmlWriterFactory,
    bounded,
)
from formats.avro.container import Header, block, zigzag

ONE = pa.schema([("a", pa.string())])
TWO = pa.schema([("a", pa.string()), ("b", pa.string())])
WIDE = pa.schema([(f"c{place}", pa.int64()) for place in range(500)])
INTS = pa.schema([("a", pa.list_(pa.int64()))])
PIECE = 1 << 16
TEXT, JSON, CSV = Encoder.simple_string_encoder(), Encoder.json_lines(), Encoder.csv()


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
    return avro(of_one(kind), 1, _deflated(zigzag(limit - 16) + bytes(limit - 15)), "deflate")


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


@dataclass(frozen=True)
class Bomb:
    """A file made for a limit, what reads it, and what becomes of that."""

    code: Any
    file: Callable[[int], Any]
    schema: pa.Schema | None = ONE
    outcome: str = "LimitError"


def _long(code: Any, head: bytes, unit: bytes, tail: bytes, schema: pa.Schema = ONE) -> dict[str, Bomb]:
    """A record much longer than the limit, and one that is nearly as long."""
    return {
        "too long": Bomb(code, lambda limit: repeated(head, unit, tail, size=8 * limit), schema),
        "just fits": Bomb(
            code, lambda limit: repeated(head, unit, tail, size=limit - (limit >> 3)), schema, outcome="read"
        ),
    }


def _gzip(limit: int) -> Any:
    return io.BytesIO(gzip.compress(bytes(16 * limit), 1))


def _packed(codec: str) -> Callable[[int], Any]:
    """A line of sixteen limits in some kilobytes."""

    def file(limit: int) -> Any:
        named: Any = pa.Codec
        return io.BytesIO(named(codec).compress(b"x" * (16 * limit), asbytes=True))

    return file


_LONG = {
    "text": _long(TEXT, b"", b"x", b"\n"),
    "text of wide characters": _long(TEXT, "😀".encode(), b"x", b"\n"),
    "json": _long(JSON, b'{"a":"', b"x", b'"}\n'),
    "json of escapes": _long(JSON, b'{"a":"', b"\\n", b'"}\n'),
    "csv": _long(CSV, b'1,"', b"x", b'"\n', TWO),
    "csv of quotes": _long(CSV, b'1,"', b'""', b'"\n', TWO),
    "csv of backslashes": _long(Encoder.csv(dialect="spark"), b'1,"', b'\\"', b'"\n', TWO),
    "xml": _long(XmlWriterFactory(), b"<RECORDS><RECORD><a>", b"x", b"</a></RECORD></RECORDS>"),
}
BOMBS: dict[str, Bomb] = {
    **{f"{name}, {how}": bomb for name, both in _LONG.items() for how, bomb in both.items()},
    "json list": Bomb(JSON, lambda limit: repeated(b'{"a":[0', b",0", b"]}\n", size=limit), INTS),
    "json of nothing": Bomb(JSON, lambda limit: repeated(b"", b"{}\n", b"", size=limit >> 3), WIDE, "read"),
    "csv of delimiters": Bomb(CSV, lambda limit: repeated(b"", b",", b"\n", size=limit), TWO, "FormatError"),
    "csv header": Bomb(Encoder.csv(header=True), lambda limit: repeated(b"a", b",", b"\n", size=limit), TWO),
    "csv of few columns": Bomb(
        Encoder.csv(header=True), lambda limit: repeated(b"c1\n", b"1\n", b"", size=limit >> 6), WIDE, "read"
    ),
    "xml attribute": Bomb(
        XmlWriterFactory(layout="attributes"),
        lambda limit: repeated(b'<RECORDS><RECORD a="', b"x", b'"/></RECORDS>', size=8 * limit),
    ),
    "xml of nothing": Bomb(
        XmlWriterFactory(),
        lambda limit: repeated(b"<RECORDS>", b"<RECORD/>", b"</RECORDS>", size=limit >> 5),
        WIDE,
        "read",
    ),
    "gzip": Bomb(CompressWriterFactory(encoder=JSON), _gzip),
    "zstd": Bomb(CompressWriterFactory(encoder=TEXT, codec="zstd"), _packed("zstd")),
    "lz4": Bomb(CompressWriterFactory(encoder=CSV, codec="lz4"), _packed("lz4")),
    "bzip2": Bomb(
        CompressWriterFactory(encoder=TEXT, codec="bzip2"),
        lambda limit: io.BytesIO(bz2.compress(bytes(16 * limit))),
    ),
    "xz": Bomb(
        CompressWriterFactory(encoder=TEXT, codec="xz"),
        lambda limit: io.BytesIO(lzma.compress(bytes(4 * limit), preset=0)),
    ),
    "avro string": Bomb(
        AvroWriterFactory(),
        lambda limit: avro(of_one('"string"'), 1, zigzag(limit * 8)),
        None,
        "FormatError",
    ),
    "avro block": Bomb(AvroWriterFactory(), lambda limit: deflated('"bytes"', 8 * limit), None),
    "avro block, just fits": Bomb(
        AvroWriterFactory(),
        lambda limit: avro(
            of_one('"bytes"'), 1, _deflated(zigzag(limit - 16) + bytes(limit - 16)), "deflate"
        ),
        None,
        "read",
    ),
    "avro array of nulls": Bomb(
        AvroWriterFactory(),
        lambda _: avro(of_one('{"type":"array","items":"null"}'), 1, zigzag(10**17) + b"\0"),
        None,
    ),
    "avro array of numbers": Bomb(
        AvroWriterFactory(), lambda limit: deflated('{"type":"array","items":"long"}', limit), None
    ),
    "avro map": Bomb(
        AvroWriterFactory(), lambda limit: deflated('{"type":"map","values":"null"}', limit), None
    ),
    "sequence file": Bomb(
        SequenceFileWriterFactory(), lambda limit: sequence(struct.pack(">ii", 8 * limit, 0)), None
    ),
    "excel cells": Bomb(
        ExcelWriterFactory(), lambda _: workbook(f"<row>{'<c/>' * 2_000_000}</row>"), outcome="FormatError"
    ),
    "excel elements": Bomb(
        ExcelWriterFactory(), lambda _: workbook(f"<row><c>{'<v/>' * 2_000_000}</c></row>")
    ),
    "excel row 10^18": Bomb(
        ExcelWriterFactory(), lambda _: workbook(f'<row r="{10**18}"><c/></row>'), outcome="FormatError"
    ),
    "excel text": Bomb(
        ExcelWriterFactory(),
        lambda limit: workbook(f'<row><c t="inlineStr"><is><t>{"x" * 2 * limit}</t></is></c></row>'),
    ),
    "excel rows of many cells": Bomb(
        ExcelWriterFactory(), lambda _: workbook('<row><c r="XFD2"/></row>' * 3_000), outcome="read"
    ),
}


def _deflated(data: bytes) -> bytes:
    stream = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


def peak() -> int:
    """The most bytes of memory that this program has had; to getrusage its parent counts as well."""
    (line,) = (text for text in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in text)
    return int(line.split()[1]) << 10


def make(name: str, limit: int, path: Path) -> None:
    """Write the bomb, unless it is made while it is read."""
    file = BOMBS[name].file(limit)
    if isinstance(file, io.BytesIO):
        path.write_bytes(file.getvalue())


def read(name: str, limit: int, path: Path) -> None:
    """Read the bomb from its first record to its end."""
    bomb = BOMBS[name]
    file = path.open("rb") if path.exists() else bomb.file(limit)
    before = peak()
    outcome, message = "read", ""
    try:
        lent = bounded(file, limits=ReadLimits(record=limit), name=name)
        for _ in bomb.code.open_reader(lent, schema=bomb.schema):
            pass
    except FormatError as error:
        outcome, message = type(error).__name__, error.message
    print(outcome, message, peak() - before, sep="\t")  # noqa: T201 - to its parent


if __name__ == "__main__":
    {"make": make, "read": read}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
