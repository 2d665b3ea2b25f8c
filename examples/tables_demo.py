"""Stream a year of flights into one directory, then ask five engines the same of it.

    python examples/tables_demo.py [--output demo-output]

DuckDB and Polars list the directory, delta-rs reads its log of Delta, pyiceberg its table of Iceberg, and
Spark its own log. The Parquet files are there once; each engine must find every flight in them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import flights
from filesink import (
    BucketAssigner,
    DeltaExport,
    FileSink,
    IcebergExport,
    ParquetWriterFactory,
    SparkMetadataExport,
)
from flights_demo import follow, start_spark

QUERY = (
    "SELECT origin, count(*) AS flights, sum(distance) AS miles FROM flights GROUP BY origin ORDER BY origin"
)
TABLE = "demo.flights"
Answer = list[tuple[Any, ...]]


def main() -> int:
    """Run the demo; the exit status is 0 if all engines find what the source has."""
    parser = argparse.ArgumentParser(description="flights for five engines")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="where to put everything")
    output = parser.parse_args().output.resolve() / "tables"
    flights.prepare(output / "source")
    expected = _in_arrow(flights.load())
    spark = start_spark()
    try:
        stream(spark, output)
        answers = {name: ask() for name, ask in engines(spark, output).items()}
    finally:
        spark.stop()
    show(answers)
    return 0 if all(answer == expected for answer in answers.values()) else 1


def stream(spark: SparkSession, output: Path) -> None:
    """Write whatever the source has that the sink has not; each epoch is told to three kinds of tables."""
    months = spark.readStream.schema(flights.SPARK_SCHEMA).option("maxFilesPerTrigger", 2)
    sink = (
        FileSink.for_bulk_format(output / "flights", ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("origin"))
        .with_uid("flights")
        .with_export(DeltaExport())
        .with_export(IcebergExport(catalog(output), TABLE))
        .with_export(SparkMetadataExport())
        .build()
    )
    query = sink.start(
        months.parquet(str(output / "source")),
        checkpoint_location=str(output / "checkpoint"),
        available_now=True,
    )
    print(f"{follow(query):,} rows added to {output / 'flights'}")


def catalog(output: Path) -> dict[str, str]:
    """A catalog of Iceberg in one file."""
    place = f"sqlite:///{output / 'catalog.db'}"
    return {"name": "demo", "type": "sql", "uri": place, "warehouse": str(output)}


def engines(spark: SparkSession, output: Path) -> dict[str, Callable[[], Answer]]:
    """What each one answers, by its name and by what it reads."""
    base = str(output / "flights")
    files = f"{base}/origin=*/part-*.parquet"
    listed = f"SELECT * FROM read_parquet('{files}', hive_partitioning = true)"  # noqa: S608 - our own path

    def of_duckdb() -> Answer:
        return duckdb.sql(f"WITH flights AS ({listed}) {QUERY}").fetchall()

    def of_polars() -> Answer:
        frame = pl.scan_parquet(files, hive_partitioning=True)
        return pl.SQLContext(flights=frame).execute(QUERY, eager=True).rows()

    def of_delta_rs() -> Answer:
        table = QueryBuilder().register("flights", DeltaTable(base)).execute(QUERY).read_all()
        return _rows(pa.table(table).to_pylist())

    def of_pyiceberg() -> Answer:
        columns = ("origin", "distance")
        return _in_arrow(
            load_catalog(**catalog(output)).load_table(TABLE).scan(selected_fields=columns).to_arrow()
        )

    def of_spark() -> Answer:
        spark.read.parquet(base).createOrReplaceTempView("flights")
        return [tuple(row) for row in spark.sql(QUERY).collect()]

    return {
        "DuckDB, by listing": of_duckdb,
        "Polars, by listing": of_polars,
        "delta-rs, by the log of Delta": of_delta_rs,
        "pyiceberg, by the table of Iceberg": of_pyiceberg,
        "Spark, by its own log": of_spark,
    }


def show(answers: dict[str, Answer]) -> None:
    """One line for each engine."""
    print(f"\n{QUERY}\n")
    for name, answer in answers.items():
        print(f"  {name + ':':<36}" + "  ".join(f"{origin} {n:,} {miles:,}" for origin, n, miles in answer))


def _in_arrow(table: pa.Table) -> Answer:
    """The query, for who has no SQL."""
    found = table.group_by("origin").aggregate([([], "count_all"), ("distance", "sum")])
    return _rows(found.select(["origin", "count_all", "distance_sum"]).sort_by("origin").to_pylist())


def _rows(found: Iterable[dict[str, Any]]) -> Answer:
    return [tuple(row.values()) for row in found]


if __name__ == "__main__":
    sys.exit(main())
