"""A mark: everything up to its version is in the segments that it names. The newest one counts.

Marks are numbered consecutively. Each is created if absent, by a driver that has read the one before, and has
the hash of that one. So marks of two inventories cannot be mixed without notice.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Final

from filesink.errors import StateCorruptError
from filesink.framing import frame, from_json, to_json, unframe
from filesink.inventory.entry import checked, well_formed
from filesink.inventory.names import SegmentKind, is_segment, mark_path

MARK_VERSION: Final = 1
_KIND: Final = "inventory-mark"
_FIELDS: Final = {
    "number": int, "previous": str, "version": int, "folded_ms": int, "base_id": str, "horizon": int,
}  # fmt: skip
_OF_SEGMENTS: Final = {
    "name": str, "kind": str, "level": int, "rows": int, "first": int, "last": int,
    "visible_ms": int, "size": int, "sha256": str,
}  # fmt: skip


class MarkKind(Enum):
    """How a mark came to be."""

    FRESH = "fresh"  # the first epoch of the path begins with it
    ADOPTING = "adopting"  # what was there before is being looked up; nobody can read yet
    FOLD = "fold"
    ADOPTED = "adopted"  # what was there before is in its segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """What a mark says of a segment.

    Attributes:
        name: in the directory of the inventory.
        kind: what its rows are.
        level: how often its rows were merged.
        rows: their number.
        first, last: versions that it covers.
        visible_ms: the latest such time of its epochs; 0 for files.
        size: in bytes.
        sha256: of its bytes.
    """

    name: str
    kind: SegmentKind
    level: int
    rows: int
    first: int
    last: int
    visible_ms: int
    size: int
    sha256: str

    def __post_init__(self) -> None:
        if not is_segment(self.name, self.kind):
            raise ValueError(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What stands in ``<number>.mark``.

    Attributes:
        number: its place, 0, 1, 2 …
        previous: SHA-256 of the bytes of the mark before, ``""`` for the first.
        version: everything up to it is in ``segments``.
        folded_ms: when it was made, milliseconds since 1970 UTC.
        base_id: made with the first mark; tells two inventories apart.
        kind: see there.
        horizon: the oldest version whose files are known.
        segments: in no order.
    """

    number: int
    previous: str
    version: int
    folded_ms: int
    base_id: str
    kind: MarkKind
    horizon: int
    segments: tuple[Segment, ...] = ()

    def to_bytes(self) -> bytes:
        """Durable form: framed JSON."""
        value = {name: getattr(self, name) for name in _FIELDS}
        value |= {"kind": self.kind.value, "segments": [asdict(segment) for segment in self.segments]}
        return frame(_KIND, MARK_VERSION, to_json(value))

    @staticmethod
    def from_bytes(data: bytes, *, where: str) -> Mark:
        """What ``to_bytes`` was called on.

        Raises:
            StateCorruptError, StateVersionError: see ``filesink.framing.unframe``; ``FOREIGN``, it is that of
                another number than its name tells.
        """
        _, payload = unframe(_KIND, MARK_VERSION, data, where=where)
        value = from_json(payload, where=where)
        with well_formed(where):
            segments = tuple(_segment(one) for one in value["segments"])
            mark = Mark(**checked(value, _FIELDS), kind=MarkKind(value["kind"]), segments=segments)
        if where != mark_path(mark.number):
            raise StateCorruptError(
                f"{where} is mark {mark.number}: it was copied here. Remove it, or call filesink.adopt()",
                code="FOREIGN",
            )
        return mark

    def of_kind(self, kind: SegmentKind) -> tuple[Segment, ...]:
        """Its segments of ``kind``, the oldest first."""
        found = (segment for segment in self.segments if segment.kind == kind)
        return tuple(sorted(found, key=lambda segment: segment.first))


def digest(data: bytes) -> str:
    """The hash by which marks name other files."""
    return hashlib.sha256(data).hexdigest()


def _segment(value: Any) -> Segment:
    return Segment(**checked(value, _OF_SEGMENTS))


def first_mark(kind: MarkKind, *, now_ms: int, base_id: str) -> Mark:
    """The mark with number 0, of an inventory in which nothing is yet."""
    return Mark(number=0, previous="", version=0, folded_ms=now_ms, base_id=base_id, kind=kind, horizon=0)
