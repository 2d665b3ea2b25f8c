"""Where a stream stands that follows a sink's directory. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from filesink.source.streams import Offset


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """What lies before an offset; ordered as files are read.

    Attributes:
        is_behind: whether the snapshot of the start was read.
        version: all files up to this one were read; else that of the snapshot.
        index: so many files of the next version were read; else of the snapshot.
    """

    is_behind: bool
    version: int
    index: int

    @classmethod
    def behind(cls, version: int, index: int = 0) -> Place:
        """All of ``version`` was read, and so many files of the next."""
        return cls(True, version, index)  # noqa: FBT003

    @classmethod
    def inside(cls, version: int, index: int) -> Place:
        """So many files of the snapshot of the start were read."""
        return cls(False, version, index)  # noqa: FBT003

    @classmethod
    def of(cls, offset: Offset) -> Place:
        """That of an offset that Spark has kept."""
        return cls(not offset.get("snapshot"), offset["version"], offset["index"])

    def offset(self) -> dict[str, Any]:
        """As Spark keeps it."""
        known: dict[str, Any] = {"version": self.version, "index": self.index}
        return known if self.is_behind else {**known, "snapshot": True}


def has_waited(offset: Offset) -> bool:
    """Whether an offset is that of a listing which has found no file yet: no sink had come."""
    return "version" not in offset and offset.get("files") == 0
