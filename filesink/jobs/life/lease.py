"""Who runs a job: a lease that is renewed, and taken over once it is over."""

from __future__ import annotations

from dataclasses import dataclass

from filesink.durations import has_passed
from filesink.errors import JobError
from filesink.jobs.life.store import JobStore
from filesink.ports import Clock, Who

LEASE_MS = 60_000
_KEPT = 2  # leases


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
    _number: int = -1
    taken_ms: int = 0

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

    def renew(self) -> None:
        """Keep it.

        Raises:
            JobError: ``JOB_TAKEN``; somebody else has it, so this supervisor has to end.
        """
        if not self._append(self._number + 1, is_over=False):
            raise JobError(f"job '{self.job}' was taken over by another process", code="JOB_TAKEN")
        self.store.forget(self.job, "leases", self._number - _KEPT + 1)

    def give_back(self) -> None:
        """Let others have it at once; if somebody has it already, that is none of our business."""
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
        taken = self.store.append(self.job, "leases", number, value)
        if taken:
            self._number, self.taken_ms = number, at_ms
        return taken


def holder(store: JobStore, job: str, now_ms: int) -> str:
    """The host of who runs a job; ``""`` if nobody does."""
    _, last = store.last(job, "leases")
    if last is None or last["is_over"] or has_passed(last["at_ms"], now_ms, LEASE_MS):
        return ""
    return f"{last['user']}@{last['host']}"
