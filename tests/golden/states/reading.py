"""The rows of a frozen state as a stranger reads them: by the names and the contents of files alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import fastavro
import pyarrow.parquet as pq


def _text(path: Path) -> list[int]:
    return [int(line) for line in _lines(path)]


def _json(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in _lines(path)]


def _csv(path: Path) -> list[int]:
    lines = _lines(path, encoding="latin-1")
    if lines[0].startswith("id,"):
        lines = lines[1:]
    return [int(record[0]) for record in csv.reader(lines, escapechar="\\")]


def _avro(path: Path) -> list[int]:
    with path.open("rb") as file:
        return [record["id"] for record in fastavro.reader(file)]


def _parquet(path: Path) -> list[int]:
    return pq.ParquetFile(path).read(columns=["id"])["id"].to_pylist()


_READERS: dict[str, Callable[[Path], list[int]]] = {
    ".txt": _text,
    ".json": _json,
    ".csv": _csv,
    ".avro": _avro,
    ".parquet": _parquet,
}


def _lines(path: Path, encoding: str = "ascii") -> list[str]:
    text = path.read_text(encoding=encoding)
    assert text.endswith("\n"), f"{path} is not whole"
    return text.splitlines()


def visible(base: Path) -> list[Path]:
    """Files that readers take for data: no name on their way begins with a dot or an underscore."""
    files = (path for path in sorted(base.rglob("*")) if path.is_file())
    return [path for path in files if not any(name[0] in "._" for name in path.relative_to(base).parts)]


def ids(files: Iterable[Path]) -> list[int]:
    """The ids in them, in order; one that is there twice is twice in the list."""
    return sorted(number for path in files for number in _READERS[path.suffix](path))


def visible_ids(base: Path) -> list[int]:
    """What a reader of the directory has."""
    return ids(visible(base))


def dead_letters(base: Path) -> list[int]:
    """What was put aside."""
    files = (base / "_dead_letters").rglob("*.parquet")
    return ids(path for path in files if path.name[0] not in "._")


def success_files(base: Path) -> list[str]:
    """Buckets that have been announced."""
    return sorted(str(path.parent.relative_to(base)) for path in base.rglob("_SUCCESS"))


def batches(checkpoint: Path) -> int:
    """How many micro-batches Spark has planned."""
    return 1 + max(int(path.name) for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())
