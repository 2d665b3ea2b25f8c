"""Processing time for a writer: calls at a given moment, in the writer's own thread (FLIP-177)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from filesink.ports import Clock


class Timers:
    """Callbacks that wait for their time. Used by the writer's thread alone.

    They are called when a batch has been written, before ``prepare_commit``, and while the writer yields:
    never while it is at work, and so later than they were registered for, if it works for long. What is
    still waiting when the writer ends is forgotten.

    Args:
        clock: what time it is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[tuple[int, int, Callable[[int], object]]] = []
        self._numbers = count()  # those of one moment keep their order

    def register(self, at_ms: int, callback: Callable[[int], object]) -> None:
        """Have ``callback(at_ms)`` called once, as soon as the clock shows ``at_ms``, or has passed it.

        An error of the callback is raised by what has called it, and fails the task.
        """
        heappush(self._waiting, (at_ms, next(self._numbers), callback))

    def call_due(self) -> bool:
        """Call those whose time has come, the earliest first; whether there were any."""
        if not self._waiting:
            return False  # without a look at the clock
        now, found = self._clock.now_ms(), []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heappop(self._waiting))
        for at_ms, _, callback in found:  # one that registers itself again must not go on for ever
            callback(at_ms)
        return bool(found)

    def until_next(self) -> float | None:
        """Seconds until the next one is due; ``None`` if none waits."""
        return max(0, self._waiting[0][0] - self._clock.now_ms()) / 1000 if self._waiting else None
