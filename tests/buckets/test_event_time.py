"""What a watermark is made of: times of a column, and the wall clock that they show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from filesink.buckets.event_time import check_time_column, latest_ms
from filesink.local_time import time_zone
from filesink.parts.committables import Watermark
from tests.fakes import World, plan_of

WALL = pa.array([datetime(2024, 1, 1, 17)], pa.timestamp("us"))  # noqa: DTZ001 - a wall clock on purpose
INSTANT = pa.array([datetime(2024, 1, 1, 17, tzinfo=UTC)], pa.timestamp("us", "UTC"))
DAY = pa.array([date(2024, 1, 2)])


def at(text: str) -> int:
    """Milliseconds of an ISO time in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("times", "before", "latest"),
    [
        (WALL, "2024-01-10", "2024-01-01T09:00"),
        (WALL, "2024-01-01T09:00", "2024-01-01T09:00"),
        (WALL, "2024-01-01T08:59", None),
        (DAY, "2024-01-10", "2024-01-01T16:00"),
        (DAY, "2024-01-01T16:00", "2024-01-01T16:00"),
        (DAY, "2024-01-01T15:59", None),
        (INSTANT, "2024-01-10", "2024-01-01T17:00"),
        (INSTANT, "2024-01-01T16:59", None),
    ],
)
def test_times_without_a_zone_are_those_of_the_wall_clock(times, before, latest):
    """East of UTC they are hours earlier, and so is what lies too far ahead."""
    zone = time_zone("Asia/Shanghai")
    assert latest_ms(times, zone, before_ms=at(before)) == (latest and at(latest))


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()])
def test_columns_of_times(kind):
    """Timestamps and dates, whatever the case of the name."""
    check_time_column(pa.schema([("ts", kind)]), "TS")


def test_times_without_a_zone_are_those_of_the_partitions():
    """Whoever names the zone of the partitions' values means that of the column, whatever session writes."""
    plan = replace(plan_of(), watermark_column="ts", watermark_zone="Asia/Shanghai")
    world = World(plan=plan)
    world.clock.now = at("2024-01-10")
    batch = pa.RecordBatch.from_pydict(
        {"bucket": [""], "value": [""], "ts": pa.array([at("2024-01-01T17:00") * 1000], pa.timestamp("us"))}
    )
    writer = world.writer()
    writer.write(batch, world.context())
    marks = [one for one in writer.prepare_commit(0) if isinstance(one, Watermark)]
    assert [mark.latest_ms for mark in marks] == [at("2024-01-01T09:00")]
