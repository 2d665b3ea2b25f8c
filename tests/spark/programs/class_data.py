"""A bit of all that tests do with Spark, so that the classes which that takes can be kept for later JVMs.

    python -m tests.spark.programs.class_data <archive>

The JVM writes the archive as it ends.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import filesink
from filesink import BucketAssigner, FileSink
from formats import ParquetWriterFactory
from tests.spark import inputs, sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(archive: Path) -> None:
    """Batch and stream, through the sink and through the data source, and what tests read with."""
    spark = sessions.start(spark__driver__extraJavaOptions=f"-XX:ArchiveClassesAtExit={archive}")
    with tempfile.TemporaryDirectory() as directory:
        inputs.add_file(Path(directory) / "source", 0, rows=10)
        through_the_sink(spark, Path(directory))
        through_the_data_source(spark, Path(directory))
        spark.read.parquet(f"{directory}/out").groupBy("carrier").count().orderBy("carrier").collect()
        spark.sql("SELECT CAST(id AS STRING) FROM range(3)").write.text(f"{directory}/text")
    spark.stop()


def through_the_sink(spark: SparkSession, directory: Path) -> None:
    """A stream and a batch."""
    assigner = BucketAssigner.partition_bucket_assigner("day")
    builder = FileSink.for_bulk_format(directory / "out", ParquetWriterFactory())
    sink = builder.with_bucket_assigner(assigner).build()
    df = inputs.flights(spark, directory / "source")
    sink.start(df, checkpoint_location=directory / "checkpoint", available_now=True).awaitTermination()
    sink.write(spark.read.parquet(str(directory / "source")))


def through_the_data_source(spark: SparkSession, directory: Path) -> None:
    """A stream."""
    filesink.register(spark)
    writer = inputs.flights(spark, directory / "source").writeStream.format("filesink")
    writer = writer.option("checkpointLocation", f"{directory}/checkpoint-source").trigger(availableNow=True)
    writer.start(f"{directory}/out-source").awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
