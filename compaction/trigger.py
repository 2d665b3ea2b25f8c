"""When the small files of a bucket are merged. Pure: sizes, slots and times, no state of its own.

What a trigger needs is in the names and values of the held files themselves, so it goes on after a
restart where it stopped, and a changed strategy applies to what waits already.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from filesink.durations import has_passed
from filesink.errors import SecurityError
from filesink.naming import name_of, parse_hidden
from filesink.parts.stages.open_parts import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a plan is made for.

    Attributes:
        slot: of the epoch.
        now_ms: the driver's clock.
        is_last: whether the input has ended, so that nothing may wait any longer.
        is_epoch: whether there will be an epoch in any case; an epoch that is held only because of
            the plan does not count as one.
        pressing: buckets of which nothing may wait any longer, since they are about to be announced.
    """

    slot: int
    now_ms: int
    is_last: bool
    is_epoch: bool
    pressing: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """The conditions, any of which is enough; ``None`` for none.

    Attributes:
        size: bytes of a bucket's waiting files together, and of a file that needs no company.
        epochs: how many, from that in which the oldest waiting file was closed.
        age_ms: milliseconds since the first record of the oldest waiting file.
    """

    size: int | None
    epochs: int | None
    age_ms: int | None

    def is_full(self, size: int) -> bool:
        """Whether so many bytes are enough."""
        return self.size is not None and size >= self.size

    def is_time(self, waiting: Sequence[Part], moment: Moment) -> bool:
        """Whether nothing of a bucket may wait any longer, whatever its size."""
        if moment.is_last or waiting[0][0].bucket in moment.pressing:
            return True
        if self.age_ms is not None and any(
            has_passed(_born_ms(part), moment.now_ms, self.age_ms) for part in waiting
        ):
            return True
        return (
            self.epochs is not None
            and moment.is_epoch
            and moment.slot - min(map(_slot, waiting)) + 1 >= self.epochs
        )


def _born_ms(part: Part) -> int:
    return min(held.created_ms for held in part)


def _slot(part: Part) -> int:
    """The slot in which a part was closed: that of its last segment, which is in its name."""
    path = part[-1].staged.path
    name = parse_hidden(name_of(path))
    if name is None:
        raise SecurityError(f"'{path}' is not a name of ours; restore the ledger", code="FOREIGN_FILE")
    return name.slot
