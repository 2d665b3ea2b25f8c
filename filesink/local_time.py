"""Instants as a wall clock shows them, for any zone and any year that Spark has. Pure.

Offsets from UTC come from ``formats.text.zones``. Python's ``datetime`` ends with the year 9999, so later
instants are looked up in the same place of an earlier 400-year cycle of the calendar.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, tzinfo

from filesink.arguments import instance_of
from filesink.errors import ConfigError
from formats.errors import FormatError
from formats.text.zones import parse_zone

DAY = 86_400  # seconds
_CYCLE_DAYS = 146_097  # of 400 years; a whole number of weeks
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTime:
    """What a wall clock shows. ``year`` is proleptic: 0 is 1 BC; ``weekday`` is 0 on Mondays."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nano: int
    day_of_year: int
    weekday: int

    @staticmethod
    def of(seconds: int, nano: int = 0) -> LocalTime:
        """From seconds since 1970-01-01T00:00 of the same wall clock."""
        days, second = divmod(seconds, DAY)
        cycle, days = divmod(days + _EPOCH_ORDINAL - 1, _CYCLE_DAYS)
        found = date.fromordinal(days + 1)
        return LocalTime(
            year=found.year + 400 * cycle,
            month=found.month,
            day=found.day,
            hour=second // 3600,
            minute=second // 60 % 60,
            second=second % 60,
            nano=nano,
            day_of_year=found.timetuple().tm_yday,
            weekday=found.weekday(),
        )


def time_zone(name: str) -> tzinfo:
    """The zone of a name as Spark accepts it: IANA, ``Z``, or an offset as in ``+05:30``, ``UTC+1``.

    Raises:
        ConfigError: ``TIME_ZONE``, or ``BAD_VALUE`` for what is no text.
    """
    try:
        return parse_zone(instance_of(name, str, name="a time zone"))
    except FormatError as error:
        raise ConfigError(
            f"time zone {repr(name)[:80]} is not known here; use an IANA name such as 'Europe/Berlin' or an "
            "offset such as '+05:30', and install the 'tzdata' package where the system has none",
            code="TIME_ZONE",
        ) from error
