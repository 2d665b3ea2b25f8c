"""Avro parts that go on over micro-batches and restarts, and what a schema that grows does to parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions

import filesink
from filesink import BucketAssigner, FileSink, RollingPolicy
from formats import Encoder, ParquetWriterFactory
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 50


def avro_run(df: DataFrame, work: Path, **trigger: object) -> None:
    """One run of a query whose parts stay open."""
    sink = (
        FileSink.for_row_format(work / "out", Encoder.avro("deflate"))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(
            RollingPolicy.default_rolling_policy(rollover_interval="1 h", inactivity_interval="1 h")
        )
        .build()
    )
    query = sink.start(df, checkpoint_location=str(work / "checkpoint"), **trigger)
    query.awaitTermination()


def records(path: Path) -> list[dict[str, object]]:
    """What fastavro finds in a file."""
    with path.open("rb") as file:
        return list(fastavro.reader(file))


def parts(work: Path) -> list[Path]:
    """The visible files."""
    return sorted(path for path in outside.files(work / "out") if path.name.startswith("part-"))


def test_avro_parts_go_on_over_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Three micro-batches, written by three processes, end as one file that fastavro reads."""
    for number in range(3):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    df = inputs.flights(spark, tmp_path / "source").coalesce(1)
    avro_run(df, tmp_path, available_now=True)
    (part,) = parts(tmp_path)
    assert [record["id"] for record in records(part)] == list(range(3 * ROWS))


def test_columns_are_compared_along_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """What is added goes on, what is lost is named; batch appends beside it have columns of their own."""
    filesink.register(spark)
    base = tmp_path / "out"
    flat = BucketAssigner.base_path_bucket_assigner()
    builder = FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(flat)
    sink = builder.with_uid("u").build()
    one = spark.range(1).select("id")
    two = spark.range(1, 2).selectExpr("id", "CAST(id AS STRING) AS name")
    sink.write(one)
    sink.write(two)

    def widen(df: DataFrame, batch_id: int) -> None:
        """The first batch is what the table is, the second has lost a column."""
        sink.foreach_batch(df.withColumn("name", functions.lit("x")) if batch_id == 0 else df, batch_id)

    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=1)
    stream = inputs.flights(spark, tmp_path / "source").select("id")
    writer = stream.writeStream.foreachBatch(widen).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "other")).start()
    with pytest.raises(StreamingQueryException, match=r"SCHEMA_CHANGE\] column 'name' is gone"):
        query.awaitTermination()

    one.write.format("filesink").option("path", str(base)).option("uid", "u").mode("append").save()
    other = spark.range(1).selectExpr("id", "CAST(id AS DOUBLE) AS name")
    with pytest.raises(PySparkException, match=r"OTHER_LAYOUT\] column 'name'"):
        other.write.format("filesink").option("path", str(base)).option("uid", "u").mode("append").save()
    names = spark.read.schema(two.schema).parquet(*map(str, parts(tmp_path))).select("name").collect()
    assert sorted(str(row["name"]) for row in names) == ["1", "None", "None", "x"]
    assert not [path for path in outside.files(base) if path.name.startswith(".part-")]


def test_a_schema_that_grows_begins_new_files(spark: SparkSession, tmp_path: Path) -> None:
    """Each file has the schema of its epoch; read as the newest, none of the rows is lost."""
    flat = BucketAssigner.base_path_bucket_assigner()
    sink = (
        FileSink.for_bulk_format(tmp_path / "out", ParquetWriterFactory()).with_bucket_assigner(flat).build()
    )
    sink.write(spark.range(3).selectExpr("CAST(id AS INT) AS id").coalesce(1))
    newest = spark.range(3, 6).selectExpr("id", "CAST(id AS STRING) AS name").coalesce(1)
    sink.write(newest)
    schema = max((pq.read_schema(path) for path in parts(tmp_path)), key=len)
    found = []
    for path in parts(tmp_path):
        with path.open("rb") as file:
            found += ParquetWriterFactory().open_reader(file, schema=schema).read_all().to_pylist()
    assert {row["id"]: row["name"] for row in found} == {0: None, 1: None, 2: None, 3: "3", 4: "4", 5: "5"}
