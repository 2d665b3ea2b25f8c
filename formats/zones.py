"""Offsets of a time zone at many instants.

Arrow's own conversion is not used: it does not read the rule that follows the last transition in a
zone's file, so it is an hour off in every summer after 2037, and with slim files long before that.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from formats.errors import FormatError

_FIXED: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_UTC_NAMES: Final = frozenset({"UTC", "Z", "GMT", "UT", "Etc/UTC", "Etc/GMT", "GMT0"})
_SLOT: Final = 900  # seconds; since 1980 offsets change at full quarters of an hour only
_SLOTS_SINCE: Final = 315_532_800  # 1980-01-01 in seconds since 1970
_CYCLE: Final = 146_097 * 86_400  # seconds of 400 years, after which the calendar repeats
_FIRST: Final = -62_135_510_400  # 0001-01-02; before it Python has no dates and zones no transitions
_LAST: Final = 253_370_764_800  # 9999-01-01

Seconds = npt.NDArray[np.int64]


def parse_zone(name: str) -> tzinfo:
    """The zone that Spark's ``spark.sql.session.timeZone`` names: a region, an offset, or ``Z``.

    Raises:
        FormatError: kind ``"schema"``; neither an offset nor in the time zone database.
    """
    if name in _UTC_NAMES:
        return UTC
    fixed = _FIXED.fullmatch(name)
    try:
        if fixed is None:
            return ZoneInfo(name)
        hours, minutes, seconds = (int(part or 0) for part in fixed.group(2, 3, 4))
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if fixed[1] == "-" else offset)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise FormatError(
            f"time zone {name!r} is unknown: set spark.sql.session.timeZone to a region such as Europe/Berlin"
        ) from error


def utc_offsets(seconds: Seconds, *, zone: tzinfo) -> Seconds:
    """Seconds to add to UTC to get local time, for instants in seconds since 1970 UTC."""
    later = np.where(seconds > _LAST, (seconds - _LAST) // _CYCLE + 1, 0)
    known = np.maximum(seconds - later * _CYCLE, _FIRST)
    slots = np.where(known < _SLOTS_SINCE, known, known - known % _SLOT)
    unique, positions = np.unique(slots, return_inverse=True)
    found = [datetime.fromtimestamp(instant, zone).utcoffset() for instant in unique.tolist()]
    return np.array([offset // timedelta(seconds=1) for offset in found if offset is not None], np.int64)[
        positions
    ]
