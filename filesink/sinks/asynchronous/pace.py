"""How many requests a service gets at once: one more while it keeps up, half of them when it does not (AIMD).

Rules: several requests that were sent together fail together, and are one sign of overload. So what was
sent before the number was cut does not cut it again. One request is always allowed: it finds out.
"""

from __future__ import annotations


class Pace:
    """The number of requests that may be in flight. Pure.

    Args:
        most: the number to begin with, and never to exceed.

    Attributes:
        held_until_ms: the service wants nothing before.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = float(most)
        self._cut_ms: int | None = None
        self.held_until_ms = 0

    @property
    def allowed(self) -> int:
        """How many requests may be in flight."""
        return int(self._allowed)

    def delivered(self) -> None:
        """A request has got through: as many as are allowed together make it one more."""
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)

    def failed(self, sent_ms: int, now_ms: int, *, after_ms: int) -> None:
        """A request that was sent at ``sent_ms`` has failed; the service asks for a pause of ``after_ms``."""
        self.held_until_ms = max(self.held_until_ms, now_ms + after_ms if after_ms else 0)
        if self._cut_ms is None or sent_ms > self._cut_ms:
            self._allowed = max(1.0, self._allowed / 2)
            self._cut_ms = now_ms
