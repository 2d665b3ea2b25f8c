"""What becomes of a request that was sent: four outcomes, four types.

``why`` is for errors and the log: no secret and no value of a record.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delivered:
    """The service has all entries, for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Some entries, or all, are to be sent again; also where it is not known whether they have arrived.

    Attributes:
        numbers: of these entries, as in ``Entry.number``; ``None`` for all of the request.
        after_ms: how long the service wants nothing at all, in milliseconds, as in ``Retry-After``.
    """

    why: str
    numbers: Collection[int] | None = None
    after_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The service will never take these entries together: one of them is wrong, or they are too many."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """The service takes nothing from here, whatever it is: a wrong address, or no permission."""

    why: str


Answer = Delivered | Again | Refused | Unusable
