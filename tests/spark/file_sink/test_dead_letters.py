"""Records that cannot be written, through Spark: each is put aside once, in batches and over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from filesink import BucketAssigner, DeadLetters, FileSink
from formats import Encoder
from tests.spark import checkpoints, inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 30


def sink(base: Path) -> FileSink:
    """Latin letters, in parts that stay open; what is not Latin is put aside."""
    return (
        FileSink.for_row_format(base, Encoder.csv(charset="ISO-8859-1"))
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .on_bad_record(DeadLetters())
        .build()
    )


def some_bad(df: DataFrame) -> DataFrame:
    """Every seventh record has a name that no Latin file can hold."""
    return df.selectExpr("id", "IF(id % 7 = 0, '漢', carrier) AS name", "day")


def check(base: Path, rows: int) -> None:
    """Both sides by DuckDB: each id on one of them, once."""
    read = duckdb.connect()
    csv = read.read_csv(f"{base}/day=*/*.csv", header=False, names=["id", "name"])
    good = [row[0] for row in csv.fetchall()]
    letters = read.read_parquet(f"{base}/_dead_letters/day=*/*.parquet")
    bad = letters.project("id, name, _error").order("id").fetchall()
    assert sorted(good) == [number for number in range(rows) if number % 7]
    assert [row[:2] for row in bad] == [(number, "漢") for number in range(0, rows, 7)]
    assert all("iso8859-1" in row[2] and "漢" not in row[2] for row in bad)


def test_a_batch_puts_bad_records_aside(spark: SparkSession, tmp_path: Path) -> None:
    """The rest is written, the report counts them, and a second call with the txn_id adds none."""
    inputs.add_file(tmp_path / "source", 0, rows=ROWS)
    df = some_bad(spark.read.schema(inputs.SCHEMA).parquet(str(tmp_path / "source")))
    assert sink(tmp_path / "out").write(df, txn_id="t").metrics["dead_letters"] == 5
    assert sink(tmp_path / "out").write(df, txn_id="t").already_committed
    check(tmp_path / "out", ROWS)


def test_a_stream_puts_each_bad_record_aside_once(spark: SparkSession, tmp_path: Path) -> None:
    """A restart goes on, and the replay of a batch that Spark has not noted as done writes none again."""
    source, base, checkpoint = (tmp_path / name for name in ("source", "out", "checkpoint"))
    for number in range(2):
        inputs.add_file(source, number, rows=ROWS)

    def run() -> None:
        df = some_bad(inputs.flights(spark, source))
        query = sink(base).start(df, checkpoint_location=str(checkpoint), available_now=True)
        query.awaitTermination()

    run()
    check(base, 2 * ROWS)
    checkpoints.forget(checkpoint, "commits", 1)
    inputs.add_file(source, 2, rows=ROWS)
    run()
    check(base, 3 * ROWS)
