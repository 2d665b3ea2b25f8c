"""Names of tables and partitions, and locations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.buckets.partition_paths import DEFAULT_PARTITION
from filesink.errors import ConfigError, MetastoreError
from filesink.metastore.api import TableName, check_keys, partition_name, values_of
from filesink.metastore.locations import bucket_location, same_place
from filesink.metastore.tables.formats import HIVE_FORMATS, hive_format_of
from tests.metastore.test_memory import MemoryMetastoreSite


@pytest.mark.parametrize(
    "text", ["t", "db.", ".t", "db.t.x", "db.t;drop", "d b.t", "db.`t`", "db.té", "", "db." + "x" * 200]
)
def test_a_bad_name_is_refused(text: str) -> None:
    """Identifiers are validated before they reach any service."""
    with pytest.raises(ConfigError) as caught:
        TableName.parse(text)
    assert caught.value.code == "TABLE_NAME"


def test_names_are_lower_case() -> None:
    """Metastores keep names in lower case."""
    assert str(TableName.parse("Db.Flights_2024")) == "db.flights_2024"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/a/b", "file:///a/b/"),
        ("/a/b", "file:/a//b"),
        ("file://localhost/a", "/a"),
        ("s3://Bucket/x", "s3a://Bucket/x/"),
        ("hdfs://NN:8020/x", "hdfs://nn:8020/x"),
    ],
)
def test_spellings_of_one_place(one: str, other: str) -> None:
    """Hive, Spark and people spell one directory differently."""
    assert same_place(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/a/b", "file:/a/c"),
        ("file:/a", "hdfs:/a"),
        ("s3://b/x", "s3://B/x"),
        ("/a/k=%2F", "/a/k=/"),
        ("file://h/a", "/a"),
    ],
)
def test_other_places(one: str, other: str) -> None:
    """What may be another directory is another directory."""
    assert not same_place(one, other)


@pytest.mark.parametrize(
    ("table", "base", "bucket", "expected"),
    [
        ("file:/w/t", "/w/t", "d=1", "file:/w/t/d=1"),
        ("s3a://b/t/", "s3://b/t", "d=1/k=%2F", "s3a://b/t/d=1/k=%2F"),
        ("hdfs://nn/w/t", "/data/t", "d=1", "file:/data/t/d=1"),
        ("hdfs://nn/w/t", "s3://b/t", "", "s3://b/t"),
    ],
)
def test_where_a_bucket_is(table: str, base: str, bucket: str, expected: str) -> None:
    """The table's own spelling is kept where the base path is its directory."""
    assert bucket_location(table, base, bucket) == expected


def test_values_of_a_bucket() -> None:
    """Names in lower case, values unescaped, null as the default partition."""
    assert values_of("Day=2024-01-01/k=a%2Fb") == {"day": "2024-01-01", "k": "a/b"}
    assert values_of(f"day={DEFAULT_PARTITION}") == {"day": DEFAULT_PARTITION}


def test_names_of_partitions() -> None:
    """Escaped as Hive does, with the table's own keys."""
    table = MemoryMetastoreSite().fresh_table()
    assert partition_name(table, ("2024-01-01", "a/b:c")) == "day=2024-01-01/k=a%2Fb%3Ac"
    assert partition_name(table, ("d", DEFAULT_PARTITION)) == f"day=d/k={DEFAULT_PARTITION}"


def test_keys_are_the_same_in_any_case() -> None:
    """Spark's catalog keeps the spelling of who made the table; in another order they are others."""
    table = MemoryMetastoreSite().fresh_table()
    check_keys(table, ["Day", "K"])
    with pytest.raises(MetastoreError) as caught:
        check_keys(table, ["k", "day"])
    assert caught.value.code == "TABLE_CHANGED"


def test_formats_are_recognised() -> None:
    """Every known format is found again by its serde; others are not."""
    assert all(hive_format_of(form) == name for name, form in HIVE_FORMATS.items())
    assert hive_format_of(replace(HIVE_FORMATS["orc"], serde="org.example.Mine")) is None
    hudi = replace(HIVE_FORMATS["parquet"], input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat")
    assert hive_format_of(hudi) is None
