"""Many tables in one pass of Spark: batches, streams, and DataFrames of their own columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink import (
    BucketAssigner,
    ConfigError,
    Encoder,
    FileSink,
    FileSource,
    ParquetWriterFactory,
    SchemaError,
    TableReport,
    Tables,
)
from tests.spark import inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATH = "${schema_name}/${table_name}"


def test_a_mapping_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Each table has its own columns and partitions, for Spark and for our own source."""
    tables = Tables(
        {
            "shop.orders": spark.range(10).selectExpr("id", "date'2026-01-01' AS day", "id * 2 AS price"),
            "shop.items": spark.range(5).selectExpr("date'2026-01-02' AS day", "'x' AS name", "ID"),
        }
    )
    assigner = BucketAssigner.table_bucket_assigner(
        tables.column,
        path=PATH,
        within=BucketAssigner.partition_bucket_assigner("day"),
        columns=tables.columns,
    )
    sink = FileSink.for_bulk_format(tmp_path / "out", ParquetWriterFactory()).with_bucket_assigner(assigner)
    report = sink.build().write(tables.df)
    assert {name: (one.files > 0, one.rows) for name, one in report.tables.items()} == {
        "shop.items": (True, 5),
        "shop.orders": (True, 10),
    }
    assert isinstance(report.tables["shop.items"], TableReport)
    orders = spark.read.parquet(str(tmp_path / "out" / "shop" / "orders"))
    assert sorted(orders.columns) == ["day", "id", "price"]
    assert sorted(row["price"] for row in orders.collect()) == list(range(0, 20, 2))
    source = FileSource.for_bulk_file_format(ParquetWriterFactory(), tmp_path / "out" / "shop" / "items")
    items = source.build().read(spark)
    assert sorted(name.lower() for name in items.columns) == ["day", "id", "name"]
    assert items.count() == 5


def test_a_stream_whose_records_name_their_tables(spark: SparkSession, tmp_path: Path) -> None:
    """One that comes later is there with its epoch; a format whose records Spark renders has no other way."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=30)
    df = inputs.flights(spark, tmp_path / "source").selectExpr(
        "*", "if(id < 45, carrier, concat('late ', carrier)) AS table"
    )
    assigner = BucketAssigner.table_bucket_assigner("table")
    sink = (
        FileSink.for_row_format(tmp_path / "out", Encoder.json_lines()).with_bucket_assigner(assigner).build()
    )
    query = sink.start(df, checkpoint_location=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    assert sum(one.rows for report in query.reports for one in report.tables.values()) == 60
    late = spark.read.json(str(tmp_path / "out" / "late UA"))
    assert sorted(row["id"] for row in late.collect()) == [48, 54]
    assert "table" not in late.columns
    assert spark.read.json(str(tmp_path / "out" / "UA")).count() == 8


def test_tables_that_do_not_go_together(spark: SparkSession) -> None:
    """Are told when they are put together, and not by a query that has begun."""
    with pytest.raises(SchemaError, match="'a' and int in 'b'") as raised:
        Tables({"a": spark.range(1), "b": spark.range(1).selectExpr("cast(id AS int) AS Id")})
    assert raised.value.code == "TABLE_COLUMNS"
    with pytest.raises(ConfigError, match="has a column 'id'"):
        Tables({"a": spark.range(1)}, column="id")
    for wrong in ({}, {"a": 1}, [spark.range(1)], {1: spark.range(1)}):
        with pytest.raises(ConfigError):
            Tables(wrong)  # type: ignore[arg-type]
