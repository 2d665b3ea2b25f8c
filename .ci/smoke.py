"""What a user does first: a batch twice, a stream, a look. Ends with 0 if all is right."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow.dataset as ds
from pyspark.sql import SparkSession

import filesink
from filesink import BucketAssigner, FileSink, ParquetWriterFactory

os.environ["PYSPARK_PYTHON"] = sys.executable
with tempfile.TemporaryDirectory() as name:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    base, source = Path(name, "base"), Path(name, "source")
    flat = BucketAssigner.base_path_bucket_assigner()
    sink = (
        FileSink.for_bulk_format(str(base), ParquetWriterFactory())
        .with_bucket_assigner(flat)
        .with_uid("a")
        .build()
    )
    sink.write(spark.range(1000), txn_id="first")
    repeated = sink.write(spark.range(1000), txn_id="first")
    spark.range(1000, 1500).write.parquet(str(source))
    rows = spark.readStream.schema("id BIGINT").parquet(str(source))
    sink.start(rows, checkpoint_location=f"{name}/checkpoint", available_now=True).awaitTermination()
    spark.stop()
    ids = sorted(ds.dataset(base, format="parquet").to_table()["id"].to_pylist())
    good = repeated.already_committed and ids == list(range(1500)) and filesink.fsck(str(base)).is_good
sys.exit(0 if good else f"{len(ids)} rows")
