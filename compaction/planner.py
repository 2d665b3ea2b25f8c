"""Which of the waiting files become one file. Pure.

Each file is taken in its order. Files that may be merged fill an output until it has reached the
size that is aimed at, so an output is never larger than that size and one more input. A file that
is large enough by itself is published as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from compaction.trigger import Moment, Trigger
from filesink.parts.stages.open_parts import Part

#: Held files that may wait in a sink, as they are part of its state; the fullest buckets go first.
MAX_WAITING = 10_000


@dataclass(slots=True)
class Plan:
    """``groups``: the parts of each file to be made now; ``waiting``: those that stay."""

    groups: list[list[Part]] = field(default_factory=list)
    waiting: list[Part] = field(default_factory=list)


def plan(parts: Iterable[Part], trigger: Trigger, moment: Moment, *, key: Callable[[Part], Hashable]) -> Plan:
    """What becomes of ``parts``, all buckets together.

    Args:
        parts: everything that is closed and not published; the oldest first.
        trigger: when a bucket's files are merged.
        moment: when this is asked.
        key: parts of one bucket may become one file if their keys are equal.
    """
    buckets: dict[str, list[Part]] = {}
    for part in parts:
        buckets.setdefault(part[0].bucket, []).append(part)
    done = Plan()
    late: list[list[Part]] = []
    for waiting in buckets.values():
        full, rest = _fill(waiting, trigger, key)
        done.groups += full
        left = [part for group in rest for part in group]
        if left and (trigger.is_full(sum(map(size_of, left))) or trigger.is_time(left, moment)):
            done.groups += rest
        elif left:
            late.append(left)
    _bound(done, late, trigger, key)
    return done


def size_of(part: Part) -> int:
    """Bytes of a part."""
    return sum(held.size for held in part)


def _fill(
    parts: Sequence[Part], trigger: Trigger, key: Callable[[Part], Hashable]
) -> tuple[list[list[Part]], list[list[Part]]]:
    """Groups that are full, and for each key the one that is not."""
    full: list[list[Part]] = []
    open_groups: dict[Hashable, list[Part]] = {}
    sizes: dict[Hashable, int] = {}
    for part in parts:
        size = size_of(part)
        if trigger.is_full(size):
            full.append([part])
            continue
        kind = key(part)
        open_groups.setdefault(kind, []).append(part)
        sizes[kind] = sizes.get(kind, 0) + size
        if trigger.is_full(sizes[kind]):
            full.append(open_groups.pop(kind))
            del sizes[kind]
    return full, list(open_groups.values())


def _bound(done: Plan, late: list[list[Part]], trigger: Trigger, key: Callable[[Part], Hashable]) -> None:
    """Keep what may wait, and merge the buckets with the most files if they are too many."""
    late.sort(key=len)
    waiting = sum(len(part) for parts in late for part in parts)
    while late and waiting > MAX_WAITING:
        parts = late.pop()
        waiting -= sum(map(len, parts))
        done.groups += _fill(parts, trigger, key)[1]
    done.waiting = [part for parts in late for part in parts]
