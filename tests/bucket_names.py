"""Names of directories that readers are asked about."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.storage.local.posix import PosixFs

#: Every character of ASCII that a name may hold, and of others one of each kind that software trips over.
CHARACTERS = [chr(code) for code in range(1, 128) if chr(code) != "/"] + [
    *(
        "\x85",
        "\xa0",
        "\u2028",
        "\u200b",
        "\u202e",
        "\ufeff",
        "\ue000",
        "\ufdd0",
        "\ufffd",
        "\ufffe",
        "\uffff",
    ),
    *("\xe9", "e\u0301", "\U0001f600", "\U0001fffe", "\U000e0001", "\U0010ffff"),
]
PLACES = {"beginning": "{}b", "middle": "a{}b", "end": "a{}"}
#: Who does not see a directory with such a name beside another.
UNSEEN = {
    (".", "beginning"): {"pyarrow", "spark"},
    ("_", "beginning"): {"pyarrow", "spark"},
    **{("\\", place): {"duckdb"} for place in PLACES},
}
NAMES = [
    *(
        "*",
        "**",
        "?",
        "[a]",
        "[!a]",
        "{a,b}",
        "{a}",
        "a%2Fb",
        "%zz",
        "a%0Ab",
        "a..b",
        "a.",
        " ",
        "~",
        "-x",
        "#x",
    ),
    *("a&b", "k==", "k=a=b", "k= a ", "k='a'", 'k="a"', "k=a+b", "http:", "C:", "file:", "a.parquet", "k=_x"),
    *("k=.x", "a.tmp", "x.crc", "CON", "null", "k=__HIVE_DEFAULT_PARTITION__"),
]


def long_paths() -> list[str]:
    """The longest name, and the longest and the deepest id."""
    return ["x" * 255, "\xe9" * 127, "/".join(["x" * 255] * 12), "/".join("x" * 256)]


def two_files(base: Path, name: str) -> Path:
    """``base`` with a row in the directory ``name`` and one beside it."""
    for number, directory in enumerate([base / "beside", base / name], 1):
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"n": [number]}), os.fspath(directory / "part-0.parquet"))
    return base


def path_of(length: int) -> str:
    """The path of a Parquet file in as many directories as make it as long as that."""
    name = "part-0.parquet"
    levels, rest = divmod(length - len(name) - 2, 201)
    return "/".join(["x" * 200] * levels + ["x" * (rest + 1), name])


def make(fs: PosixFs, path: str) -> None:
    """The second file of ``two_files``, however long its path is."""
    parts = path.split("/")
    for level in range(1, len(parts)):
        fs.mkdir("/".join(parts[:level]))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": [2]}), sink)
    handle = fs.create_exclusive(path)
    fs.write(handle, memoryview(sink.getvalue()))
    fs.close(handle)
