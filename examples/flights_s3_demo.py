"""Stream a year of flights onto S3, one prefix per month, and count them with a reader of its own.

    python examples/flights_s3_demo.py [--output demo-output]

Starts its own server, so that no account is needed; the sink does not know the difference.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import flights
import s3_server
from filesink import BucketAssigner, FileSink, ParquetWriterFactory
from flights_demo import follow, start_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKET = "demo"


def main() -> int:
    """Run the demo; the exit status is 0 if every flight is there exactly once."""
    output = _arguments().output.resolve()
    flights.prepare(output / "source")
    checkpoint = output / "checkpoint-s3"
    shutil.rmtree(checkpoint, ignore_errors=True)  # the server forgets everything, and so must Spark
    with s3_server.running(BUCKET) as options:
        spark = start_spark()
        try:
            stream(spark, source=output / "source", checkpoint=checkpoint, options=options)
        finally:
            spark.stop()
        return 0 if report(s3_server.client(options)) == flights.ROWS else 1


def stream(spark: SparkSession, *, source: Path, checkpoint: Path, options: dict[str, Any]) -> None:
    """Write everything the source has."""
    months = (
        spark.readStream.schema(flights.SPARK_SCHEMA).option("maxFilesPerTrigger", 4).parquet(str(source))
    )
    sink = (
        FileSink.for_bulk_format(f"s3://{BUCKET}/flights", ParquetWriterFactory())
        .with_storage_options(**options)
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("month"))
        .with_uid("flights")
        .build()
    )
    follow(sink.start(months, checkpoint_location=str(checkpoint), available_now=True))


def report(client: Any) -> int:
    """Print what lies in the bucket, without any help from the sink; returns the number of rows."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="flights/month=")
    rows: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for key in (each["Key"] for page in pages for each in page["Contents"]):
        month = key.split("/")[1]
        body = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        rows[month] += pq.ParquetFile(io.BytesIO(body)).metadata.num_rows
        files[month] += 1
    print(f"\nIn s3://{BUCKET}/flights:\n\n  prefix      files    rows")
    for month in sorted(rows):
        print(f"  {month:<10} {files[month]:>6} {rows[month]:>7,}")
    total = sum(rows.values())
    unfinished = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    print(f"  {len(rows)} prefixes {sum(files.values()):>6} {total:>7,}  (expected {flights.ROWS:,})")
    print(f"  unfinished uploads: {len(unfinished)}")
    return total


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="where the source is put")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
