"""Publish a year of flights as a partitioned Hive table, then query it in SQL.

    python examples/hive_demo.py [--output demo-output]

The metastore is a real one: the server that comes with PySpark's own jars, started for the demo and
stopped at its end. The sink speaks to it in Thrift; Spark SQL reads the table through it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import flights
from filesink import (
    BucketAssigner,
    FileSink,
    HiveMetastore,
    ListenerPolicy,
    MetastorePolicy,
    ParquetWriterFactory,
    PartitionCommit,
    SuccessFilePolicy,
    TableKind,
)
from hive_server import hive_server

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run the demo; the exit status is 0 if SQL finds every flight in its day."""
    parser = argparse.ArgumentParser(description="flights as a Hive table")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="where to put everything")
    output = parser.parse_args().output.resolve()
    flights.prepare(output / "source")
    server_files = output / "metastore"
    shutil.rmtree(server_files, ignore_errors=True)
    server_files.mkdir(parents=True)
    print("Starting a Hive metastore …")
    with hive_server(server_files) as server:
        spark = start_spark(server.uri)
        try:
            publish(spark, HiveMetastore(server.uri), source=output / "source", base=output / "table")
            return query(spark)
        finally:
            spark.stop()


def publish(spark: SparkSession, metastore: HiveMetastore, *, source: Path, base: Path) -> None:
    """Write the flights by day, and announce each day when its files are visible."""
    shutil.rmtree(base, ignore_errors=True)
    days: list[str | None] = []
    policies = [
        MetastorePolicy("default.flights", metastore, create=TableKind.EXTERNAL),
        SuccessFilePolicy(),
        ListenerPolicy(lambda event: days.append(event.values["date"])),
    ]
    sink = (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("date"))
        .with_partition_commit(PartitionCommit(policies=policies))
        .with_uid("flights")
        .build()
    )
    frame = spark.read.schema(flights.SPARK_SCHEMA).parquet(str(source))
    report = sink.write(frame.selectExpr("*", "cast(time_hour as date) as date"))
    print(f"{report.rows:,} rows in {len(report.files)} files; {len(days)} days announced")


def query(spark: SparkSession) -> int:
    """What Spark SQL finds through the metastore."""
    partitions = spark.sql("SHOW PARTITIONS default.flights").count()
    spark.sql(
        "SELECT date, count(*) AS flights, round(avg(dep_delay), 1) AS delay FROM default.flights "
        "GROUP BY date ORDER BY flights DESC LIMIT 5"
    ).show()
    rows = spark.sql("SELECT count(*) FROM default.flights").first()
    found = rows[0] if rows is not None else 0
    wrong = spark.sql("SELECT * FROM default.flights WHERE date <> cast(time_hour AS date)").count()
    print(f"Spark SQL finds {found:,} of {flights.ROWS:,} flights in {partitions} partitions")
    return 0 if (found, wrong) == (flights.ROWS, 0) else 1


def start_spark(metastore_uri: str) -> SparkSession:
    """A local Spark whose catalog is the metastore."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .appName("flights-hive")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{HERE / 'log4j2.properties'}"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.hadoop.hive.metastore.uris", metastore_uri)
        .enableHiveSupport()
        .getOrCreate()
    )


if __name__ == "__main__":
    sys.exit(main())
