"""Streams a directory of flights into a bucket until nothing is left. Killed and restarted by tests.

    python -m tests.spark.programs.s3_stream <parquet|lines> <directory> <base path> <options as JSON>

Says ``started`` when the query runs and ``done`` when everything is visible.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filesink import BucketAssigner, FileSink, RollingPolicy
from formats import Encoder, ParquetWriterFactory
from tests.spark import inputs, sessions


def s3_sink(kind: str, base: str, options: dict[str, Any]) -> FileSink:
    """Parquet that ends with every epoch, or lines in parts that stay open."""
    if kind == "parquet":
        builder = FileSink.for_bulk_format(base, ParquetWriterFactory())
        builder = builder.with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
    else:
        builder = FileSink.for_row_format(base, Encoder.json_lines()).with_rolling_policy(
            RollingPolicy.default_rolling_policy(part_size="24KiB")
        )
        builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return builder.with_storage_options(**options).with_uid("flights").build()


def main(kind: str, directory: Path, base: str, options: dict[str, Any]) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    df = inputs.flights(spark, directory / "source").repartition(2)
    query = s3_sink(kind, base, options).start(
        df, checkpoint_location=directory / "checkpoint", available_now=True
    )
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
