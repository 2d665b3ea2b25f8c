"""What a source reads: files as a listing finds them, and the ranges of them that tasks take. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from filesink.naming import UNFINISHED_COPY
from formats.api import Split


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file, as it was when it was found.

    Attributes:
        path: a local path or a URI, as messages and the column ``_file`` show it.
        size: in bytes.
        mtime_ms: milliseconds since 1970 UTC, by the clock of its store; 0 where that tells none.
        version: of the snapshot or epoch of a sink that it is of; 0 for a file that was listed.
        bucket: its directory below the base path of that sink; ``""`` for others.
    """

    path: str
    size: int
    mtime_ms: int
    version: int = 0
    bucket: str = ""


@dataclass(frozen=True, slots=True)
class FileSplit:
    """A file, or the records of it that begin in a range of its bytes; ``None`` for all of them."""

    file: SourceFile
    range: Split | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return self.file.size if self.range is None else self.range.end - self.range.start


def is_hidden(name: str) -> bool:
    """Whether readers pass over a file or directory of this name, by Spark's rule.

    ``_k=v`` is the directory of a partition. What Hadoop is still copying has an ending of its own.
    """
    return (
        name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(UNFINISHED_COPY)
    )
