"""Cost of a micro-batch of so many rows, into one bucket as Parquet, against Spark's own file sink.

Each measurement is one query over the same files, one file per micro-batch; its value is the
median of durationMs.addBatch over its micro-batches but the first ten, which warm up.

10,000 rows are what a stream gets that is looked at every second; ten show what an epoch costs by
itself, a million what its rows cost.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from filesink import BucketAssigner, FileSink
from formats import ParquetWriterFactory
from paired import Contender, compare
from sessions import start_spark

WARM_UP = 10
SCHEMA = "id bigint, user int, amount double, category string, note string, time timestamp"


def main() -> None:
    """Make the input, then measure both sinks."""
    arguments = _arguments()
    work = Path(tempfile.mkdtemp(prefix="filesink-micro-batch-"))
    make_source(work / "source", batches=arguments.batches + WARM_UP, rows=arguments.rows)
    spark = start_spark()
    try:
        run = partial(milliseconds_of_a_batch, spark=spark, work=work)
        compare(
            f"micro-batch of {arguments.rows:,} rows",
            baseline=Contender(name="Spark's parquet sink", measure=partial(run, start=start_spark_sink)),
            ours=Contender(name="filesink", measure=partial(run, start=start_ours)),
            unit="ms per addBatch",
            rounds=arguments.rounds,
        )
    finally:
        spark.stop()
        shutil.rmtree(work)


def start_spark_sink(stream: DataFrame, work: Path) -> StreamingQuery:
    """Spark's own streaming file sink."""
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(work / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(work / "out"))


def start_ours(stream: DataFrame, work: Path) -> StreamingQuery:
    """The same by ours."""
    sink = (
        FileSink.for_bulk_format(str(work / "out"), ParquetWriterFactory(compression="snappy"))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    return sink.start(stream, checkpoint_location=str(work / "checkpoint"), available_now=True)


def make_source(directory: Path, *, batches: int, rows: int) -> None:
    """``batches`` files of ``rows`` rows."""
    directory.mkdir()
    random = np.random.default_rng(7)
    for number in range(batches):
        pq.write_table(_rows(random, first=number * rows, rows=rows), directory / f"{number:06}.parquet")


def _rows(random: np.random.Generator, *, first: int, rows: int) -> pa.Table:
    ids = np.arange(first, first + rows)
    words = np.array([f"category-{number}" for number in range(50)])
    return pa.table(
        {
            "id": ids,
            "user": random.integers(0, 100_000, rows, dtype=np.int32),
            "amount": random.random(rows),
            "category": random.choice(words, rows),
            "note": random.integers(0, 1 << 62, rows).astype(str),
            "time": pa.array(1_357_000_000_000_000 + ids * 1000, pa.timestamp("us", tz="UTC")),
        }
    )


def milliseconds_of_a_batch(
    *, spark: SparkSession, work: Path, start: Callable[[DataFrame, Path], StreamingQuery]
) -> float:
    """The median ``addBatch`` of one query over the files of ``work / "source"``, and its traces removed."""
    for leftover in ("out", "checkpoint"):
        shutil.rmtree(work / leftover, ignore_errors=True)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(work / "source"))
    query = start(stream, work)
    query.awaitTermination()
    taken = [
        progress["durationMs"]["addBatch"] for progress in query.recentProgress if progress["numInputRows"]
    ]
    return statistics.median(taken[WARM_UP:])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Cost of a micro-batch")
    parser.add_argument("--rows", type=int, default=10_000, help="of a micro-batch")
    parser.add_argument(
        "--batches", type=int, default=40, help="measured micro-batches of each query, at most 90"
    )
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
