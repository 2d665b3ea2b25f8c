"""Times read from text that a ``DatePattern`` has written. Pure.

A pattern that does not say which year, day or hour is meant is refused. What is left out at its end is the
first: by ``yyyy-MM`` a text is midnight of the first of the month.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from filesink.buckets.date_patterns import MONTHS, DatePattern
from filesink.errors import ConfigError

_SHORT = 3  # letters of the name of a month that is cut
_WIDEST = {"y": 4, "u": 4, "D": 3}  # digits, where a letter stands alone; others have two
_READABLE = frozenset("yuMLdDHhamsS")


@dataclass(frozen=True, slots=True, kw_only=True)
class DateReader:
    """Reads what ``pattern`` writes.

    Raises:
        ConfigError: ``BAD_VALUE``; no pattern, or one that says too little to read a time by it.
    """

    pattern: str
    _form: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _letters: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pieces = DatePattern(pattern=self.pattern).pieces
        fields = [piece for piece in pieces if not isinstance(piece, str)]
        if why := _why_not(fields):
            raise ConfigError(
                f"no time can be read by the pattern {repr(self.pattern)[:80]}: {why}", code="BAD_VALUE"
            )
        form = "".join(re.escape(one) if isinstance(one, str) else f"({_form_of(*one)})" for one in pieces)
        object.__setattr__(self, "_form", re.compile(form, re.ASCII))
        object.__setattr__(self, "_letters", tuple(letter for letter, _ in fields))

    def read(self, text: str) -> datetime | None:
        """The wall-clock time, without a zone and without fractions; ``None`` if ``text`` is none."""
        found = self._form.fullmatch(text)
        if found is None:
            return None
        values: dict[str, int] = {}
        for letter, part in zip(self._letters, found.groups(), strict=True):
            value = _value(letter, part)
            if values.setdefault(letter, value) != value:  # twice, and not the same
                return None
        try:
            return _time(values)
        except (ValueError, OverflowError):  # as the 30th of February
            return None


def _why_not(fields: list[tuple[str, int]]) -> str:
    letters = {letter for letter, _ in fields}
    if not letters & set("yu"):
        return "it has no year (yyyy)"
    if unread := letters - _READABLE or {letter for letter, count in fields if letter in "ML" and count > 4}:
        return f"{min(unread)!r} is only written, or stands for several months"
    if "m" in letters and not letters & set("Hh"):
        return "it has minutes (mm) and no hour (HH); months are MM"
    if "d" in letters and not letters & set("ML"):
        return "it has a day of the month (dd) and no month (MM); days of the year are DDD"
    if ("h" in letters) != ("a" in letters):
        return "'hh' goes from 1 to 12 and needs 'a' for AM or PM; hours of the day are HH"
    return ""


def _form_of(letter: str, count: int) -> str:
    """What a field looks like."""
    if letter == "a":
        return "AM|PM"
    if letter in "ML" and count >= _SHORT:
        return "|".join(MONTHS if count > _SHORT else (name[:_SHORT] for name in MONTHS))
    return f"\\d{{1,{_WIDEST.get(letter, 2)}}}" if count == 1 and letter != "S" else f"\\d{{{count}}}"


def _value(letter: str, text: str) -> int:
    if letter == "a":
        return 12 if text == "PM" else 0
    if not text.isdigit():
        return 1 + [name[:_SHORT] for name in MONTHS].index(text[:_SHORT])
    return int(text) + (2000 if letter in "yu" and len(text) == 2 else 0)


def _time(values: dict[str, int]) -> datetime:
    hour = values.get("H", 0)
    if "h" in values:
        if not 1 <= values["h"] <= 12:
            raise ValueError("hour of half a day")
        hour = values["h"] % 12 + values["a"]
    year = values["y"] if "y" in values else values["u"]
    month = values.get("M", values.get("L", 1))
    first = datetime(year, month, values.get("d", 1), hour, values.get("m", 0), values.get("s", 0))  # noqa: DTZ001 - a wall clock
    if "D" not in values:
        return first
    found = first.replace(month=1, day=1) + timedelta(days=values["D"] - 1)
    if found.year != year or ("d" in values and found != first):
        raise ValueError("day of the year")
    return found
