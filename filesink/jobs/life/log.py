"""What a job's supervisor warns of, kept in the store of jobs, so that it can be read from anywhere.

Rules:
1. Only what filesink itself says is kept: it never holds a secret or a value of a record. What ``Console``
   prints and what Spark logs is not.
2. It is bounded: old pieces go.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from filesink.jobs.life.store import JobStore
from filesink.ports import Clock

_NAME: Final = "log"
_PIECES: Final = 200
_WAITING: Final = 1_000  # lines between two flushes
_LONGEST: Final = 2_000  # characters of a line


@dataclass(slots=True, kw_only=True)
class JobLog:
    """The log of one run of a job; ``flush`` puts what has come since into the store."""

    store: JobStore
    job: str
    clock: Clock
    _lines: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_WAITING))

    def add(self, text: str) -> None:
        """Remember a line; from any thread."""
        self._lines.append((self.clock.now_ms(), text[:_LONGEST]))

    def flush(self) -> None:
        """Put the lines into the store, if there are any."""
        lines = []
        while self._lines:
            lines.append(self._lines.popleft())
        if lines:
            put_newest(self.store, self.job, _NAME, {"lines": lines}, kept=_PIECES)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Remember what filesink logs as INFO or above inside the block."""
        log, handler = logging.getLogger("filesink"), _Handler(self)
        before = log.level
        log.addHandler(handler)
        if log.getEffectiveLevel() > logging.INFO:
            log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(before)


class _Handler(logging.Handler):
    """Gives lines to a log."""

    def __init__(self, log: JobLog) -> None:
        super().__init__(logging.INFO)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        self._log.add(f"{record.levelname} {record.getMessage()}")


def lines_of(store: JobStore, job: str) -> Iterator[tuple[int, str]]:
    """Moments, in milliseconds since 1970 UTC, and lines that are in the store."""
    for piece in store.chain(job, _NAME):
        yield from ((int(at_ms), str(text)) for at_ms, text in piece["lines"])


def put_newest(store: JobStore, job: str, name: str, value: Mapping[str, Any], *, kept: int = 1) -> None:
    """Put a value behind those of a chain, and let old ones go."""
    number = store.last(job, name)[0] + 1
    store.append(job, name, number, value)
    store.forget(job, name, number - kept + 1)
