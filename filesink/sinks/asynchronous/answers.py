"""What becomes of a request that was sent: four outcomes, four types.

``why`` is for errors and the log: no secret and no value of a record.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from formats.arguments import kind_of


@dataclass(frozen=True, slots=True)
class Delivered:
    """The service has all entries, for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Some entries, or all, are to be sent again; also where it is not known whether they have arrived.

    Attributes:
        numbers: of these entries, by their places in the request, from 0; ``None`` for all of them, ``[]``
            for none, which is the same as ``Delivered``. A place that is named twice counts once.
        after_ms: how long the service wants nothing at all, in milliseconds, as in ``Retry-After``.
    """

    why: str
    numbers: Collection[int] | None = None
    after_ms: int = 0

    @property
    def is_delivery(self) -> bool:
        """Whether it names no entry at all."""
        return self.numbers is not None and not self.numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The service will never take these entries together: one of them is wrong, or they are too many."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """The service takes nothing from here, whatever it is: a wrong address, or no permission."""

    why: str


Answer = Delivered | Again | Refused | Unusable


def problem_of(answer: object, *, entries: int) -> str | None:
    """What is wrong with an answer to a request of so many entries, in words; it may come from users' code.

    An entry is delivered if it is not to be sent again, so a number that means none would lose another one.
    """
    if not isinstance(answer, Answer):
        return f"it is {kind_of(answer)}, and none of Delivered, Again, Refused and Unusable"
    if not isinstance(answer, Again):
        return None
    if type(answer.after_ms) is not int or answer.after_ms < 0:
        return "after_ms is no number of milliseconds"
    return None if answer.numbers is None else _problem_of_numbers(answer.numbers, entries)


def _problem_of_numbers(numbers: object, entries: int) -> str | None:
    if isinstance(numbers, str | bytes) or not isinstance(numbers, Collection):
        return f"numbers is {kind_of(numbers)}, and no list of places in the request"
    for number in numbers:
        if type(number) is not int:
            return f"numbers has {kind_of(number)} in it, and places in the request are of type int"
        if not 0 <= number < entries:
            return f"numbers has {number}, and the places of its {entries:,} entries are 0 to {entries - 1:,}"
    return None
