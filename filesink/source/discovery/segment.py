"""A segment of the log of found files: its name, and its bytes.

    <first, 12 digits>.found               some files, numbered from ``first`` on
    <first>-<end, 12 digits each>.found    several segments made one: the files ``first`` to before ``end``

Rules: a segment never changes. What two segments say of the same numbers is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from filesink.errors import StateCorruptError
from filesink.framing import check_field, frame, from_json, to_json, unframe
from filesink.source.files import SourceFile

VERSION: Final = 1
_NAME = re.compile(r"([0-9]{12})(?:-([0-9]{12}))?\.found")


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """Which files a segment has; ``end`` is ``None`` for one that was not merged, and only its bytes tell."""

    first: int
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.first:012d}.found" if self.end is None else f"{self.first:012d}-{self.end:012d}.found"

    @staticmethod
    def parse(name: str) -> SegmentName | None:
        """What ``str`` was called on; ``None`` for the name of anything else."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        return SegmentName(int(found[1]), None if found[2] is None else int(found[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Files in the order of their numbers.

    Attributes:
        first: the number of the first one.
        files: at least one.
        nonce: differs for every attempt to write a segment, so that its writer knows it again.
    """

    first: int
    files: Sequence[SourceFile]
    nonce: str

    @property
    def end(self) -> int:
        """The number behind the last one."""
        return self.first + len(self.files)

    def to_bytes(self) -> bytes:
        """As it is stored."""
        value = {
            "first": self.first,
            "nonce": self.nonce,
            "paths": [file.path for file in self.files],
            "sizes": [file.size for file in self.files],
            "times": [file.mtime_ms for file in self.files],
        }
        return frame("found-files", VERSION, to_json(value))

    @staticmethod
    def from_bytes(data: bytes, *, where: str) -> Segment:
        """What ``to_bytes`` was called on.

        Raises:
            StateCorruptError, StateVersionError: it cannot be read; they say ``where``.
        """
        _, payload = unframe("found-files", VERSION, data, where=where)
        try:
            return _segment(from_json(payload, where=where))
        except (KeyError, TypeError, ValueError) as error:
            raise StateCorruptError(f"{where} is malformed: {type(error).__name__}", code="JSON") from error


def _segment(value: dict[str, Any]) -> Segment:
    check_field("first", value["first"], int)
    check_field("nonce", value["nonce"], str)
    files = [
        SourceFile(_checked(path, str), _checked(size, int), _checked(time, int))
        for path, size, time in zip(value["paths"], value["sizes"], value["times"], strict=True)
    ]
    if not files:
        raise ValueError("no files")
    return Segment(first=value["first"], files=files, nonce=value["nonce"])


def _checked(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value
