"""How do I rerun a day of a nightly job without rows twice?

    python examples/daily_job.py --day 2026-01-31 [--run 1] [--output demo-output/daily]

Written as a task of Airflow would be: `run_day(day, run)` takes the logical date and an id of the run
(`{{ ds }}` and `{{ run_id }}`), may be killed at any moment, and may be called again. A repetition of the
same run writes nothing. A new run of the same day replaces that day, and no other.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from filesink import BucketAssigner, FileSink, ParquetWriterFactory
from flights_demo import start_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from filesink import EpochReport


def run_day(spark: SparkSession, base: str, *, day: dt.date, run: str) -> EpochReport:
    """Write the orders of ``day`` as ``run`` found them; the day is replaced as a whole."""
    sink = (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .with_uid("orders")
        .build()
    )
    return sink.write(
        orders_of(spark, day),
        mode="overwrite_partitions",
        partitions=[{"day": day}],  # this one, even if it has no orders any more, and no other
        txn_id=f"{day} {run}",  # the same run again: nothing is written
    )


def orders_of(spark: SparkSession, day: dt.date) -> DataFrame:
    """The source; put your query here. It has to give the same rows when a run is repeated."""
    return spark.range(1000).selectExpr(
        "id", f"date'{day}' AS day", "concat('customer-', id % 50) AS customer", "id * 0.25 AS amount"
    )


def main() -> int:
    """Run one day and print what became visible."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--day", type=dt.date.fromisoformat, required=True, help="which, as 2026-01-31")
    parser.add_argument("--run", default="1", help="the id of the run; a repetition has the same")
    parser.add_argument("--output", type=Path, default=Path("demo-output/daily"), help="where the orders go")
    arguments = parser.parse_args()
    spark = start_spark()
    try:
        report = run_day(spark, str(arguments.output.resolve()), day=arguments.day, run=arguments.run)
    finally:
        spark.stop()
    print("Nothing to do: this run is in." if report.already_committed else report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
