"""Where something is written, and the errors that say so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from filesink.errors import JobError


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file; lines count from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def failure(place: Place, message: str, *, code: str) -> JobError:
    """An error whose sentence begins with the file and the line."""
    return JobError(f"{place}: {message}", code=code)


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or what there is, as the end of a sentence."""
    names = sorted(set(known))
    by_lower = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    if found:
        return f"; did you mean '{by_lower[found[0]]}'?"
    if not names:
        return ""
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    return f"; there are {shown}{' …' if len(names) > _SHOWN else ''}"


_SHOWN = 12  # names in a message
