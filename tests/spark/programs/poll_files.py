"""An outside reader: opens every file the moment it appears, and looks again and again.

    python -m tests.spark.programs.poll_files <directory> <suffix>

Runs until its standard input is closed, then prints what it has seen as JSON. Knows nothing of the
sink: whatever ends with the suffix is taken for a whole file, hidden or not.
"""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def main(base: Path, suffix: str) -> None:
    """Poll until nobody listens any more."""
    known: dict[str, tuple[int, int, int]] = {}
    wrong: list[str] = []
    polls = 0
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        polls += 1
        look(base, suffix, known, wrong)
    look(base, suffix, known, wrong)
    print(json.dumps({"polls": polls, "files": len(known), "wrong": wrong}))  # noqa: T201


def look(base: Path, suffix: str, known: dict[str, tuple[int, int, int]], wrong: list[str]) -> None:
    """Open what is new, and compare what is not."""
    seen = set()
    for path in paths(base, suffix):
        found = path.stat()
        now = (found.st_size, found.st_ino, found.st_mtime_ns)
        before = known.setdefault(str(path), now)
        seen.add(str(path))
        if before != now:
            wrong.append(f"{path} changed from {before} to {now}")
        elif before is now:
            wrong += unreadable(path, suffix)
    wrong += [f"{path} vanished" for path in set(known) - seen]


def paths(base: Path, suffix: str) -> list[Path]:
    """Every file with the suffix; a directory may come and go while it is listed."""
    return [
        Path(directory) / name
        for directory, _, names in os.walk(base)
        for name in names
        if name.endswith(suffix)
    ]


def unreadable(path: Path, suffix: str) -> list[str]:
    """Why the file is not whole, if it is not."""
    try:
        if suffix == ".parquet":
            rows = pq.ParquetFile(path).read().num_rows
        else:
            data = path.read_bytes()
            rows = data.count(b"\n") if data.endswith(b"\n") else 0
    except (OSError, pa.ArrowException) as error:
        return [f"{path}: {error!r}"]
    return [] if rows else [f"{path} is incomplete"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
