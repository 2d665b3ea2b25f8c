"""Buckets through Spark: what it lists as a reader, and records without a bucket by every door."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import filesink
from filesink import BucketAssigner, BucketError, DeadLetters, FileSink
from filesink.buckets.partition_paths import fragment
from filesink.storage.local.posix import PosixFs
from formats import Encoder, ParquetWriterFactory
from tests import bucket_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def listed(spark: SparkSession, base: Path) -> list[int]:
    """The rows that Spark finds in all directories, as docs/start.md reads them."""
    frame = spark.read.schema("n bigint").option("recursiveFileLookup", "true").parquet(str(base))
    return sorted(row.n for row in frame.collect())


def directories(base: Path, names: list[str]) -> Path:
    """A row in each of the directories, which are numbered from 0."""
    for number, name in enumerate(names):
        (base / name).mkdir(parents=True)
        pq.write_table(pa.table({"n": [number]}), base / name / "part-0.parquet")
    return base


# --- what Spark lists


@pytest.mark.parametrize("place", bucket_names.PLACES)
def test_characters(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """Spark sees what the table says it sees, of all characters side by side."""
    names = [bucket_names.PLACES[place].format(each) for each in bucket_names.CHARACTERS]
    unseen = {
        names[number]
        for number, each in enumerate(bucket_names.CHARACTERS)
        if "spark" in bucket_names.UNSEEN.get((each, place), ())
    }
    seen = listed(spark, directories(tmp_path, names))
    assert {names[number] for number in seen} == set(names) - unseen
    assert len(seen) == len(set(seen))


def test_names(spark: SparkSession, tmp_path: Path) -> None:
    """Globs, escapes and endings that mean something elsewhere."""
    assert listed(spark, directories(tmp_path, bucket_names.NAMES)) == [*range(len(bucket_names.NAMES))]


def test_long_and_deep_paths(spark: SparkSession, tmp_path: Path) -> None:
    """As long and as deep as an id may be."""
    paths = bucket_names.long_paths()
    assert listed(spark, directories(tmp_path, paths)) == [*range(len(paths))]


@pytest.mark.parametrize("length", [4095, 4096])
def test_paths_with_the_base(spark: SparkSession, tmp_path: Path, length: int) -> None:
    """A path that is longer than PATH_MAX is passed over without a word."""
    directories(tmp_path, ["beside"])
    path = bucket_names.path_of(length - len(f"{tmp_path}/"))
    bucket_names.make(PosixFs(str(tmp_path)), path)
    try:
        assert listed(spark, tmp_path) == ([0, 2] if length < 4096 else [0])
    finally:
        shutil.rmtree(tmp_path / path[:200])  # pytest could not


def test_values_of_partitions_come_back(spark: SparkSession, tmp_path: Path) -> None:
    """Every character is a value of a partition, and read as it was written."""
    values = [form.format(each) for form in bucket_names.PLACES.values() for each in bucket_names.CHARACTERS]
    values = list(dict.fromkeys(values))
    directories(tmp_path, [fragment("k", value) for value in values])
    frame = spark.read.schema("n bigint, k string").parquet(str(tmp_path))
    assert [row.k for row in frame.orderBy("n").collect()] == values


@pytest.mark.parametrize("name", ["k=", "=v"])
def test_half_a_partition(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Spark refuses the whole directory, so such an id is refused."""
    directories(tmp_path, [name, "k=v"])
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)empty.partition.column"):
        spark.read.parquet(str(tmp_path))


# --- records without a bucket


def some_bad(spark: SparkSession) -> DataFrame:
    """Ten records: a value of 300 bytes, a null time, and eight like any others."""
    return spark.range(0, 10, numPartitions=1).selectExpr(
        "id AS n",
        "IF(id = 3, repeat('secret', 50), CAST(id % 2 AS STRING)) AS k",
        "IF(id = 4, NULL, TIMESTAMP'2026-01-01 10:00:00') AS at",
    )


def by_k(base: Path) -> filesink.FileSinkBuilder:
    """Parquet files in partitions by ``k``."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(
        BucketAssigner.partition_bucket_assigner("k")
    )


def test_one_error_names_column_and_rows(spark: SparkSession, tmp_path: Path) -> None:
    """By both doors; no value is shown, and nothing was written."""
    with pytest.raises(BucketError) as raised:
        by_k(tmp_path).build().write(some_bad(spark))
    filesink.register(spark)
    door = some_bad(spark).write.format("filesink").mode("append").option("bucketColumns", "k")
    with pytest.raises(PySparkException) as refused:
        door.save(str(tmp_path))
    for text in (str(raised.value), str(refused.value)):
        assert "partition column 'k' makes a directory's name of more than 255 bytes, in 1 records" in text
        assert "secret" not in text
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("assigner", "bad"),
    [
        (BucketAssigner.partition_bucket_assigner("k"), [3]),
        (BucketAssigner.expression_bucket_assigner("date_format(at, 'yyyy')"), [4]),
        (BucketAssigner.expression_bucket_assigner("k"), [3]),
    ],
    ids=["partition", "null expression", "long expression"],
)
@pytest.mark.parametrize("form", ["row", "bulk"])
def test_they_are_put_aside(
    spark: SparkSession, tmp_path: Path, assigner: BucketAssigner, bad: list[int], form: str
) -> None:
    """Once, with all columns; readers of the data see the others only."""
    builder = (
        FileSink.for_row_format(tmp_path, Encoder.json_lines())
        if form == "row"
        else FileSink.for_bulk_format(tmp_path, ParquetWriterFactory())
    )
    sink = builder.with_bucket_assigner(assigner).on_bad_record(DeadLetters()).build()
    assert sink.write(some_bad(spark)).metrics["dead_letters"] == len(bad)
    letters = spark.read.parquet(f"{tmp_path}/_dead_letters_no_bucket")
    assert letters.columns == ["n", "k", "at", "_error"]
    assert [row.n for row in letters.collect()] == bad
    read = duckdb.read_json if form == "row" else duckdb.read_parquet
    glob = f"{tmp_path}/**/*.{'json' if form == 'row' else 'parquet'}"
    assert sorted(n for (n,) in read(glob).project("n").fetchall()) == [n for n in range(10) if n not in bad]


def test_a_null_time_ends_no_query(spark: SparkSession, tmp_path: Path) -> None:
    """It lies in a directory that Spark reads as null, by both doors."""
    at = BucketAssigner.date_time_bucket_assigner("'day='yyyy-MM-dd", column="at")
    sink = (
        FileSink.for_bulk_format(tmp_path / "sink", ParquetWriterFactory()).with_bucket_assigner(at).build()
    )
    sink.write(some_bad(spark))
    filesink.register(spark)
    door = some_bad(spark).write.format("filesink").mode("append").option("bucketTimeColumn", "at")
    door.option("bucketTimeFormat", "'day='yyyy-MM-dd").save(f"{tmp_path}/door")
    for base in ("sink", "door"):
        frame = spark.read.parquet(f"{tmp_path}/{base}")
        assert [row.n for row in frame.where("day IS NULL").collect()] == [4]
        assert frame.count() == 10
