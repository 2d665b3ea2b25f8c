"""The calls of a life, counted, and the death at one of them.

All processes of a life count on: the driver tells a task how far it is, and the task tells the driver. Who
made which call is the *trace*, a letter for each.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

DRIVER, TASK, SERVER, CLIENT = "driver", "task", "server", "client"
LETTERS = {DRIVER: "D", TASK: "T", CLIENT: "C"}


@dataclass(frozen=True, kw_only=True)
class Death:
    """Who is killed, and when.

    Attributes:
        who: ``DRIVER``, ``TASK``, ``SERVER`` or ``CLIENT``.
        at: the first call with this number or a greater one; of a task's own if a task is to die.
        side: ``"before"`` or ``"after"`` it, or ``"during"``: ``delay`` seconds after it has begun.
        pid: of the server, if that is who dies.
        signal: what kills.
    """

    who: str
    at: int
    side: str = "before"
    delay: float = 0.0
    pid: int = 0
    signal: signal.Signals = signal.SIGKILL


class Steps:
    """Counts the calls of one process.

    Args:
        death: what may happen here; ``None`` if it has happened.
        here: whose process this is.
        driver: the process of the driver.
        trace: the calls that were made before.
    """

    def __init__(self, death: Death | None, *, here: str, driver: int, trace: str = "") -> None:
        self.death = death
        self.trace = trace
        self._here = here
        self._driver = driver
        self._lock = threading.Lock()

    def count(self, owner: Any, name: str) -> None:
        """Have each call of ``owner``'s method be a step from now on."""
        setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """``method``, each call a step."""

        @wraps(method)
        def counting(*args: Any, **kwargs: Any) -> Any:
            death = self._begin()
            if death is not None and death.side != "after":
                self._strike(death)
            try:
                return method(*args, **kwargs)
            finally:
                if death is not None and death.side == "after":
                    self._strike(death)

        return counting

    def _begin(self) -> Death | None:
        """Count one more; the death that comes with it."""
        with self._lock:
            number = len(self.trace)
            self.trace += LETTERS[self._here]
            death = self.death
            if death is None or number < death.at or (death.who == TASK and self._here != TASK):
                return None
            self.death = None
            return death

    def _strike(self, death: Death) -> None:
        victim = {DRIVER: self._driver, SERVER: death.pid}.get(death.who, os.getpid())
        if death.side == "during":
            timer = threading.Timer(death.delay, _kill, (victim, death.signal))
            timer.daemon = True
            timer.start()
        else:
            _kill(victim, death.signal)


def _kill(victim: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was faster
        os.kill(victim, how)
