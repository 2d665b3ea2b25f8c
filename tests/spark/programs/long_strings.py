"""Writes rows with a long string each, in a session of Spark's default size.

    python -m tests.spark.programs.long_strings <base path> <parquet|json> <rows> <bytes of a string>

Says ``done`` when all is visible; and before it, on standard error, the most memory that JVM and worker had.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from filesink import BucketAssigner, FileSink
from formats import Encoder, ParquetWriterFactory
from tests.spark.programs import sessions


def main(base: Path, kind: str, rows: int, size: int) -> None:
    """Write them with two tasks at a time."""
    spark = sessions.start("local[2]")
    df = spark.range(rows).selectExpr("id", f"rpad(string(id), {size}, sha2(string(id), 512)) AS text")
    row = FileSink.for_row_format(base, Encoder.json_lines())
    builder = row if kind == "json" else FileSink.for_bulk_format(base, ParquetWriterFactory())
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    assert sink.write(df).rows == rows
    sys.stderr.write(f"JVM {jvm_mib()} MiB, worker {max(worker_mib(spark))} MiB\n")
    sessions.say("done")
    spark.stop()


def jvm_mib() -> int:
    """The most memory that the JVM has had at a time."""
    jvm = next(child for child in psutil.Process().children() if child.name() == "java")
    status = Path(f"/proc/{jvm.pid}/status")
    if not status.exists():  # not on Linux
        return jvm.memory_info().rss >> 20
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


def worker_mib(spark: SparkSession) -> list[int]:
    """The most memory that the Python workers have had, which Spark uses again."""

    def peak(_: Iterator[int]) -> Iterator[int]:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        yield most >> (20 if sys.platform == "darwin" else 10)

    return spark.sparkContext.parallelize([0, 1], 2).mapPartitions(peak).collect()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
