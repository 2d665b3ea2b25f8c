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
        after: what is done after each epoch; what it returns is remembered.
    """

    def __init__(
        self,
        told: Callable[[Outcome[C]], str] = str,
        *,
        after: Callable[[Outcome[C]], Outcome[C]] = lambda outcome: outcome,
    ) -> None:
        self._told = told
        self._after = after
        self._lock = threading.Lock()
        self._outcomes: deque[Outcome[C]] = deque(maxlen=_OUTCOMES)

    def append(self, outcome: Outcome[C]) -> Outcome[C]:
        """Remember one more, write a line to the log, and forget the oldest if there are too many.

        Returns:
            What ``after`` has made of it. What that raises is raised when the outcome is remembered.
        """
        try:
            outcome = self._after(outcome)
        finally:
            self._remember(outcome)
        return outcome

    def _remember(self, outcome: Outcome[C]) -> None:
        log.info("%s", self._told(outcome))
        with self._lock:
            self._outcomes.append(outcome)
            committables = sum(len(one.committables) for one in self._outcomes)
            while committables > _COMMITTABLES and len(self._outcomes) > 1:
                committables -= len(self._outcomes.popleft().committables)

    def latest(self) -> Sequence[Outcome[C]]:
        """All of them, oldest first."""
        with self._lock:
            return tuple(self._outcomes)
