"""The job that the demo submits: a stream of flights into one directory per month, in three micro-batches.

    spark-submit --master spark://… job.py --source … --base … --checkpoint … --signals …

Only the signals are the demo's: files by which it learns where the job is. A task of micro-batch 0 waits to
be killed; when micro-batches 1 and 2 are decided, and not yet published, the driver waits until it is told to
go on.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from filesink import BucketAssigner, EpochDecided, FileSink, ParquetWriterFactory, SinkEvent

_WAITS = 120.0  # seconds at most
_TASKS = 4


def main() -> None:
    """Write whatever the source has that the sink has not."""
    arguments = _arguments()
    spark = SparkSession.builder.appName("flights").getOrCreate()
    if arguments.artifact:
        spark.addArtifacts(arguments.artifact, pyfile=True)
    schema = spark.read.parquet(arguments.source).schema
    months = spark.readStream.schema(schema).option("maxFilesPerTrigger", 4).parquet(arguments.source)
    if arguments.signals:
        months = months.repartition(_TASKS).mapInArrow(slow_task(arguments.signals), schema)
    builder = (
        FileSink.for_bulk_format(arguments.base, ParquetWriterFactory())
        .with_storage_options(**json.loads(os.environ.get("STORAGE_OPTIONS", "{}")))
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM", column="time_hour"))
        .with_uid("flights")
    )
    if arguments.signals:
        builder = builder.with_listener(pause(arguments.signals))
    sink = builder.build()
    sink.start(months, checkpoint_location=arguments.checkpoint, available_now=True).awaitTermination()
    spark.stop()


def slow_task(signals: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow`` that passes on what it gets; one task waits in the midst of it, once."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for number, batch in enumerate(batches):
            if number == 1 and context is not None and context.partitionId() == 0:
                _wait_once(signals / "task")
            yield batch

    def _wait_once(note: Path) -> None:
        if not note.exists():
            unfinished = note.with_suffix(".unfinished")
            unfinished.write_text(str(os.getpid()))
            unfinished.replace(note)
            time.sleep(_WAITS)

    return pass_on


def pause(signals: Path) -> Callable[[SinkEvent], None]:
    """A listener that waits between *decide* and *publish*: the sink tells it of the one before the other."""

    def listener(event: SinkEvent) -> None:
        if isinstance(event, EpochDecided) and event.batch_id in {1, 2}:
            (signals / f"decided-{event.batch_id}").touch()
            deadline = time.monotonic() + _WAITS
            while not (signals / f"go-{event.batch_id}").exists() and time.monotonic() < deadline:
                time.sleep(0.05)

    return listener


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--source", required=True, help="a directory of Parquet files")
    parser.add_argument("--base", required=True, help="where the files go")
    parser.add_argument("--checkpoint", required=True, help="where Spark notes its progress")
    parser.add_argument("--artifact", help="a zip file with filesink, for workers that have it not")
    parser.add_argument("--signals", type=Path, help="a directory that the demo looks at")
    return parser.parse_args()


if __name__ == "__main__":
    main()
