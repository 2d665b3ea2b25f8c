"""Partitions that an overwrite is to empty: what names one, and what names none."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from filesink import BucketAssigner, ConfigError
from filesink.buckets.named_partitions import buckets_named

BY_DAY = BucketAssigner.partition_bucket_assigner("day")
COLUMNS = pa.schema([("Day", pa.date32()), ("hour", pa.int32()), ("who", pa.string()), ("yes", pa.bool_())])


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
