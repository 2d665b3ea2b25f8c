"""Streams a directory of flights into a sink until nothing is left. Killed and restarted by tests.

    python -m tests.spark.programs.flights_stream <parquet|compacted|text> <directory>

Says ``started`` when the query runs and ``done`` when everything is visible.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compaction import FileCompactor, FileCompactStrategy
from filesink import BucketAssigner, FileSink, OutputFileConfig, RollingPolicy
from formats import Encoder, ParquetWriterFactory
from tests.spark import inputs, sessions


def parquet_sink(base: Path) -> FileSink:
    """Files that end with every epoch, in Hive partitions."""
    return (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .with_uid("flights")
        .build()
    )


def compacted_sink(base: Path) -> FileSink:
    """The same, but files of two epochs are merged before they are seen, each time by a Spark job."""
    compactor = FileCompactor.record_wise_file_compactor()
    compactor.on_driver = 0
    return (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .with_uid("flights")
        .enable_compact(FileCompactStrategy(checkpoints=2), compactor)
        .build()
    )


def text_sink(base: Path) -> FileSink:
    """Small parts that stay open across epochs, in a directory per day."""
    return (
        FileSink.for_row_format(base, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.expression_bucket_assigner("substring(value, 1, 10)"))
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size="4KiB"))
        .with_output_file_config(OutputFileConfig(part_suffix=".txt"))
        .build()
    )


SINKS = {"parquet": parquet_sink, "compacted": compacted_sink, "text": text_sink}


def main(kind: str, directory: Path) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    df = inputs.flights(spark, directory / "source").repartition(2)
    df = inputs.as_lines(df) if kind == "text" else df
    sink = SINKS[kind](directory / "out")
    query = sink.start(df, checkpoint_location=directory / "checkpoint", available_now=True)
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
