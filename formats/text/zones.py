"""Offsets of a time zone at many instants.

Arrow's own conversion is not used: it does not read the rule that follows the last transition in a
zone's file, so it is an hour off in every summer after 2037, and with slim files long before that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from formats.errors import FormatError

_FIXED: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_UTC_NAMES: Final = frozenset({"UTC", "Z", "GMT", "UT", "Etc/UTC", "Etc/GMT", "GMT0"})
_OFFSET_NAME: Final = re.compile(r"[+-][0-9]{2}:[0-9]{2}")
# Names of Java's that the time zone database does not have; Spark takes them.
_SHORT_NAMES: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
_FARTHEST: Final = timedelta(hours=18)  # from UTC
_DAY: Final = 86_400  # seconds
_CYCLE: Final = 146_097 * _DAY  # 400 years, after which the calendar repeats
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
        return ZoneInfo(_SHORT_NAMES.get(name, name)) if fixed is None else _fixed(fixed)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise FormatError(
            f"time zone {name!r} is unknown: set spark.sql.session.timeZone to a region such as Europe/Berlin"
        ) from error


def _fixed(found: re.Match[str]) -> timezone:
    hours, minutes, seconds = (int(part or 0) for part in found.group(2, 3, 4))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if offset > _FARTHEST or max(minutes, seconds) >= 60:
        raise ValueError("no offset of Java's")
    return timezone(-offset if found[1] == "-" else offset)


def with_known_zone(kind: Any) -> Any:
    """A timestamp with a name of its zone that readers other than Java know; any other type itself.

    The instants are the same, and so is the zone, unless nobody but Java knows it: then it is UTC.
    """
    if not pt.is_timestamp(kind) or kind.tz is None or _is_known(kind.tz):
        return kind
    return pa.timestamp(kind.unit, _known_name(kind.tz))


def _is_known(name: str) -> bool:
    if name == "UTC" or _OFFSET_NAME.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _known_name(name: str) -> str:
    try:
        found = parse_zone(name)
    except FormatError:
        return "UTC"
    if isinstance(found, ZoneInfo):
        return found.key
    minutes, rest = divmod(_offset(0, found), 60)
    if found is UTC or rest:
        return "UTC"
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def utc_offsets(seconds: Seconds, zone: tzinfo) -> Seconds:
    """Seconds to add to UTC to get local time, for instants in seconds since 1970 UTC.

    Looks at each day once: where the offset differs between its ends, the second of the change is
    searched. No zone changes twice within one UTC day.
    """
    if isinstance(zone, timezone):
        return np.full(len(seconds), _offset(0, zone), np.int64)
    days = pa.array(seconds // _DAY).dictionary_encode()
    starts: Seconds = days.dictionary.to_numpy() * _DAY
    found = np.array([_day_offsets(start, zone) for start in starts.tolist()], np.int64)
    change, before, after = found.reshape(-1, 3)[days.indices.to_numpy()].T
    offsets: Seconds = np.where(seconds < change, before, after)
    return offsets


def _day_offsets(start: int, zone: tzinfo) -> tuple[int, int, int]:
    """When the offset changes on the UTC day that begins at ``start``, and the offsets around it."""
    before, after = _offset(start, zone), _offset(start + _DAY, zone)
    if before == after:
        return start, before, after
    instants = range(start, start + _DAY)
    changed = bisect_left(instants, 1, key=lambda second: int(_offset(second, zone) != before))
    return start + changed, before, after


def _offset(second: int, zone: tzinfo) -> int:
    if second >= _LAST:
        second = _LAST - _CYCLE + (second - _LAST) % _CYCLE
    offset = datetime.fromtimestamp(max(second, _FIRST), zone).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)
