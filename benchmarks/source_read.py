"""A sink's directory as a batch: ``FileSource.read`` beside ``spark.read.parquet`` of the same path.

    python benchmarks/source_read.py [--rounds 7]

Two directories: many small files, which planning is about, and few large ones, which reading is about. From
the call to the answer of one aggregate. Parquet goes to Spark's own reader; a column that it does not know,
``_version``, has the same files read in Python, as all formats but Parquet and ORC are.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filesink import BucketAssigner, FileSink, FileSource, ParquetWriterFactory
from paired import Contender, compare
from sessions import start_spark

_GOAL = 1.05
_SHAPES = {"2,000 small files": (1_000, 2_000_000), "20 large files": (10, 5_000_000)}


def main() -> int:
    """The exit status is 0 if Spark's own reader takes no more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    spark = start_spark()
    within = [measure(spark, shape, rounds) for shape in _SHAPES]
    spark.stop()
    return 0 if all(within) else 1


def measure(spark: Any, shape: str, rounds: int) -> bool:
    """Both ways of ``FileSource`` beside Spark's, over one directory."""
    directory = Path(tempfile.mkdtemp())
    try:
        base = directory / "sink"
        write(spark, base, *_SHAPES[shape])
        source = FileSource.for_bulk_file_format(ParquetWriterFactory(), base)
        baseline = Contender(name="spark.read", measure=timed(lambda: spark.read.parquet(str(base))))
        ways = {
            "FileSource.read": source.build(),
            "FileSource.read in Python": source.with_metadata_columns("_version").build(),
        }
        found = {}
        for name, built in ways.items():
            ours = Contender(name=name, measure=timed(lambda built=built: built.read(spark)))
            title = f"{name} of {shape}"
            found[name] = compare(title, baseline=baseline, ours=ours, unit="s", rounds=rounds)
        ratios = sorted(found["FileSource.read"].ratios)
        return ratios[len(ratios) // 2] <= _GOAL
    finally:
        shutil.rmtree(directory)


def write(spark: Any, base: Path, buckets: int, rows: int) -> None:
    """By a sink, in one epoch: two files for each of ``buckets``."""
    df = spark.range(0, rows, numPartitions=2)
    df = df.selectExpr("id", "concat('name ', id % 1000) AS name", f"cast(id % {buckets} AS int) AS bucket")
    builder = FileSink.for_bulk_format(base, ParquetWriterFactory())
    builder.with_bucket_assigner(BucketAssigner.partition_bucket_assigner("bucket")).build().write(df)


def timed(read: Callable[[], Any]) -> Callable[[], float]:
    """Seconds from the call to the answer of a query."""

    def run() -> float:
        begun = time.perf_counter()
        read().selectExpr("sum(id)", "max(name)", "sum(bucket)").collect()
        return time.perf_counter() - begun

    return run


if __name__ == "__main__":
    sys.exit(main())
