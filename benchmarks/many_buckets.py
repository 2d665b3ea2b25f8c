"""2,000 buckets in one task: how much slower than 10, than Spark, and how much memory does it take?

One partition of 1,500,000 rows of lineitem, whose rows go to the buckets in no order. The memory is the
peak of the resident set of the Python worker, VmHWM of Linux, over all of the runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink import BucketAssigner, FileSink
from formats import ParquetWriterFactory
from lineitem import generate, seconds_to_write
from paired import Contender, compare, keep, options
from sessions import start_spark

FEW, MANY = 10, 2_000
PARTS = 2  # of the eight files of lineitem


def main() -> None:
    """Measure both in pairs, then ask the worker for its peak."""
    arguments = options("Time and memory of many buckets in one task", rounds=3).parse_args()
    sources = sorted(generate(arguments.cache, 1).glob("*.parquet"))[:PARTS]
    spark = start_spark()
    rows = spark.read.parquet(*map(str, sources)).coalesce(1)
    out = arguments.cache / "buckets-out"
    run = partial(seconds_to_write, out=out, rows=rows.count())
    few, many = (
        Contender(name=f"{count:,} buckets", measure=partial(run, partial(write, rows, count, out)))
        for count in (FEW, MANY)
    )
    spark_many = Contender(name="partitionBy", measure=partial(run, lambda: write_by_spark(rows, MANY, out)))
    for title, baseline in {
        f"one task, {MANY:,} buckets in place of {FEW}": few,
        f"one task, {MANY:,} buckets": spark_many,
    }.items():
        compare(title, baseline=baseline, ours=many, unit="seconds", rounds=arguments.rounds)
    peak = max(peak_of_workers(rows))
    print(f"\nlargest Python worker: {peak / 1e6:.0f} MB")
    keep(
        f"one task, {MANY:,} buckets, memory",
        {"facts": {"peak of the Python worker": f"{peak / 1e6:.0f} MB"}},
    )
    spark.stop()


def write(rows: DataFrame, buckets: int, out: Path) -> None:
    """By ours."""
    builder = FileSink.for_bulk_format(str(out), ParquetWriterFactory(compression="snappy"))
    builder.with_bucket_assigner(BucketAssigner.partition_bucket_assigner("bucket")).build().write(
        numbered(rows, buckets)
    )


def write_by_spark(rows: DataFrame, buckets: int, out: Path) -> None:
    """By Spark's writer, which sorts the rows of a task by bucket first."""
    numbered(rows, buckets).write.partitionBy("bucket").parquet(str(out), compression="snappy")


def numbered(rows: DataFrame, buckets: int) -> DataFrame:
    """The rows with a bucket number that their order says nothing about."""
    return rows.withColumn("bucket", F.pmod(F.xxhash64("l_orderkey", "l_linenumber"), F.lit(buckets)))


def peak_of_workers(rows: DataFrame) -> Iterator[int]:
    """Peak bytes of the worker that Spark keeps for the next task; it was the only one."""

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        lines = Path("/proc/self/status").read_text().splitlines()
        (peak,) = (int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
        yield pa.RecordBatch.from_pydict({"peak": pa.array([peak], pa.int64())})

    for row in rows.limit(1).mapInArrow(ask, "peak bigint").collect():
        yield row[0]


if __name__ == "__main__":
    main()
