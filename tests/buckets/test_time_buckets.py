"""Buckets by time, against Flink's DateTimeBucketAssignerTest."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext, assign_ids
from filesink.buckets.date_patterns import DatePattern
from filesink.errors import ConfigError, SchemaError
from filesink.local_time import LocalTime
from filesink.storage.bucket_ids import check_bucket_id

LOS_ANGELES = BucketContext(processing_time_ms=1_533_363_082_011, time_zone="America/Los_Angeles")
DATE_TIME = BucketAssigner.date_time_bucket_assigner
NUMBERS = pa.record_batch({"n": pa.array(range(6))})


def assigned(assigner, batch):
    """The id of each record."""
    return assign_ids(assigner, batch, LOS_ANGELES).to_pylist()


def times(*values, kind=None):
    """A batch with one column of times, by default of instants."""
    return pa.record_batch({"ts": pa.array(values, kind or pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize(
    ("arguments", "bucket"),
    [
        ((), "2018-08-03--23"),
        (("yyyy-MM-dd--HH", "UTC"), "2018-08-04--06"),
        (("yyyy-MM-dd-HH",), "2018-08-03-23"),
        (("yyyy/MM/dd", "+05:30"), "2018/08/04"),
    ],
)
def test_processing_time(arguments, bucket):
    """Flink's cases 13 and 14: the driver's clock, shown in the given zone or the session's."""
    assert assigned(DATE_TIME(*arguments), NUMBERS) == [bucket] * 6


def test_column_in_session_zone():
    """A timestamp with a zone is shown by the wall clock of the session, through both DST changes."""
    batch = times(
        datetime(2024, 3, 10, 9, 59, tzinfo=UTC),
        datetime(2024, 3, 10, 10, 0, tzinfo=UTC),
        datetime(2024, 11, 3, 8, 30, tzinfo=UTC),
        datetime(2024, 11, 3, 9, 30, tzinfo=UTC),
    )
    hours = ["2024-03-10--01", "2024-03-10--03", "2024-11-03--01", "2024-11-03--01"]
    assert assigned(DATE_TIME(column="ts"), batch) == hours


def test_a_short_name_of_java_s_is_a_zone():
    """As Spark takes it for a session."""
    batch = times(datetime(2024, 7, 1, 10, 0, tzinfo=UTC))
    assert assigned(DATE_TIME("HH", "PST", "ts"), batch) == ["03"]


def test_half_hour_zone():
    """Hours begin at half past in UTC where the offset says so."""
    batch = times(datetime(2024, 1, 1, 10, 29, tzinfo=UTC), datetime(2024, 1, 1, 10, 30, tzinfo=UTC))
    assert assigned(DATE_TIME("HH", "Asia/Kolkata", "ts"), batch) == ["15", "16"]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")]
)
def test_timestamp_without_zone(kind):
    """A timestamp without zone is formatted as it is, in any unit."""
    batch = times(datetime(2024, 1, 1, 23, 59), kind=kind)  # noqa: DTZ001
    assert assigned(DATE_TIME(column="ts"), batch) == ["2024-01-01--23"]


def test_date():
    """A date is its midnight, before 1970 too."""
    batch = times(date(1969, 12, 31), date(2024, 2, 29), kind=pa.date32())
    assert assigned(DATE_TIME(column="TS"), batch) == ["1969-12-31--00", "2024-02-29--00"]


def test_fractions():
    """A pattern finer than a second truncates."""
    batch = times(-1, 1_999, 1_001_999, kind=pa.timestamp("us"))
    assert assigned(DATE_TIME("ss.SSS", column="ts"), batch) == ["59.999", "00.001", "01.001"]


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM", "QQQ", "DDD", "E", "dd-a", "hh-a", "HH", "mm", "HH.ss", "ss.SSS", "s-S-SSSSSS"]
)
def test_each_record_is_in_the_bucket_of_its_own_time(pattern):
    """Only one time of each unit is formatted, and its text is that of all others in the unit."""
    steps = [70_001, 700_000, *(700_000 * unit for unit in (60, 3600, 43_200, 86_400, 2_678_400))]
    micros = [number * step for step in steps for number in range(-40, 40)]
    shown = [LocalTime.of(each // 1_000_000, each % 1_000_000 * 1000) for each in micros]
    expected = [DatePattern(pattern=pattern).format(each) for each in shown]
    assert assigned(DATE_TIME(pattern, column="ts"), times(*micros, kind=pa.timestamp("us"))) == expected


@pytest.mark.parametrize(
    ("pattern", "bucket"),
    [
        ("yyyy-MM-dd--HH", "null"),
        ("yyyy/MM/dd", "null/null/null"),
        ("'events'/yyyy", "events/null"),
        ("'day='yyyy-MM-dd", "day=__HIVE_DEFAULT_PARTITION__"),
        ("'year='yyyy/'month='MM'x'", "year=__HIVE_DEFAULT_PARTITION__/month=__HIVE_DEFAULT_PARTITION__"),
        ("'y'yyyy", "null"),
        ("ss.SSS", "null"),
    ],
)
def test_a_record_without_time_has_a_bucket(pattern, bucket):
    """As deep as that of the others, as Hive has it where it is Hive's, and where every reader looks."""
    at = datetime(2024, 1, 1, tzinfo=UTC)
    ids = assigned(DATE_TIME(pattern, "UTC", "ts"), times(None, at, None, at))
    assert ids == [bucket, *assigned(DATE_TIME(pattern, "UTC", "ts"), times(at)), bucket, ids[1]]
    assert assigned(DATE_TIME(pattern, column="ts"), times(None)) == [bucket]
    assert check_bucket_id(bucket) == bucket


def test_a_bucket_of_one_s_own_for_records_without_time():
    """The user's choice, checked when the assigner is made; the base path is one."""
    assert assigned(DATE_TIME(column="ts", null_bucket="late"), times(None)) == ["late"]
    assert assigned(DATE_TIME(column="ts", null_bucket=""), times(None)) == [""]
    with pytest.raises(ConfigError, match=r"BAD_VALUE.*null_bucket"):
        DATE_TIME(column="ts", null_bucket="_late")


@pytest.mark.parametrize("pattern", ["", "yyyy/", "/yyyy", "_yyyy", "yyyy/'.'dd", "'..'", "yyyy//MM", "YYYY"])
def test_unusable_pattern(pattern):
    """A pattern that can never make a directory fails when the assigner is made."""
    with pytest.raises(ConfigError, match="BAD_VALUE"):
        DATE_TIME(pattern)


def test_unknown_zone():
    """So does a zone that nobody knows."""
    with pytest.raises(ConfigError, match="TIME_ZONE"):
        DATE_TIME(timezone_id="Mars/Base")


def test_schema():
    """The column must exist and hold time."""
    with pytest.raises(SchemaError, match=r"BUCKET_COLUMN.*'ts' is not in columns \[n\]"):
        DATE_TIME(column="ts").check_schema(NUMBERS.schema)
    with pytest.raises(SchemaError, match=r"BUCKET_TYPE.*int64"):
        DATE_TIME(column="n").check_schema(NUMBERS.schema)
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()):
        DATE_TIME(column="ts").check_schema(times(0, kind=kind).schema)
    DATE_TIME().check_schema(NUMBERS.schema)
