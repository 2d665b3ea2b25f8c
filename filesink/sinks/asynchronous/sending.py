"""How entries are sent, in a user's words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from filesink.arguments import choice
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from formats.arguments import shown
from formats.errors import FormatError
from formats.sizes import parse_size

_MOST = 10_000  # requests; each may be a thread and a socket


class AtCommit(Enum):
    """What becomes of entries that are not sent when their epoch ends."""

    FLUSH = "flush"
    KEEP = "keep"


class OnRefused(Enum):
    """What becomes of an entry that the service will never take."""

    FAIL = "fail"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How many entries go together, how many requests at once, and how often. For each task by itself.

    Args:
        records: entries of a request, at most.
        bytes: of the entries of a request, at most; a larger entry goes alone.
        delay: a request that is not full is sent when its first entry is that old, else with the epoch. When
            it is sent depends on the clock then, and with it which entries a request has, and its key.
        in_flight: requests that wait for an answer or for their next try, at most. The number is halved
            when the service is overloaded, and grows again (AIMD).
        retries: further tries of a request, with growing pauses; then the task fails.
        timeout: a request that has no answer by then is sent again.
        at_commit: ``"flush"`` ends an epoch when everything is delivered. ``"keep"`` waits for what is in
            flight alone: what is not sent yet, or is to be sent again, goes into the ledger, and the next
            epoch sends it.
        on_refused: what becomes of an entry that the service will never take: ``"fail"`` fails the task, and
            with it the query, ``"drop"`` leaves it out, with a warning and in ``metrics["refused"]``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    records: int = 500
    bytes: int | str = "1MiB"
    delay: Duration | None = None
    in_flight: int = 16
    retries: int = 10
    timeout: Duration = "2 min"
    at_commit: Literal["flush", "keep"] = "flush"
    on_refused: Literal["fail", "drop"] = "fail"

    def __post_init__(self) -> None:
        _check_count(self.records, 1, 1_000_000, name="records")
        _check_count(self.in_flight, 1, _MOST, name="in_flight")
        _check_count(self.retries, 0, 1_000, name="retries")
        choice(AtCommit, self.at_commit, "at_commit")
        choice(OnRefused, self.on_refused, "on_refused")
        self.limit()
        self.delay_ms()
        self.timeout_ms()

    def limit(self) -> int:
        """Bytes of a request."""
        try:
            return parse_size(self.bytes, name="bytes")
        except FormatError as error:
            raise ConfigError(str(error), code="BAD_VALUE") from error

    def delay_ms(self) -> int | None:
        """Milliseconds that the first entry of a request waits for others; ``None`` for no limit."""
        return None if self.delay is None else parse_duration_ms(self.delay, name="delay")

    def timeout_ms(self) -> int:
        """Milliseconds that a request waits for its answer."""
        return parse_duration_ms(self.timeout, name="timeout")


def _check_count(value: object, least: int, most: int, *, name: str) -> None:
    if type(value) is not int or not least <= value <= most:
        raise ConfigError(
            f"{name} must be a number from {least} to {most:,}, got {shown(value)}", code="BAD_VALUE"
        )
