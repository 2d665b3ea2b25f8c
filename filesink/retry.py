"""How a driver tries again what may succeed later: one retry policy for all of its calls.

Rules: an error that somebody has to mend (``FilesinkError.is_permanent``) is not retried. A driver waits
while it holds the lock of its sink, so it gives up soon: after ten pauses, or after a minute including the
tries themselves, since the clients of stores repeat requests on their own, which may take minutes.
"""

from __future__ import annotations

from filesink.ports import Clock

RETRIES = 10  # Flink's sink.committer.retries
_FIRST_PAUSE = 0.05  # seconds; doubled each time
_LONGEST_PAUSE = 10.0
_LONGEST_MS = 60_000  # from the first failure to the last try


class Backoff:
    """The pauses between the tries of one call, each twice as long. Made when the first try has failed.

    Args:
        clock: waits.
        retries: further tries at most.
    """

    def __init__(self, clock: Clock, *, retries: int = RETRIES) -> None:
        self._clock = clock
        self._left = retries
        self._pause = _FIRST_PAUSE
        self._until_ms = clock.now_ms() + _LONGEST_MS

    def wait(self) -> bool:
        """Pause and return ``True`` to try again; ``False``, without a pause, to give up."""
        if self._left <= 0 or self._clock.now_ms() >= self._until_ms:
            return False
        self._left -= 1
        self._clock.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True
