"""What stands in the directory of an inventory: its names, and nothing that is in the files.

    _filesink/_inventory/<version>.entry              an epoch that is visible
                         <number>.mark                everything up to some version is in segments
                         <number>-<uuid>.files        a segment, made for the mark with this number
                         <number>-<uuid>.epochs       as well
                         <id>.schema                  columns that entries and segments name

Rules:
1. The newest mark counts. An entry at or below its version is void, whoever wrote it and whenever.
2. No name ends like a data file, and none is used for two things.
3. Hidden names are those of files that are being put, or whose putting has died. Nobody reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from filesink.naming import LEDGER_ROOT
from filesink.storage.api import Entry

DIRECTORY = f"{LEDGER_ROOT}/_inventory"
SegmentKind = Literal["files", "epochs"]

_ENTRY = re.compile(r"([0-9]{12})\.entry")
_MARK = re.compile(r"([0-9]{6,12})\.mark")
_SEGMENT = re.compile(r"([0-9]{6,12})-[0-9a-f-]{36}\.(files|epochs)")
_SCHEMA = re.compile(r"([0-9a-f]{16})\.schema")
_HIDDEN = re.compile(r"\.(?P<target>[0-9a-f-]+\.(?:entry|mark|files|epochs|schema))\.")


def entry_path(version: int) -> str:
    """Where the entry of ``version`` stands, or would."""
    return f"{DIRECTORY}/{version:012d}.entry"


def mark_path(number: int) -> str:
    """Where the mark with this number stands, or would."""
    return f"{DIRECTORY}/{number:06d}.mark"


def schema_path(schema_id: str) -> str:
    """Where the columns with this id stand."""
    return f"{DIRECTORY}/{schema_id}.schema"


def segment_name(number: int, uuid: str, kind: SegmentKind) -> str:
    """The name of a segment that is made for the mark ``number``."""
    return f"{number:06d}-{uuid}.{kind}"


def segment_path(name: str) -> str:
    """Where the segment ``name`` stands."""
    return f"{DIRECTORY}/{name}"


def is_segment(name: str, kind: str) -> bool:
    """Whether a segment of ``kind`` can have this name."""
    found = _SEGMENT.fullmatch(name)
    return found is not None and found[2] == kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What stood in the directory at one moment.

    Attributes:
        entries: versions, ascending, also void ones.
        marks: numbers, ascending.
        segments: number and name of each.
        hidden: hidden name, and the name that it was to become.
        schemas: ids.
    """

    entries: tuple[int, ...]
    marks: tuple[int, ...]
    segments: tuple[tuple[int, str], ...]
    hidden: tuple[tuple[Entry, str], ...]
    schemas: frozenset[str]

    @staticmethod
    def of(entries: Iterable[Entry]) -> Listing:
        """What a listing of the store tells."""
        there = list(entries)
        names = [entry.name for entry in there]
        hidden = ((entry, _HIDDEN.match(entry.name)) for entry in there)
        return Listing(
            entries=tuple(sorted(_numbers(_ENTRY, names))),
            marks=tuple(sorted(_numbers(_MARK, names))),
            segments=tuple(sorted((int(found[1]), found[0]) for found in _matches(_SEGMENT, names))),
            hidden=tuple((entry, found["target"]) for entry, found in hidden if found),
            schemas=frozenset(found[1] for found in _matches(_SCHEMA, names)),
        )

    def is_settled(self, target: str, *, version: int) -> bool:
        """Whether nothing can become the file ``target`` any more that would count.

        Args:
            target: name of an entry, a mark, a segment or columns.
            version: the newest that is known.
        """
        if found := _ENTRY.fullmatch(target):
            return int(found[1]) <= version
        if found := _SCHEMA.fullmatch(target):
            return found[1] in self.schemas
        found = _MARK.fullmatch(target) or _SEGMENT.fullmatch(target)
        return found is not None and bool(self.marks) and int(found[1]) <= self.marks[-1]


def _numbers(pattern: re.Pattern[str], names: Iterable[str]) -> Iterator[int]:
    return (int(found[1]) for found in _matches(pattern, names))


def _matches(pattern: re.Pattern[str], names: Iterable[str]) -> Iterator[re.Match[str]]:
    return (found for name in names if (found := pattern.fullmatch(name)))
