"""Interrupts code between any two of its calls: there it dies, or somebody else has his turn.

A profiler counts the calls of functions in chosen files. That needs nothing of the code that is interrupted,
and works for libraries, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Killed(BaseException):
    """What nobody catches."""


class Calls:
    """Counts calls; does something at one of them.

    Args:
        places: parts of names of files whose functions count.
        at: which call is interrupted, from 0; ``None`` for none.
        what: what is done before that call.
    """

    def __init__(self, places: tuple[str, ...], at: int | None, what: Callable[[], None]) -> None:
        self._places = places
        self._at = at
        self._what = what
        self.made = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """See ``sys.setprofile``."""
        if event != "call" or not any(place in frame.f_code.co_filename for place in self._places):
            return
        self.made += 1
        if self.made - 1 == self._at:
            sys.setprofile(None)
            self._what()


@contextmanager
def interrupted(
    places: tuple[str, ...], at: int | None = None, what: Callable[[], None] = lambda: None
) -> Iterator[Calls]:
    """In the ``with`` block ``what`` is done before call ``at``."""
    calls = Calls(places, at, what)
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def die() -> None:
    """End here."""
    raise Killed
