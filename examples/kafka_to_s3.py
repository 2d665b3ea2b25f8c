"""How do I bring a topic of Kafka to S3 by the hour, as a table in Glue?

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.0 examples/kafka_to_s3.py

Variables: KAFKA (host:port, …), TOPIC, BASE (s3://bucket/path), CHECKPOINT (s3a://bucket/path elsewhere),
TABLE (database.table). AWS is asked as boto3 is told to: AWS_PROFILE, AWS_REGION, a role.

Each event is in the hour of its own time. Small files of ten minutes are merged before anybody sees them.
An hour is a partition in Glue once no event of it is expected any more; late events are written and announced
again. The job may be killed and started again at any moment.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from compaction import FileCompactor, FileCompactStrategy
from filesink import (
    BucketAssigner,
    FileSink,
    GlueCatalog,
    MetastorePolicy,
    ParquetWriterFactory,
    PartitionCommit,
    SuccessFilePolicy,
    TableKind,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from filesink import Metastore

SCHEMA = "user STRING, action STRING, amount DOUBLE, ts TIMESTAMP"


def hourly(
    events: DataFrame, base: str, *, checkpoint: str, table: str, catalog: Metastore, **start: Any
) -> Any:
    """Start the query: ``events`` has a column ``ts``; ``start`` goes to ``sink.start``."""
    hours = events.selectExpr("*", "date_format(ts, 'yyyy-MM-dd') AS day", "date_format(ts, 'HH') AS hour")
    announce = PartitionCommit(
        trigger=PartitionCommit.partition_time(
            extractor="$day $hour:00:00", watermark_column="ts", allowed_lateness="10 min"
        ),
        delay="1 h",
        policies=[MetastorePolicy(table, catalog, create=TableKind.EXTERNAL), SuccessFilePolicy()],
    )
    sink = (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day", "hour"))
        .with_partition_commit(announce)
        .enable_compact(
            FileCompactStrategy(size_threshold="128 MiB", max_age="10 min"),
            FileCompactor.record_wise_file_compactor(),
        )
        .with_uid("events")
        .build()
    )
    return sink.start(hours, checkpoint_location=checkpoint, **start)


def events_of(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """The records of a topic, as JSON with the columns of ``SCHEMA``."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    records = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return records.selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS event").select("event.*")


def main() -> int:
    """Run until the query is stopped."""
    variables = ("KAFKA", "TOPIC", "BASE", "CHECKPOINT", "TABLE")
    if missing := [name for name in variables if name not in os.environ]:
        sys.exit(f"Not set: {', '.join(missing)}. {__doc__}")
    servers, topic, base, checkpoint, table = (os.environ[name] for name in variables)
    spark = SparkSession.builder.appName("events").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    query = hourly(
        events_of(spark, servers, topic),
        base,
        checkpoint=checkpoint,
        table=table,
        catalog=GlueCatalog(),
        processing_time="1 minute",
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
