"""Calls that were reported as failed and are carried out all the same, some time later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Late:
    """One such call; ``process`` has given up waiting for it, or is dead."""

    process: Any
    operation: str
    path: str
    effect: Callable[[], object]


class LateEffects:
    """What waits on a server that is slow. Its order is not that of the calls."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.waiting: list[tuple[int, Late]] = []

    def put_off(self, late: Late, *, after: int, delay: int = 0) -> None:
        """Have ``late`` carried out ``delay`` calls after call number ``after``; 0 draws a number."""
        drawn = 1 + self._random.randrange(self._random.choice((2, 20, 200)))
        delay = delay or drawn
        self.waiting.append((after + delay, late))

    def due(self, number: int) -> list[Late]:
        """What is to be carried out before call ``number``; given once."""
        due = sorted((item for item in self.waiting if item[0] <= number), key=lambda item: item[0])
        self.waiting = [item for item in self.waiting if item[0] > number]
        return [late for _, late in due]

    def clear(self) -> None:
        """The server has lost its power, too."""
        self.waiting.clear()
