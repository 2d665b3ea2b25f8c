"""What bounds the batches of rows that cross to Python."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from filesink.spark.arrow_batches import LIMIT, bounded_by_rows

pytestmark = pytest.mark.spark


def _limit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        context = TaskContext.get()
        assert context is not None
        yield pa.RecordBatch.from_pydict({"limit": [context.getLocalProperty(LIMIT)]})


def limit_of(df: DataFrame) -> str | None:
    """The limit that a job's tasks see."""
    with bounded_by_rows(df):
        return df.coalesce(1).mapInArrow(_limit, "limit string").collect()[0][0]


def test_short_values_have_no_limit_of_bytes(spark: SparkSession) -> None:
    """Numbers and strings cross in batches bounded by rows; jobs outside keep Spark's limit."""
    df = spark.sql("SELECT 1 AS a, 'x' AS b, named_struct('c', DATE'2026-01-01') AS s")
    assert limit_of(df) == "2147483647"
    assert spark.sparkContext.getLocalProperty(LIMIT) is None


@pytest.mark.parametrize(
    "column", ["X'00' AS a", "array(1) AS a", "map(1, 2) AS a", "named_struct('b', X'00') AS a"]
)
def test_values_that_may_be_long_keep_the_limit(spark: SparkSession, column: str) -> None:
    """Columns made for long values cross under Spark's own limit."""
    assert limit_of(spark.sql(f"SELECT {column}")) is None


def test_a_limit_of_the_session_counts(spark: SparkSession) -> None:
    """Who sets the limit gets it."""
    spark.conf.set(LIMIT, "1000000")
    try:
        assert limit_of(spark.range(1).toDF("a")) == "1000000"
    finally:
        spark.conf.unset(LIMIT)
