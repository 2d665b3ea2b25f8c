"""How long a driver waits for what may pass by itself: one policy for all of its calls.

Rules: what somebody has to mend (``FilesinkError.is_permanent``) is not waited for. A driver waits while
it holds the lock of its sink, so the end is near: ten pauses, and a minute in all, with what the tries
take, since the clients of stores repeat requests by themselves and may be minutes about it.
"""

from __future__ import annotations

from filesink.ports import Clock

RETRIES = 10  # Flink's sink.committer.retries
_FIRST_PAUSE = 0.05  # seconds; doubled each time
_LONGEST_PAUSE = 10.0
_LONGEST_MS = 60_000  # from the first failure to the last try


class Patience:
    """Counts the pauses between the tries of one thing. Made when the first try has failed.

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
        """Pause, and say whether to try again; ``False``, without a pause, ends it."""
        if self._left <= 0 or self._clock.now_ms() >= self._until_ms:
            return False
        self._left -= 1
        self._clock.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True
