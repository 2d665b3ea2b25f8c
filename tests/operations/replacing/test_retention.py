"""What a retention keeps, as a rule: without a store."""

from __future__ import annotations

from typing import Any

import pytest

from filesink.errors import ConfigError
from filesink.operations.replacing.retention import Retention
from filesink.sink_directory.live_files import LiveFile
from tests.operations.replacing.worlds import DAY_MS, START_MS

HOUR_MS = 3_600_000


def file(path: str, size: int = 10) -> LiveFile:
    """A live file."""
    bucket = path.rpartition("/")[0]
    return LiveFile(
        path=path, bucket=bucket, size=size, rows=1, schema="", statistics=None, sink="u", slot=0, added=1
    )


def days(*numbers: int, size: int = 10) -> list[LiveFile]:
    """A file for each day of January."""
    return [file(f"day=2026-01-{number:02}/f", size) for number in numbers]


def dropped(retention: Retention, files: list[LiveFile], now_ms: int, written: dict[str, int] | None = None):
    """Paths of what goes."""
    gone, _ = retention.beyond(files, written or {}, now_ms)
    return sorted(one.path for one in gone)


def by_day(**limits: Any) -> Retention:
    """Of directories by day."""
    return Retention(by="partition time", extractor="$day", **limits)


def test_a_directory_is_as_old_as_its_end():
    """All of day 1 is a day old when day 2 is over, and not a moment before."""
    over = START_MS + 2 * DAY_MS
    assert dropped(by_day(max_age="1 day"), days(1, 2), over) == []
    assert dropped(by_day(max_age="1 day"), days(1, 2), over + 1) == ["day=2026-01-01/f"]


def test_the_length_of_a_partition_counts():
    """Months are kept until their last day is old enough; hours go after an hour."""
    months = [file("month=2026-01/f")]
    rule = Retention(
        by="partition time", max_age="1 day", formatter="'month='yyyy-MM", partition_length="31 days"
    )
    assert dropped(rule, months, START_MS + 32 * DAY_MS) == []
    assert dropped(rule, months, START_MS + 32 * DAY_MS + 1) == ["month=2026-01/f"]
    hours = [file("2026-01-01--00/f")]
    rule = Retention(by="partition time", max_age="1 h", partition_length="1 h")
    assert dropped(rule, hours, START_MS + 2 * HOUR_MS) == []
    assert dropped(rule, hours, START_MS + 2 * HOUR_MS + 1) == ["2026-01-01--00/f"]


def test_times_in_names_have_a_zone():
    """Midnight in New York is five hours later."""
    rule = by_day(max_age="1 day", time_zone="America/New_York")
    end = START_MS + 2 * DAY_MS + 5 * HOUR_MS
    assert dropped(rule, days(1), end) == []
    assert dropped(rule, days(1), end + 1) == ["day=2026-01-01/f"]


def test_the_oldest_go_until_the_bytes_are_few_enough():
    """Whole directories, from the newest down; the limit itself is allowed."""
    files = [*days(1, 2, 3), file("day=2026-01-03/g")]
    assert dropped(by_day(max_bytes=40), files, 0) == []
    assert dropped(by_day(max_bytes=39), files, 0) == ["day=2026-01-01/f"]
    assert dropped(by_day(max_bytes=20), files, 0) == ["day=2026-01-01/f", "day=2026-01-02/f"]
    assert dropped(by_day(max_bytes="19 B"), files, 0) == sorted(one.path for one in files)


def test_the_newest_are_kept_by_number():
    """Directories, whatever is in them; and what is beyond another limit goes all the same."""
    files = [*days(1, 2, 3), file("day=2026-01-03/g")]
    assert dropped(by_day(keep=2), files, 0) == ["day=2026-01-01/f"]
    assert dropped(by_day(keep=3, max_bytes=20), files, 0) == ["day=2026-01-01/f", "day=2026-01-02/f"]


def test_files_go_by_the_time_they_were_written():
    """Each by itself; one whose time is not known stays."""
    files = [file("a/1"), file("a/2"), file("b/3")]
    written = {"a/1": 1000, "b/3": 2000}
    assert dropped(Retention(max_age=1000), files, 2001, written) == ["a/1"]
    assert dropped(Retention(keep=1), files, 0, written) == ["a/1"]


@pytest.mark.parametrize("bucket", ["day=__HIVE_DEFAULT_PARTITION__", "other", "", "day=soon"])
def test_a_directory_without_a_time_stays(bucket: str):
    """It is told, and counts for no limit; else a null partition would push out all others."""
    strange = file(f"{bucket}/f" if bucket else "f", size=1 << 40)
    gone, undated = by_day(max_age=1, max_bytes=25, keep=2).beyond([strange, *days(1, 2)], {}, START_MS)
    assert (gone, undated) == ([], [bucket])


def test_one_that_stands_for_never_is_never_old():
    """As 9999-12-31, whatever the zone."""
    assert dropped(by_day(max_age=1, time_zone="America/New_York"), [file("day=9999-12-31/f")], 10**14) == []


def test_no_time_at_all_is_an_error():
    """An extractor that fits nothing would keep everything for ever, silently."""
    with pytest.raises(ConfigError, match=r"no time can be read from directories like 'day=2026-01-01'"):
        Retention(by="partition time", max_age=1).beyond(days(1), {}, START_MS)
    assert Retention(by="partition time", max_age=1).beyond([], {}, START_MS) == ([], [])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"by": "partition time"},
        {"by": "age", "keep": 1},
        {"keep": 0},
        {"keep": True},
        {"max_age": "soon"},
        {"max_age": -1},
        {"max_bytes": "many"},
        {"keep": 1, "extractor": "$day"},
        {"keep": 1, "by": "partition time", "extractor": "day"},
        {"keep": 1, "by": "partition time", "extractor": 7},
        {"keep": 1, "by": "partition time", "formatter": "HH"},
        {"keep": 1, "by": "partition time", "time_zone": "Mars"},
        {"keep": 1, "by": "partition time", "partition_length": "long"},
    ],
)
def test_wrong_ones_are_refused(arguments: dict[str, Any]):
    """When they are made: nothing is dropped by a rule that nobody meant."""
    with pytest.raises(ConfigError):
        Retention(**arguments).beyond(days(1), {}, 0)
