"""Durations as users write them. Everything inside the package is whole milliseconds."""

from __future__ import annotations

import re
from datetime import timedelta

from filesink.errors import ConfigError

Duration = int | str | timedelta

_TEXT = re.compile(r"\s*([0-9]{1,19})\s*([A-Za-z]*)\s*")
_MAX_MS = 2**63 - 1  # what a timestamp of Spark or Java can hold
_UNITS = {
    1: ("ms", "milli", "millis", "millisecond", "milliseconds"),
    1_000: ("s", "sec", "secs", "second", "seconds"),
    60_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000: ("h", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}
_MS_PER_UNIT = {name: ms for ms, names in _UNITS.items() for name in names}


def has_passed(begun_ms: int, now_ms: int, interval_ms: int) -> bool:
    """Whether ``interval_ms`` is over. Never waits for ever, even if a clock was wrong.

    If it began more than a day from now, a wrong clock noted it, and the interval counts as over.
    Clocks of tasks, drivers and stores may well be minutes apart.
    """
    age = now_ms - begun_ms
    return age >= interval_ms or age < -_MS_PER_UNIT["day"]


def parse_duration_ms(value: Duration, *, name: str, least: int = 1) -> int:
    """Milliseconds of a duration; the units in words are those of Flink's ``TimeUtils``.

    Args:
        value: milliseconds (as in PyFlink), a ``timedelta``, or text of a number with a unit such as
            ``"500 ms"``, ``"10 seconds"``, ``"15 min"``, ``"1 h"``, ``"2 days"``. Text without a unit is
            refused: ``"5"`` may be meant as minutes.
        name: the option, for the message.
        least: the shortest one allowed, in milliseconds.

    Raises:
        ConfigError: ``BAD_VALUE``; not a duration, too short, not whole milliseconds, or beyond
            292 million years.
    """
    ms = _milliseconds(value)
    if ms is None or not least <= ms <= _MAX_MS:
        raise ConfigError(
            f"{name} must be {_wanted(value, ms, least)}, got {repr(value)[:80]}", code="BAD_VALUE"
        )
    return ms


def _wanted(value: object, ms: int | None, least: int) -> str:
    """What ``value`` is not."""
    if ms is not None and ms > _MAX_MS:
        return "a duration of at most 292 million years"
    if ms is not None:
        return (
            f"a duration of {least:,} ms or more"
            if least > 1
            else f"a duration {'>=' if not least else '>'} 0"
        )
    if isinstance(value, str):
        return "a whole number with a unit, ms, s, min, h or d, such as '15 min'"
    return "a duration such as '15 min', or an int of milliseconds"


def _milliseconds(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case timedelta():
            ms, rest = divmod(value, timedelta(milliseconds=1))
            return None if rest else ms
        case str():
            found = _TEXT.fullmatch(value)
            unit = _MS_PER_UNIT.get(found[2].lower()) if found else None
            return int(found[1]) * unit if found and unit else None
        case _:
            return None
