"""What a driver remembers of its last epochs, for those who look at them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from html import escape
from typing import Generic, TypeVar

from filesink.commit.outcome import Outcome

C = TypeVar("C")
R = TypeVar("R")
log = logging.getLogger("filesink")

_OUTCOMES = 100
_COMMITTABLES = 20_000  # that of a file takes about 650 bytes: 13 MB


class Reports(list[R]):
    """Reports, oldest first. A notebook shows them as a list, the newest on top."""

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(repr(report)[1:-1])}</li>" for report in reversed(self))
        return f"<ul>{lines}</ul>" if lines else "<p>no epoch yet</p>"


class RecentOutcomes(Generic[C]):
    """The newest outcomes: at most 100, and fewer if they have more than 20,000 committables together.

    The newest one is always there. Used by several threads.

    Args:
        told: makes the line in the log for an outcome.
        afterwards: called when an outcome is remembered.
    """

    def __init__(
        self, told: Callable[[Outcome[C]], str] = str, afterwards: Callable[[], object] = lambda: None
    ) -> None:
        self._told = told
        self._afterwards = afterwards
        self._lock = threading.Lock()
        self._outcomes: deque[Outcome[C]] = deque(maxlen=_OUTCOMES)

    def append(self, outcome: Outcome[C]) -> None:
        """Remember one more, write a line to the log, and forget the oldest if there are too many."""
        log.info("%s", self._told(outcome))
        with self._lock:
            self._outcomes.append(outcome)
            committables = sum(len(one.committables) for one in self._outcomes)
            while committables > _COMMITTABLES and len(self._outcomes) > 1:
                committables -= len(self._outcomes.popleft().committables)
        self._afterwards()

    def latest(self) -> Sequence[Outcome[C]]:
        """All of them, oldest first."""
        with self._lock:
            return tuple(self._outcomes)
