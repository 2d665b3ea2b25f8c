"""Partitions that an overwrite is to empty: what names one, and what names none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from filesink import BucketAssigner, ConfigError
from filesink.buckets.named_partitions import buckets_named

BY_DAY = BucketAssigner.partition_bucket_assigner("day")
COLUMNS = pa.schema(
    [
        ("Day", pa.date32()),
        ("hour", pa.int32()),
        ("who", pa.string()),
        ("yes", pa.bool_()),
        ("price", pa.decimal128(5, 2)),
        ("half", pa.float32()),
        ("whole", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("clock", pa.timestamp("us")),
    ]
)
NEW_YORK = "America/New_York"


def bucket_of(column: str, value: Any, zone: str = "UTC") -> str:
    """The text of the one directory that the value names."""
    assigner = BucketAssigner.partition_bucket_assigner(column)
    (bucket,) = buckets_named([{column: value}], assigner, COLUMNS, zone=zone)
    return bucket.partition("=")[2]


@pytest.fixture
def machine_in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock is that of UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "value",
    [
        date(2026, 1, 2),
        datetime(2026, 1, 2),  # noqa: DTZ001 - as a user has it
        datetime(2026, 1, 2, tzinfo=UTC),
        pd.Timestamp("2026-01-02"),
        "2026-01-02",
    ],
)
def test_a_day_is_named_by_whatever_is_that_day(value: Any) -> None:
    """All of these are the directory that Spark gives to the date, with the name the input has."""
    assert buckets_named([{"day": value}], BY_DAY, COLUMNS) == {"Day=2026-01-02"}


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 2, 3),  # noqa: DTZ001 - as a user has it
        "2026-1-2",
        "20260102",
        20260102,
        1.5,
        "2026-01-02T00:00:00+00:00",
        True,
        b"2026-01-02",
        [date(2026, 1, 2)],
    ],
)
def test_what_is_no_day_is_refused(value: Any) -> None:
    """It would replace nothing, and the old rows would stay without an error."""
    with pytest.raises(ConfigError) as caught:
        buckets_named([{"day": value}], BY_DAY, COLUMNS)
    assert caught.value.code == "BAD_VALUE"
    assert "day" in str(caught.value).lower()


@pytest.mark.parametrize("bucket", ["2026-01-02", "hour=1/day=2026-01-02", "Day=2026-1-2", "who=me", "a/b"])
def test_an_id_of_no_partition_is_refused(bucket: str) -> None:
    """An id has all partition columns, and values of their types."""
    with pytest.raises(ConfigError) as caught:
        buckets_named([bucket], BY_DAY, COLUMNS)
    assert caught.value.code == "BAD_VALUE"


def test_ids_are_taken_as_their_values_are() -> None:
    """Whatever the case of the name; null has its own directory."""
    named = buckets_named(["day=2026-01-02", "Day=__HIVE_DEFAULT_PARTITION__"], BY_DAY, COLUMNS)
    assert named == {"Day=2026-01-02", "Day=__HIVE_DEFAULT_PARTITION__"}


@pytest.mark.parametrize(
    ("column", "value", "bucket"),
    [
        ("hour", 7, "hour=7"),
        ("hour", "07", "hour=7"),
        ("who", "a b", "who=a b"),
        ("yes", True, "yes=true"),
        ("yes", "true", "yes=true"),
        ("hour", None, "hour=__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_values_have_the_text_of_their_column(column: str, value: Any, bucket: str) -> None:
    """As Spark casts a value of that type to a string."""
    assigner = BucketAssigner.partition_bucket_assigner(column)
    assert buckets_named([{column: value}], assigner, COLUMNS) == {bucket}


@pytest.mark.parametrize(("column", "value"), [("hour", True), ("yes", 1), ("hour", "x"), ("hour", 5.5)])
def test_values_of_other_types_are_refused(column: str, value: Any) -> None:
    """True is no hour."""
    assigner = BucketAssigner.partition_bucket_assigner(column)
    with pytest.raises(ConfigError) as caught:
        buckets_named([{column: value}], assigner, COLUMNS)
    assert caught.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        ("price", [Decimal("1.5"), Decimal("1.500"), 1.5, "1.5", "1.50", "+01.5", "15e-1"], "1.50"),
        ("price", [2, "2", 2.0], "2.00"),
        ("half", [0.1, "0.1", Decimal("0.1")], "0.1"),
        ("whole", [1, 1.0, "1", "1.0", "1e0", Decimal(1)], "1.0"),
        ("whole", [1e20, "1e20", 10**20], "1.0E20"),
        ("who", [7, "7"], "7"),
        ("who", [date(2026, 1, 2), "2026-01-02"], "2026-01-02"),
        ("clock", [datetime(2026, 3, 1, 5), "2026-03-01T05:00:00"], "2026-03-01 05%3A00%3A00"),  # noqa: DTZ001
    ],
)
def test_equal_values_name_one_directory(column: str, values: list[Any], text: str) -> None:
    """However they are written: ``1.5`` is what Spark calls ``1.50`` in a column with two digits."""
    assert {bucket_of(column, value) for value in values} == {text}


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 3, 1, 5, tzinfo=UTC),
        datetime(2026, 3, 1, 0, tzinfo=timezone(-timedelta(hours=5))),
        pd.Timestamp("2026-03-01 05:00", tz="UTC"),
        "2026-03-01T05:00:00Z",
        "2026-03-01 05:00:00+00:00",
        "2026-03-01 00:00",
        "2026-03-01T00:00:00.0",
        "2026-03-01",
        date(2026, 3, 1),
    ],
)
def test_a_moment_is_shown_by_the_clock_of_the_session(value: Any) -> None:
    """As Spark has it in the path; text without an offset goes by that clock, too."""
    assert bucket_of("at", value, NEW_YORK) == "2026-03-01 00%3A00%3A00"


@pytest.mark.usefixtures("machine_in_utc")
def test_a_moment_that_may_be_two_is_refused() -> None:
    """PySpark reads it by the clock of the machine, its user perhaps by that of the session."""
    moment = datetime(2026, 3, 1, 5)  # noqa: DTZ001 - that is the point
    assert bucket_of("at", moment, "UTC") == "2026-03-01 05%3A00%3A00"
    assert bucket_of("at", moment, "Africa/Abidjan") == "2026-03-01 05%3A00%3A00"
    with pytest.raises(ConfigError, match="either of two partitions") as caught:
        bucket_of("at", moment, NEW_YORK)
    assert caught.value.code == "BAD_VALUE"
    assert NEW_YORK in caught.value.message


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("price", "1.555"),
        ("price", 1000),
        ("price", True),
        ("price", "1,5"),
        ("price", Decimal("NaN")),
        ("price", float("inf")),
        ("whole", "x"),
        ("whole", float("nan")),
        ("whole", False),
        ("who", 1.5),
        ("who", True),
        ("who", datetime(2026, 1, 2)),  # noqa: DTZ001 - as a user has it
        ("who", b"x"),
        ("at", "2026-3-1"),
        ("at", "2026-13-01 05:00:00"),
        ("at", "yesterday"),
        ("at", 1_700_000_000),
        ("at", pd.NaT),
        ("at", datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))),
        ("clock", datetime(2026, 3, 1, 5, tzinfo=UTC)),
        ("clock", "2026-03-01T05:00:00Z"),
    ],
)
def test_what_no_record_can_have_is_refused(column: str, value: Any) -> None:
    """It would name a directory that never gets a record, and replace nothing without a word."""
    with pytest.raises(ConfigError, match="Give ") as caught:
        bucket_of(column, value, NEW_YORK)
    assert caught.value.code == "BAD_VALUE"
    assert column in caught.value.message


def test_a_value_alone_is_no_id() -> None:
    """The error says what an id looks like."""
    with pytest.raises(ConfigError, match=r"'day=2026-01-31'.*\{'day': '2026-01-31'\}"):
        buckets_named(["2026-01-02"], BY_DAY, COLUMNS)
