"""A value that a user gives for a partition column, as Spark has it in a path.

Equal values of a column have one text: ``1.5`` is ``1.50`` for ``DECIMAL(5,2)``. So what is given is made a
value of the column's type first. What cannot be one is refused: it would name a directory that no record
gets. Pure, but for the time zone of this machine, in which PySpark reads a moment without one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from filesink.buckets.partition_paths import check_type, texts
from filesink.errors import ConfigError
from filesink.local_time import time_zone

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[ T](?P<clock>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s*(?P<zone>Z|[+-]\d{2}:\d{2}|UTC)?)?"
)
_NO_VALUE = (pa.ArrowException, TypeError, ValueError, OverflowError, InvalidOperation)


def value_text(value: Any, field: pa.Field[Any], zone: str) -> str | None:
    """``value`` as Spark has a value of the column ``field`` in a path; ``None`` for null.

    Args:
        value: of the column's type, or its text.
        field: the column.
        zone: the name of the session's time zone.

    Raises:
        ConfigError: ``BAD_VALUE``; it is none of that type, or may be either of two.
        SchemaError: ``BUCKET_TYPE``; no value of that type names a directory.
    """
    if value is None:
        return None
    check_type(field)
    made, accepted = next((made, text) for is_of, made, text in _KINDS if is_of(field.type))
    try:
        return texts(made(value, field.type, zone), zone)[0]
    except ConfigError:
        raise
    except _NO_VALUE as error:
        raise ConfigError(
            f"partitions has a {type(value).__name__} that is no value of column {field.name!r} of type "
            f"{field.type}: it would replace nothing. Give {accepted}",
            code="BAD_VALUE",
        ) from error


# --- each of these makes an array of one value, or raises one of ``_NO_VALUE``


def _whole(value: Any, kind: pa.DataType, zone: str) -> pa.Array[Any]:
    del zone
    if isinstance(value, bool | date):
        raise TypeError
    return _cast(value, kind)


def _truth(value: Any, kind: pa.DataType, zone: str) -> pa.Array[Any]:
    del zone
    if not isinstance(value, bool | str):
        raise TypeError
    return _cast(value, kind)


def _day(value: Any, kind: pa.DataType, zone: str) -> pa.Array[Any]:
    """A day, or the moment that it begins with, as schedulers name days."""
    del zone
    if isinstance(value, datetime):
        if value.time() != time.min:
            raise ValueError
        value = value.date()
    if not isinstance(value, str | date):
        raise TypeError
    return _cast(value, kind)


def _decimal(value: Any, kind: pa.DataType, zone: str) -> pa.Array[Any]:
    """With the scale of the column; Arrow refuses to lose digits."""
    del zone
    return pa.array([_number(value)], kind)


def _floating(value: Any, kind: pa.DataType, zone: str) -> pa.Array[Any]:
    """As near as the column's type has it. NaN equals nothing, and has no directory."""
    del zone
    number = value if isinstance(value, float) else float(_number(value))
    if math.isnan(number):
        raise ValueError
    return pa.array([number], pa.float64()).cast(kind, safe=False)


def _moment(value: Any, kind: Any, zone: str) -> pa.Array[Any]:
    """What the wall clock shows, in the zone of the session if the column has one."""
    found = _parsed(value) if isinstance(value, str) else value
    if not isinstance(found, datetime):
        found = datetime.combine(found, time.min)
    elif kind.tz is not None and found.tzinfo is not None:
        found = found.astimezone(time_zone(zone)).replace(tzinfo=None)
    elif kind.tz is not None and not isinstance(value, str):
        _check_clocks(found, time_zone(zone))
    if found.tzinfo is not None:
        raise ValueError
    return pa.array([found], pa.timestamp("us"))


def _plain(value: Any, kind: pa.DataType, zone: str) -> pa.Array[Any]:
    """For a column of texts: a text, or what has one text only."""
    del kind, zone
    if isinstance(value, bool | datetime) or not isinstance(value, str | int | date):
        raise TypeError
    return pa.array([str(value)], pa.string())


def _cast(value: Any, kind: pa.DataType) -> pa.Array[Any]:
    found: pa.Array[Any] = pa.array([value]).cast(kind)
    return found


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise TypeError
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError
    return Decimal(repr(float(value)) if isinstance(value, float) else value)


def _parsed(text: str) -> datetime:
    """The moment of a text; without a zone it is what the wall clock shows."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise ValueError
    zone = "+00:00" if match["zone"] in {"Z", "UTC"} else match["zone"] or ""
    return datetime.fromisoformat(f"{match['day']}T{match['clock'] or '00:00'}{zone}")


def _check_clocks(moment: datetime, zone: tzinfo) -> None:
    """Refuse a ``datetime`` without a zone that may be either of two moments.

    PySpark gives and takes them by the clock of this machine; who writes one by hand often means that of the
    session.
    """
    plain = datetime.combine(moment.date(), moment.time())  # pandas has a class of its own
    if plain.astimezone(UTC) != plain.replace(tzinfo=zone).astimezone(UTC):
        raise ConfigError(
            "partitions has a datetime without time zone, and the clock of this machine shows another time "
            f"than that of the session, whose time zone is {zone}: it may mean either of two partitions. "
            "Give it a time zone, or give text as in '2026-01-31 12:00:00', by the clock of the session",
            code="BAD_VALUE",
        )


def _has_no_zone(kind: Any) -> bool:
    return pt.is_timestamp(kind) and kind.tz is None


_Made = Callable[[Any, pa.DataType, str], "pa.Array[Any]"]
_MOMENTS = "'2026-01-31 12:00:00', by the clock of the session, or '2026-01-31T12:00:00Z'"
_KINDS: tuple[tuple[Callable[[pa.DataType], bool], _Made, str], ...] = (
    (pt.is_integer, _whole, "a whole number, or its text"),
    (pt.is_boolean, _truth, "True or False, or 'true' or 'false'"),
    (pt.is_date, _day, "a date, or its text as in '2026-01-31'"),
    (pt.is_decimal, _decimal, "a number with no more digits than that, such as Decimal('1.5') or '1.5'"),
    (pt.is_floating, _floating, "a number, or its text as in '0.1'"),
    (_has_no_zone, _moment, "a datetime without time zone, or text as in '2026-01-31 12:00:00'"),
    (pt.is_timestamp, _moment, f"a datetime with a time zone, or text as in {_MOMENTS}"),
    (lambda _: True, _plain, "its text"),
)  # fmt: skip
