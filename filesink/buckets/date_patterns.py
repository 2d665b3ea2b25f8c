"""Patterns of ``java.time.format.DateTimeFormatter``, as far as they make sense in directories.

    y year of era · u year (0 is 1 BC) · Q quarter · M L month · d day · D day of the year · E weekday
    a AM/PM · H hour 0-23 · h hour 1-12 · m minute · s second · S fraction · '…' text · '' an apostrophe

The number of letters chooses the form as in Java, with English names: ``M`` 8, ``MM`` 08, ``MMM``
Aug, ``MMMM`` August. Other letters are refused: week-based ones (``Y``, ``w``, ``e``) because their
meaning depends on the machine's locale, the rest because a directory has no use for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn

from filesink.arguments import instance_of
from filesink.errors import ConfigError
from filesink.local_time import LocalTime

_TOKEN = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<plain>[^A-Za-z'\[\]{}#]+)")
_FIRST_HALF = ("January", "February", "March", "April", "May", "June")
_SECOND_HALF = ("July", "August", "September", "October", "November", "December")
MONTHS = (*_FIRST_HALF, *_SECOND_HALF)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS = ("1st", "2nd", "3rd", "4th")


class Unit(Enum):
    """What a pattern can tell apart. The value is its length in seconds, 0 for less than one."""

    MONTH = 2_678_400  # at most
    DAY = 86_400
    HALF_DAY = 43_200
    HOUR = 3_600
    MINUTE = 60
    SECOND = 1
    FRACTION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatePattern:
    """A checked pattern.

    Raises:
        ConfigError: ``BAD_VALUE``; names the letter and its position.
    """

    pattern: str
    _pieces: tuple[str | tuple[str, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        instance_of(self.pattern, str, name="a date pattern")
        object.__setattr__(self, "_pieces", _parse(self.pattern))

    def format(self, time: LocalTime) -> str:
        """``time`` in the form of this pattern."""
        return "".join(
            piece if isinstance(piece, str) else _LETTERS[piece[0]].text(time, piece[1])
            for piece in self._pieces
        )

    def with_fields(self, text: str) -> str:
        """This pattern's own text, with ``text`` in place of each field."""
        return "".join(piece if isinstance(piece, str) else text for piece in self._pieces)

    def check_meant(self) -> None:
        """Raise ``ConfigError`` if letters were likely meant to be others, as ``mm`` in ``yyyy-mm-dd``."""
        levels = self.with_fields(_FIELD).split("/")
        if any(_FIELD in level.partition("=")[0] for level in levels if "=" in level):
            raise ConfigError(
                f"date pattern {repr(self.pattern)[:80]}: letters before '=' are parts of a time, so every "
                "day would be another column; put the name in quotes, as in \"'day='yyyy-MM-dd\"",
                code="BAD_VALUE",
            )
        fields = [piece for piece in self._pieces if not isinstance(piece, str)]
        letters = "".join(letter for letter, _ in fields)
        short_day = any(letter == "D" and count < 3 for letter, count in fields)
        for letter, meaning, meant, is_mistaken in _MISTAKES:
            if is_mistaken(letters) or (letter == "D" and short_day):
                raise ConfigError(
                    f"date pattern {repr(self.pattern)[:80]}: {letter!r} is {meaning}; did you mean {meant}? "
                    "If not, use BucketAssigner.expression_bucket_assigner",
                    code="BAD_VALUE",
                )

    @property
    def pieces(self) -> tuple[str | tuple[str, int], ...]:
        """Text that stands for itself, and fields: a letter and how often it is repeated."""
        return self._pieces

    @property
    def finest_unit(self) -> Unit:
        """Times that agree down to this unit have the same text."""
        units = [_LETTERS[piece[0]].unit for piece in self._pieces if not isinstance(piece, str)]
        return min(units, key=lambda unit: unit.value, default=Unit.MONTH)

    @property
    def fraction_digits(self) -> int:
        """How many digits of a second's fraction are told apart."""
        fields = [piece for piece in self._pieces if not isinstance(piece, str)]
        return max((count for letter, count in fields if letter == "S"), default=0)


_FIELD = "\0"  # stands for a part of a time; no directory holds it
#: Letter, what it is, what was likely meant, and whether it was, from the letters of a pattern in order.
_MISTAKES: tuple[tuple[str, str, str, Callable[[str], object]], ...] = (
    ("m", "the minute", "'MM', the month", re.compile("^(?=.*[yu])(?=.*m)[^MLDQ]*$").search),
    (
        "m",
        "the minute",
        "'MM', the month, or is 'HH' missing",
        re.compile("^(?=.*m)(?=.*[yudDML])[^hH]*$").search,
    ),
    ("M", "the month", "'mm', the minute", re.compile("^[^m]*[hH][^m]*[ML][^m]*$").search),
    ("D", "the day of the year", "'dd', the day of the month", re.compile("^(?=.*[ML]).*D").search),
    ("h", "the hour from 1 to 12", "'HH', or is 'a' missing", re.compile("^[^a]*h[^a]*$").search),
    ("S", "a fraction of the second", "'ss'", re.compile("^[^s]*S[^s]*$").search),
)


def _parse(pattern: str) -> tuple[str | tuple[str, int], ...]:
    pieces: list[str | tuple[str, int]] = []
    position = 0
    while position < len(pattern):
        found = _TOKEN.match(pattern, position)
        if found is None:
            _refuse(pattern, position, "is reserved or begins text that has no closing quote")
        if found["letters"]:
            pieces.append(_field(pattern, position, count=found.end() - position))
        else:
            pieces.append(_literal(found))
        position = found.end()
    return tuple(pieces)


def _field(pattern: str, position: int, *, count: int) -> tuple[str, int]:
    letter = _LETTERS.get(pattern[position])
    if pattern[position] == "Y":
        _refuse(pattern, position, "is the year of a week, another one around New Year; did you mean 'y'?")
    if letter is None:
        _refuse(pattern, position, f"is not one of {' '.join(sorted(_LETTERS))}; quote text as in 'T'")
    if count > letter.most:
        _refuse(pattern, position, f"is repeated {count} times, at most {letter.most} are possible")
    return pattern[position], count


def _literal(found: re.Match[str]) -> str:
    quoted = found["quoted"]
    if quoted is None:
        return found["plain"]
    return quoted.replace("''", "'") or "'"


def _refuse(pattern: str, position: int, why: str) -> NoReturn:
    raise ConfigError(
        f"date pattern {repr(pattern)[:80]}: {pattern[position]!r} at position {position + 1} {why}",
        code="BAD_VALUE",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letter:
    """A letter of the table below: how often it may be repeated, its unit and its text."""

    most: int
    unit: Unit
    text: Callable[[LocalTime, int], str]


def _number(value: int, count: int) -> str:
    return f"{value:0{count}d}"


def _year(value: int, count: int) -> str:
    if count == 2:
        return f"{abs(value) % 100:02d}"
    # Java prints a plus sign where a year has more digits than a pattern of four or more letters.
    sign = "-" if value < 0 else "+" if 4 <= count < len(str(value)) else ""
    return f"{sign}{abs(value):0{count}d}"


def _month(time: LocalTime, count: int) -> str:
    name = MONTHS[time.month - 1]
    return _number(time.month, count) if count < 3 else (name[:3], name, name[:1])[count - 3]


def _weekday(time: LocalTime, count: int) -> str:
    name = _WEEKDAYS[time.weekday]
    return (name[:3], name, name[:1])[max(count - 3, 0)]


def _quarter(time: LocalTime, count: int) -> str:
    quarter = (time.month + 2) // 3
    if count < 3:
        return _number(quarter, count)
    return (f"Q{quarter}", f"{_QUARTERS[quarter - 1]} quarter", str(quarter))[count - 3]


_LETTERS = {
    "y": _Letter(most=19, unit=Unit.MONTH, text=lambda t, n: _year(t.year if t.year > 0 else 1 - t.year, n)),
    "u": _Letter(most=19, unit=Unit.MONTH, text=lambda t, n: _year(t.year, n)),
    "Q": _Letter(most=5, unit=Unit.MONTH, text=_quarter),
    "M": _Letter(most=5, unit=Unit.MONTH, text=_month),
    "L": _Letter(most=5, unit=Unit.MONTH, text=_month),
    "d": _Letter(most=2, unit=Unit.DAY, text=lambda t, n: _number(t.day, n)),
    "D": _Letter(most=3, unit=Unit.DAY, text=lambda t, n: _number(t.day_of_year, n)),
    "E": _Letter(most=5, unit=Unit.DAY, text=_weekday),
    "a": _Letter(most=1, unit=Unit.HALF_DAY, text=lambda t, _: "AM" if t.hour < 12 else "PM"),
    "H": _Letter(most=2, unit=Unit.HOUR, text=lambda t, n: _number(t.hour, n)),
    "h": _Letter(most=2, unit=Unit.HOUR, text=lambda t, n: _number((t.hour + 11) % 12 + 1, n)),
    "m": _Letter(most=2, unit=Unit.MINUTE, text=lambda t, n: _number(t.minute, n)),
    "s": _Letter(most=2, unit=Unit.SECOND, text=lambda t, n: _number(t.second, n)),
    "S": _Letter(most=9, unit=Unit.FRACTION, text=lambda t, n: f"{t.nano:09d}"[:n]),
}
