"""What bounds the batches of rows that cross to Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from filesink.spark.input.arrow_batches import BYTES, MOST, ROWS, Crossing
from filesink.spark.input.local_properties import local_properties
from tests.spark import outside
from tests.spark.drivers import Driver

pytestmark = pytest.mark.spark
NO_LIMIT = "2147483647"


def _sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        nullable = [field.nullable for field in batch.schema]
        yield pa.RecordBatch.from_pylist(
            [{"rows": batch.num_rows, "bytes": batch.nbytes, "nullable": nullable}]
        )


def _limits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        context = TaskContext.get()
        assert context is not None
        limits = [context.getLocalProperty(BYTES), context.getLocalProperty(ROWS)]
        yield pa.RecordBatch.from_pydict({"limits": [limits]})


def batches_of(df: DataFrame, *, rows_before: int | None = None) -> list[tuple[int, int, list[bool]]]:
    """Rows, bytes and nullable columns of each batch, as tasks see them."""
    crossing = Crossing.of(df, rows_before=rows_before)
    with local_properties(df.sparkSession.sparkContext, shown_as="rows", wanted=crossing.limits()):
        df, function = crossing.weighed(df.coalesce(1), _sizes)
        rows = df.mapInArrow(function, "rows long, bytes long, nullable array<boolean>").collect()
    return [tuple(row) for row in rows]


def limits_of(df: DataFrame, *, rows_before: int | None = None) -> list[str | None]:
    """The limits of bytes and of rows that a job's tasks see."""
    wanted = Crossing.of(df, rows_before=rows_before).limits()
    with local_properties(df.sparkSession.sparkContext, shown_as="limits", wanted=wanted):
        limits: list[str | None] = df.coalesce(1).mapInArrow(_limits, "limits array<string>").collect()[0][0]
    return limits


@pytest.mark.parametrize("value", ["repeat('x', 61440)", "cast(repeat('x', 61440) AS binary)"])
@pytest.mark.parametrize("column", ["{} AS s", "named_struct('a', 1, 'b.`c', {}) AS s", "array({}) AS s"])
def test_long_values_cross_in_small_batches(spark: SparkSession, column: str, value: str) -> None:
    """A batch has 16 MiB and one row, no row is lost or doubled, and what may not be null says so."""
    df = spark.range(1000).selectExpr("id", "id AS other", "1 AS one", column.format(value))
    found = batches_of(df)
    assert sum(rows for rows, _, _ in found) == 1000
    assert max(size for _, size, _ in found) <= MOST + 2 * 61440
    assert len(found) < 8  # and no smaller than they may be
    assert {tuple(nullable) for _, _, nullable in found} == {tuple(field.nullable for field in df.schema)}


def test_rows_of_all_lengths_come_through(spark: SparkSession) -> None:
    """Short ones between long ones, nulls and empty ones: each once, in their order, with what they hold."""
    df = spark.range(3000).selectExpr(
        "id", "id AS other", "if(id % 7 = 0, null, repeat(string(id % 10), int(pow(3, id % 12)))) s"
    )

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    crossing = Crossing.of(df)
    with local_properties(spark.sparkContext, shown_as="rows", wanted=crossing.limits()):
        more, function = crossing.weighed(df.coalesce(1), same)
        assert more.mapInArrow(function, df.schema).collect() == df.collect()


def test_short_rows_cross_in_batches_of_rows(spark: SparkSession) -> None:
    """Nothing is added up for numbers and short strings, and batches are as large as the session has them."""
    df = spark.range(25_000).selectExpr(
        "id", "'x' AS s", "named_struct('c', DATE'2026-01-01', 'd', 'y') AS t"
    )
    assert [rows for rows, _, _ in batches_of(df)] == [10_000, 10_000, 5_000]
    assert limits_of(df) == [NO_LIMIT, None]
    assert spark.sparkContext.getLocalProperty(BYTES) is None
    assert spark.sparkContext.getLocalProperty(ROWS) is None


def test_a_micro_batch_after_a_small_one_is_added_up(spark: SparkSession) -> None:
    """That is planned faster, and as safe: long rows after short ones still cross in small batches."""
    short = spark.range(1).selectExpr("id", "id AS other", "'x' AS s")
    assert limits_of(short, rows_before=10_000) == [str(MOST), None]
    assert limits_of(short, rows_before=1_000_000) == [NO_LIMIT, None]
    assert limits_of(short.select("id", "other"), rows_before=10_000) == [NO_LIMIT, None]
    df = spark.range(1000).selectExpr("id", "id AS other", "repeat('x', 61440) AS s")
    found = batches_of(df, rows_before=10)
    assert sum(rows for rows, _, _ in found) == 1000
    assert max(size for _, size, _ in found) <= MOST + 2 * 61440


def test_many_columns_cross_in_fewer_rows(spark: SparkSession) -> None:
    """Thousands of numbers a row are long, too."""
    df = spark.range(1).selectExpr(*(f"id AS c{place}" for place in range(2000)))
    assert limits_of(df) == [NO_LIMIT, str(MOST // (16 * 2000))]


@pytest.mark.parametrize(
    "column",
    ["'x' AS a", "X'00' AS a", "array(1) AS a", "map(1, 2) AS a", "named_struct('b', array('x')) AS a"],
)
def test_what_is_inside_of_values_is_added_up(spark: SparkSession, column: str) -> None:
    """Where a length is not known at once, or a row has but one text, Spark looks at the buffers."""
    assert limits_of(spark.sql(f"SELECT {column}")) == [str(MOST), None]


@pytest.mark.parametrize("rows", ["0", "1000000"])
def test_a_session_that_has_more_rows_has_them_added_up(spark: SparkSession, rows: str) -> None:
    """So 16 MiB bound a batch there, too."""
    spark.conf.set(ROWS, rows)
    try:
        found = batches_of(spark.range(20_000).selectExpr("repeat('x', 2000) AS s"))
    finally:
        spark.conf.unset(ROWS)
    assert sum(count for count, _, _ in found) == 20_000
    assert max(size for _, size, _ in found) <= MOST + 4000
    assert len(found) < 8


def test_limits_of_the_session_count(spark: SparkSession) -> None:
    """Who sets a limit gets it."""
    spark.conf.set(BYTES, "1000000")
    spark.conf.set(ROWS, "100")
    try:
        assert limits_of(spark.range(1).toDF("a")) == ["1000000", "100"]
        assert {rows for rows, _, _ in batches_of(spark.range(1000).selectExpr("id", "'x' AS s"))} == {100}
    finally:
        spark.conf.unset(BYTES)
        spark.conf.unset(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows", "size"),
    [
        ("parquet", 10_000, 60 << 10),
        pytest.param("json", 600, 1 << 20, marks=pytest.mark.nightly),
        pytest.param("parquet", 600, 1 << 20, marks=pytest.mark.nightly),
        pytest.param("json", 10_000, 60 << 10, marks=pytest.mark.nightly),
    ],
)
def test_long_strings_fit_into_a_driver_of_the_default_size(
    tmp_path: Path, kind: str, rows: int, size: int
) -> None:
    """As they do with ``df.write.parquet``: a local JVM has 1 GiB of heap unless it is told."""
    with Driver("long_strings", tmp_path / "out", kind, rows, size, log=tmp_path / "log") as program:
        program.wait_for("done")
    if kind == "parquet":
        assert outside.parquet_ids(tmp_path / "out") == list(range(rows))
