"""Cost of a micro-batch: 10,000 rows into one bucket as Parquet, against Spark's own file sink.

Each measurement is one query over the same files, one file per micro-batch; its value is the
median of durationMs.addBatch over its micro-batches but the first ten, which warm up.
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

ROWS = 10_000
WARM_UP = 10
SCHEMA = "id bigint, user int, amount double, category string, note string, time timestamp"


def main() -> None:
    """Make the input, then measure both sinks."""
    arguments = _arguments()
    work = Path(tempfile.mkdtemp(prefix="filesink-micro-batch-"))
    make_source(work / "source", batches=arguments.batches + WARM_UP)
    spark = start_spark()
    try:
        run = partial(_measure, spark=spark, work=work)
        compare(
            "micro-batch of 10,000 rows",
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


def make_source(directory: Path, *, batches: int) -> None:
    """``batches`` files of ROWS rows."""
    directory.mkdir()
    random = np.random.default_rng(7)
    for number in range(batches):
        pq.write_table(_rows(random, first=number * ROWS), directory / f"{number:06}.parquet")


def _rows(random: np.random.Generator, *, first: int) -> pa.Table:
    ids = np.arange(first, first + ROWS)
    words = np.array([f"category-{number}" for number in range(50)])
    return pa.table(
        {
            "id": ids,
            "user": random.integers(0, 100_000, ROWS, dtype=np.int32),
            "amount": random.random(ROWS),
            "category": random.choice(words, ROWS),
            "note": random.integers(0, 1 << 62, ROWS).astype(str),
            "time": pa.array(1_357_000_000_000_000 + ids * 1000, pa.timestamp("us", tz="UTC")),
        }
    )


def _measure(*, spark: SparkSession, work: Path, start: Callable[[DataFrame, Path], StreamingQuery]) -> float:
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
    parser = argparse.ArgumentParser(description="Cost of a micro-batch of 10,000 rows")
    parser.add_argument(
        "--batches", type=int, default=40, help="measured micro-batches of each query, at most 90"
    )
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
