"""What a stranger sees below a base path: by the operating system and DuckDB, never by our ledger."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import duckdb

LEDGER = "_filesink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What must never change of a file that has been seen. ``content`` is a SHA-256."""

    size: int
    inode: int
    mtime_ns: int
    content: str


def files(base: Path) -> list[Path]:
    """Every file below ``base``, hidden ones and the ledger's too, by path."""
    return sorted(Path(directory) / name for directory, _, names in os.walk(base) for name in names)


def visible(base: Path) -> dict[str, Identity]:
    """What a reader sees who skips names that begin with a dot or an underscore."""
    return {
        str(path.relative_to(base)): identity(path)
        for path in files(base)
        if not any(part[0] in "._" for part in path.relative_to(base).parts)
    }


def everything(base: Path) -> dict[str, Identity]:
    """Every file, to show that nothing at all was touched."""
    return {str(path.relative_to(base)): identity(path) for path in files(base)}


def hidden(base: Path) -> list[str]:
    """Hidden files, which after a good epoch are only those that stay open."""
    found = [path.relative_to(base) for path in files(base)]
    return [str(path) for path in found if path.name[0] == "." and path.parts[0] != LEDGER]


def identity(path: Path) -> Identity:
    """Size, inode, time and content of one file."""
    found = path.stat()
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return Identity(size=found.st_size, inode=found.st_ino, mtime_ns=found.st_mtime_ns, content=content)


def parquet_ids(base: Path, column: str = "id") -> list[int]:
    """The ids in every ``*.parquet``, hidden ones included, as a careless reader takes them; sorted."""
    paths = [str(path) for path in files(base) if path.name.endswith(".parquet")]
    if not paths:
        return []
    query = f"SELECT {column} FROM read_parquet(?, hive_partitioning = false) ORDER BY 1"  # noqa: S608
    return [row[0] for row in duckdb.execute(query, [paths]).fetchall()]


def lines(base: Path, suffix: str) -> list[str]:
    """The lines of every file with ``suffix``, hidden ones included; sorted."""
    texts = [path.read_text() for path in files(base) if path.name.endswith(suffix)]
    assert all(text.endswith("\n") for text in texts)
    return sorted(line for text in texts for line in text.splitlines())


def eventually(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait until ``condition`` holds; the bound only ends a test that would hang."""
    for _ in _ticks(seconds):
        if condition():
            return
    raise AssertionError("it did not become true")


def _ticks(seconds: float) -> Iterator[None]:
    end = monotonic() + seconds
    while monotonic() < end:
        yield
        sleep(0.02)
