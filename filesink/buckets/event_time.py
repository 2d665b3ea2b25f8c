"""The latest time in a column, as a watermark needs it, and instants of wall clocks. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from filesink.buckets.contract import find_column
from filesink.buckets.partition_paths import split_ticks
from filesink.errors import SchemaError
from filesink.local_time import DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall-clock arithmetic on purpose


def check_time_column(schema: pa.Schema, column: str) -> None:
    """Raise ``SchemaError`` unless ``column`` is there and holds timestamps or dates."""
    field = schema.field(find_column(schema, column))
    if not (pt.is_timestamp(field.type) or pt.is_date(field.type)):
        raise SchemaError(
            f"watermark column {field.name!r} has type {field.type}; a timestamp or a date is needed",
            code="WATERMARK_COLUMN",
        )


def latest_ms(times: pa.Array[Any], zone: tzinfo, *, before_ms: int) -> int | None:
    """The latest of ``times`` that is not after ``before_ms``; ``None`` if there is none since 1970.

    Args:
        times: timestamps or dates; null is passed over. Those without a zone are wall-clock times.
        zone: the wall clock that is meant.
        before_ms: milliseconds since 1970 UTC; what lies beyond is taken for an error in the data.
    """
    seconds, nanos = split_ticks(times.drop_null())
    ms: NDArray[np.int64] = seconds * 1000 + nanos // 1_000_000
    is_instant = pt.is_timestamp(times.type) and times.type.tz is not None
    limit = before_ms if is_instant else _wall_ms(before_ms, zone)
    past = ms[(ms <= limit) & (ms >= -DAY * 1000)]
    if not len(past):
        return None
    latest = (
        int(past.max()) if is_instant else instant_ms(_EPOCH + timedelta(milliseconds=int(past.max())), zone)
    )
    return latest if latest >= 0 else None


def instant_ms(wall: datetime, zone: tzinfo) -> int:
    """Milliseconds since 1970 UTC of what the wall clock of ``zone`` shows; the earlier of two."""
    return int((wall.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


def latest_instant_ms(wall: datetime, zone: tzinfo) -> int:
    """As ``instant_ms``; the later of two."""
    return max(instant_ms(wall, zone), instant_ms(wall.replace(fold=1), zone))


def _wall_ms(instant: int, zone: tzinfo) -> int:
    wall = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)).astimezone(zone)
    return int((wall.replace(tzinfo=None) - _EPOCH) / timedelta(milliseconds=1))
