"""Makes bombs and reads them; prints what became of each and what memory that took.

    python -m tests.formats.programs.bombs <directory>

Reads names of bombs from its standard input. Each is made by one process and read by another, since making
it may take more memory than reading it; both are forked from this one, which has imported everything and done
nothing. Prints a line for each: the outcome (``read`` or the class of the error), its message and the growth
of the peak of resident memory in bytes, with tabs between.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from formats.avro.container import zigzag
from tests.formats.programs.bomb_files import (
    avro,
    deflated,
    of_one,
    packed,
    raw_deflate,
    repeated,
    sequence,
    workbook,
    zipped,
)

ONE = pa.schema([("a", pa.string())])
TWO = pa.schema([("a", pa.string()), ("b", pa.string())])
WIDE = pa.schema([(f"c{place}", pa.int64()) for place in range(500)])
INTS = pa.schema([("a", pa.list_(pa.int64()))])
TEXT, JSON, CSV = Encoder.simple_string_encoder(), Encoder.json_lines(), Encoder.csv()
LIMIT = 32 << 20  # bytes
#: What Arrow's allocator takes for itself with its first large array, at most.
ALLOCATOR = 56 << 20


@dataclass(frozen=True)
class Bomb:
    """A file made for a limit, what reads it, and what becomes of that."""

    code: Any
    file: Callable[[int], Any]
    schema: pa.Schema | None = ONE
    outcome: str = "LimitError"
    limit: int = LIMIT

    @property
    def most(self) -> int:
        """Bytes that reading it may take: four limits, of which a large one has room for the allocator."""
        return 4 * self.limit + (ALLOCATOR if self.limit < LIMIT else 0)


def _long(code: Any, head: bytes, unit: bytes, tail: bytes, schema: pa.Schema = ONE) -> dict[str, Bomb]:
    """A record much longer than the limit, and one that is nearly as long."""
    return {
        "too long": Bomb(code, lambda limit: repeated(head, unit, tail, size=8 * limit), schema),
        "just fits": Bomb(
            code, lambda limit: repeated(head, unit, tail, size=limit - (limit >> 3)), schema, outcome="read"
        ),
    }


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
    "json of nothing": Bomb(
        JSON, lambda limit: repeated(b"", b"{}\n", b"", size=limit >> 6), WIDE, "read", limit=LIMIT >> 2
    ),
    "csv of delimiters": Bomb(CSV, lambda limit: repeated(b"", b",", b"\n", size=limit), TWO, "FormatError"),
    "csv header": Bomb(Encoder.csv(header=True), lambda limit: repeated(b"a", b",", b"\n", size=limit), TWO),
    "csv of few columns": Bomb(
        Encoder.csv(header=True), lambda limit: repeated(b"c1\n", b"1\n", b"", size=limit >> 6), WIDE, "read"
    ),
    "xml attribute": Bomb(
        XmlWriterFactory(layout="attributes"),
        lambda limit: repeated(b'<RECORDS><RECORD a="', b"x", b'"/></RECORDS>', size=8 * limit),
        limit=LIMIT >> 2,
    ),
    "xml of nothing": Bomb(
        XmlWriterFactory(),
        lambda limit: repeated(b"<RECORDS>", b"<RECORD/>", b"</RECORDS>", size=limit >> 5),
        WIDE,
        "read",
        limit=LIMIT >> 2,
    ),
    "gzip": Bomb(CompressWriterFactory(encoder=JSON), zipped),
    "zstd": Bomb(CompressWriterFactory(encoder=TEXT, codec="zstd"), packed("zstd")),
    "lz4": Bomb(CompressWriterFactory(encoder=CSV, codec="lz4"), packed("lz4")),
    "bzip2": Bomb(
        CompressWriterFactory(encoder=TEXT, codec="bzip2"),
        lambda limit: io.BytesIO(bz2.compress(bytes(5 * limit))),
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
            of_one('"bytes"'), 1, raw_deflate(zigzag(limit - 16) + bytes(limit - 16)), "deflate"
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
        ExcelWriterFactory(), lambda _: workbook('<row><c r="XFD2"/></row>' * 1_500), outcome="read"
    ),
}
#: The same, so large that reading them takes long.
LARGE: dict[str, Bomb] = {
    "json of nothing": replace(
        BOMBS["json of nothing"], file=lambda limit: repeated(b"", b"{}\n", b"", size=limit >> 3), limit=LIMIT
    ),
    "xml attribute": replace(BOMBS["xml attribute"], limit=LIMIT),
    "xml of nothing": replace(
        BOMBS["xml of nothing"],
        file=lambda limit: repeated(b"<RECORDS>", b"<RECORD/>", b"</RECORDS>", size=limit >> 5),
        limit=LIMIT,
    ),
    "bzip2": replace(BOMBS["bzip2"], file=lambda limit: io.BytesIO(bz2.compress(bytes(16 * limit)))),
    "excel rows of many cells": replace(
        BOMBS["excel rows of many cells"], file=lambda _: workbook('<row><c r="XFD2"/></row>' * 3_000)
    ),
}
ALL = BOMBS | {f"{name}, large": bomb for name, bomb in LARGE.items()}
#: What is exploded for a change: no large one, and of those that are alike the one that is soon done.
CHANGED = BOMBS.keys() - {
    *("csv, too long", "csv, just fits", "csv of backslashes, just fits", "avro block, just fits"),
    *("lz4", "bzip2", "xz", "excel text", "excel rows of many cells"),
}


def peak() -> int:
    """The most bytes of memory that this program has had; to getrusage its parent counts as well."""
    (line,) = (text for text in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in text)
    return int(line.split()[1]) << 10


def make(name: str, path: Path) -> None:
    """Write the bomb, unless it is made while it is read."""
    bomb = ALL[name]
    file = bomb.file(bomb.limit)
    if isinstance(file, io.BytesIO):
        path.write_bytes(file.getvalue())


def read(name: str, path: Path) -> None:
    """Read the bomb from its first record to its end."""
    bomb = ALL[name]
    file = path.open("rb") if path.exists() else bomb.file(bomb.limit)
    before = peak()
    outcome, message = "read", ""
    try:
        lent = bounded(file, limits=ReadLimits(record=bomb.limit), name=name)
        for _ in bomb.code.open_reader(lent, schema=bomb.schema):
            pass
    except FormatError as error:
        outcome, message = type(error).__name__, error.message
    print(outcome, message, peak() - before, sep="\t", flush=True)  # noqa: T201 - to its parent


def in_a_child(body: Callable[[str, Path], None], name: str, path: Path) -> bool:
    """Whether a process of its own came to the end of it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body(name, path)
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    bomb_file = Path(sys.argv[1]) / "bomb"
    for given in sys.stdin:
        bomb_name = given.strip()
        if not (in_a_child(make, bomb_name, bomb_file) and in_a_child(read, bomb_name, bomb_file)):
            sys.exit(1)
        bomb_file.unlink(missing_ok=True)
