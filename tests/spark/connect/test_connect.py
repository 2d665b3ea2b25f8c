"""The doors of filesink from a client of Spark Connect; test_data_source.py tries all claims, at night."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.errors.exceptions.connect import SparkException

from filesink import ConfigError, FileSink
from formats import ParquetWriterFactory
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROWS = 10


def flights(spark: SparkSession, directory: Path) -> DataFrame:
    """A stream of two batches."""
    for number in range(2):
        inputs.add_file(directory / "source", number, rows=ROWS)
    return inputs.flights(spark, directory / "source")


def run(df: DataFrame, directory: Path) -> None:
    """Write a stream to its end."""
    stream = df.writeStream.format("filesink").option("checkpointLocation", str(directory / "checkpoint"))
    query: StreamingQuery = stream.trigger(availableNow=True).start(str(directory / "out"))
    query.awaitTermination()


def for_each_batch(
    df: DataFrame, function: Callable[[DataFrame, int], None], checkpoint: Path
) -> StreamingQuery:
    """Start a query to its end. Spark gives its worker ten seconds, which a busy machine may not have."""
    stream = df.writeStream.foreachBatch(function).option("checkpointLocation", str(checkpoint))
    for _ in range(5):
        try:
            return stream.trigger(availableNow=True).start()
        except SparkException as error:
            if "failed to connect back" not in str(error):
                raise
    return pytest.skip("Spark could not start a Python worker within ten seconds, five times")


def test_batches_and_sql_without_register(spark: SparkSession, tmp_path: Path) -> None:
    """Spark finds the source on its server; a view takes INSERT, and a catalog's table is refused."""
    out = str(tmp_path / "out")
    spark.range(0, 5, numPartitions=1).write.format("filesink").mode("append").save(out)
    spark.sql(f"CREATE TEMPORARY VIEW numbers USING filesink OPTIONS (path '{out}')")
    spark.sql("INSERT INTO numbers SELECT id + 5 FROM range(5)").collect()
    assert spark.sql("SELECT sum(id) FROM numbers").first()[0] == sum(range(10))
    with pytest.raises(AnalysisException, match="CATALOG_TABLE"):
        spark.sql(f"CREATE TABLE numbers_too USING filesink OPTIONS (path '{out}')").collect()
    assert outside.parquet_ids(tmp_path / "out") == list(range(10))


def test_a_stream_and_a_batch_that_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    """After a crash between the sink's commit and Spark's note of it not a byte changes."""
    run(flights(spark, tmp_path), tmp_path)
    before = outside.everything(tmp_path / "out")
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    run(flights(spark, tmp_path), tmp_path)
    assert outside.everything(tmp_path / "out") == before
    assert outside.parquet_ids(tmp_path / "out") == list(range(2 * ROWS))


def test_a_file_sink_names_the_door_to_use(spark: SparkSession, tmp_path: Path) -> None:
    """Its client has no driver, nor has its server; before anything is written."""
    sink = FileSink.for_bulk_format(tmp_path / "out", ParquetWriterFactory()).build()
    stream = flights(spark, tmp_path)
    checkpoint = tmp_path / "checkpoint"
    for door in (
        lambda: sink.write(spark.range(1)),
        lambda: sink.start(stream, checkpoint_location=checkpoint),
    ):
        with pytest.raises(ConfigError, match=r"df\.write\.format\('filesink'\)") as refused:
            door()
        assert refused.value.code == "SPARK_CONNECT"
    query = for_each_batch(stream, sink.foreach_batch, checkpoint)
    with pytest.raises(StreamingQueryException, match=r"\[SPARK_CONNECT\].*df\.write\.format\('filesink'\)"):
        query.awaitTermination()
    assert not (tmp_path / "out").exists()


def test_a_batch_write_in_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    """The data source is the door inside of it: the batch's number as its name makes it exactly once."""
    out, checkpoint = str(tmp_path / "out"), tmp_path / "checkpoint"

    def write(df: DataFrame, batch_id: int) -> None:
        df.write.format("filesink").mode("append").option("txnId", f"flights-{batch_id}").save(out)

    for _ in range(2):
        for_each_batch(flights(spark, tmp_path), write, checkpoint).awaitTermination()
        for name in ("1", ".1.crc"):
            (checkpoint / "commits" / name).unlink(missing_ok=True)
    assert outside.parquet_ids(tmp_path / "out") == list(range(2 * ROWS))
