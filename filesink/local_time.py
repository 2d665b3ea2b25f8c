"""Instants as a wall clock shows them, for any zone and any year that Spark has. Pure.

Arrow's own conversion is not used: it reads no rule that follows the last transition in a zone's
file and is an hour off in every summer after 2037. Python's ``datetime`` ends with the year 9999, so
later instants are looked up in the same place of an earlier 400-year cycle of the calendar.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from filesink.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAY = 86_400  # seconds
_CYCLE_DAYS = 146_097  # of 400 years; a whole number of weeks
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall-clock arithmetic on purpose
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST = -719_161 * DAY  # 0001-01-02, a day inside the range of datetime
_LAST = 2_932_895 * DAY  # 9999-12-31
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")


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
        ConfigError: ``TIME_ZONE``.
    """
    if name in {"Z", "UTC", "GMT", "UT"}:
        return UTC
    found = _OFFSET.fullmatch(name)
    if found:
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if offset <= timedelta(hours=18) and max(minutes, seconds) < 60:
            return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"time zone {repr(name)[:80]} is not known here; use an IANA name such as 'Europe/Berlin' or an "
            "offset such as '+05:30', and install the 'tzdata' package where the system has none",
            code="TIME_ZONE",
        ) from error


def utc_offsets(seconds: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Offset from UTC in seconds for instants in seconds since 1970-01-01 UTC.

    Looks at each day once: where the offset differs between its ends, the second of the change is
    searched. No zone changes twice within one UTC day.
    """
    if isinstance(zone, timezone):
        return np.full(len(seconds), int(zone.utcoffset(None).total_seconds()), dtype=np.int64)
    days = pa.array(seconds // DAY).dictionary_encode()
    starts: NDArray[np.int64] = days.dictionary.to_numpy() * DAY
    found = np.array([_day_offsets(start, zone) for start in starts.tolist()], dtype=np.int64)
    change, before, after = found.reshape(-1, 3)[days.indices.to_numpy()].T
    offsets: NDArray[np.int64] = np.where(seconds < change, before, after)
    return offsets


def _day_offsets(start: int, zone: tzinfo) -> tuple[int, int, int]:
    """When the offset changes on the UTC day that begins at ``start``, and the offsets around it."""
    before, after = _offset(start, zone), _offset(start + DAY, zone)
    if before == after:
        return start, before, after
    instants = range(start, start + DAY)
    changed = bisect_left(instants, 1, key=lambda second: int(_offset(second, zone) != before))
    return start + changed, before, after


def _offset(second: int, zone: tzinfo) -> int:
    if second > _LAST:
        second = _LAST - (_LAST - second) % (_CYCLE_DAYS * DAY)
    instant = _EPOCH + timedelta(seconds=max(second, _FIRST))  # before year 1 nothing ever changed
    offset = zone.fromutc(instant.replace(tzinfo=zone)).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0
