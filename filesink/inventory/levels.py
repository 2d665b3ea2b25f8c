"""Which segments become one. Pure.

Rules:
1. Entries become a segment of level 0. Where a level has eight, they become one of the next.
2. In one fold one level at most, the lowest: so no fold has much more to do than another.
3. A segment of a higher level is older than all of lower ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from filesink.inventory.mark import Segment

FAN_IN: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What becomes of the segments of one kind.

    Attributes:
        merged: become one, of the next level; the oldest first.
        kept: stay as they are.
    """

    merged: tuple[Segment, ...]
    kept: tuple[Segment, ...]

    @property
    def level(self) -> int:
        """Of those that become one."""
        return self.merged[0].level

    @property
    def has_oldest(self) -> bool:
        """Whether no segment is older than those that become one."""
        return all(segment.level < self.level for segment in self.kept)


def plan(segments: Sequence[Segment]) -> Plan | None:
    """What to do with ``segments`` of one kind; ``None`` if no level is full."""
    members = Counter(segment.level for segment in segments)
    full = min((level for level, count in members.items() if count >= FAN_IN), default=None)
    if full is None:
        return None
    return Plan(
        merged=tuple(segment for segment in segments if segment.level == full),
        kept=tuple(segment for segment in segments if segment.level != full),
    )
