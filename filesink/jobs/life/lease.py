"""Who runs a job: a lease that is renewed, and taken over once it is over.

Rules:
1. Old leases are forgotten, so a number that is free may have been somebody's: a lease counts only if it is
   the newest once it is there.
2. It is no fence. Who sleeps may wake up in the midst of a step, so steps look for themselves: events have a
   chain of which nothing is forgotten, files a ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event as Flag
from threading import RLock, Thread

from filesink.durations import has_passed
from filesink.errors import FilesinkError, JobError
from filesink.jobs.life.store import JobStore
from filesink.ports import Clock, Who

_LOG = logging.getLogger(__name__)
LEASE_MS = 60_000
RENEW_MS = LEASE_MS // 4
_KEPT = 2  # leases
_LOOK_S = 2.0  # how often ``kept`` looks whether it is time


@dataclass(slots=True, kw_only=True)
class Lease:
    """The right to run a job, until somebody else has it.

    Args:
        by: of this supervisor; no two have the same.
        taken_ms: when it was taken or renewed last.
    """

    store: JobStore
    job: str
    by: str
    who: Who
    clock: Clock
    taken_ms: int = 0
    _number: int = -1
    _is_given_back: bool = False
    _lock: RLock = field(default_factory=RLock)  # a thread renews it, too

    def take(self) -> None:
        """Take it.

        Raises:
            JobError: ``JOB_RUNNING``; somebody has it, or has just got it.
        """
        number, last = self.store.last(self.job, "leases")
        if last is not None and not last["is_over"] and not self._is_over(last):
            seconds = max((last["at_ms"] + LEASE_MS - self.clock.now_ms()) // 1000, 0)
            raise JobError(
                f"job '{self.job}' is run by {last['user']}@{last['host']}; if that process is dead, its "
                f"lease is over in {seconds} s",
                code="JOB_RUNNING",
            )
        if not self._append(number + 1, is_over=False):
            raise JobError(f"somebody else has just begun to run job '{self.job}'", code="JOB_RUNNING")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Have a thread renew it while the block runs; whether it was lost is told by ``renew``."""
        ends = Flag()
        thread = Thread(target=self._keep, args=(ends,), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    def _keep(self, ends: Flag) -> None:
        while not ends.wait(_LOOK_S):
            try:
                with self._lock:
                    if not self._is_given_back and self.is_old:
                        self.renew()
            except JobError:
                return  # whoever renews it next hears of it, too
            except FilesinkError as error:
                _LOG.debug("the lease of job '%s' was not renewed: %s", self.job, error.message)

    @property
    def is_old(self) -> bool:
        """Whether it is time to renew it."""
        return self.clock.now_ms() - self.taken_ms >= RENEW_MS

    def renew(self) -> None:
        """Keep it.

        Raises:
            JobError: ``JOB_TAKEN``; somebody else has it, so this supervisor has to end.
        """
        with self._lock:
            if not self._append(self._number + 1, is_over=False):
                raise JobError(f"job '{self.job}' was taken over by another process", code="JOB_TAKEN")
            self.store.forget(self.job, "leases", self._number - _KEPT + 1)

    def give_back(self) -> None:
        """Let others have it at once; if somebody has it already, that is none of our business."""
        with self._lock:
            self._is_given_back = True
            self._append(self._number + 1, is_over=True)

    def _is_over(self, last: dict[str, object]) -> bool:
        return has_passed(int(str(last["at_ms"])), self.clock.now_ms(), LEASE_MS)

    def _append(self, number: int, *, is_over: bool) -> bool:
        at_ms = self.clock.now_ms()
        value = {
            "at_ms": at_ms,
            "by": self.by,
            "host": self.who.host,
            "user": self.who.user,
            "is_over": is_over,
        }
        created = self.store.append(self.job, "leases", number, value)
        taken = created and self.store.last(self.job, "leases")[0] == number
        if taken:
            self._number, self.taken_ms = number, at_ms
        return taken


def holder(store: JobStore, job: str, now_ms: int) -> str:
    """The host of who runs a job; ``""`` if nobody does."""
    _, last = store.last(job, "leases")
    if last is None or last["is_over"] or has_passed(last["at_ms"], now_ms, LEASE_MS):
        return ""
    return f"{last['user']}@{last['host']}"
