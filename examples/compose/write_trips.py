"""Write 30,000 trips of three days to MinIO, as a table in the Hive metastore.

    spark-submit --master spark://master:7077 write_trips.py

Run it twice: the second time everything is committed already and nothing is added.
"""

from __future__ import annotations

import argparse

import boto3
from pyspark.sql import DataFrame, SparkSession

from filesink import (
    BucketAssigner,
    EpochReport,
    FileSink,
    HiveMetastore,
    Metastore,
    MetastorePolicy,
    ParquetWriterFactory,
    PartitionCommit,
    TableKind,
)

TABLE = "default.trips"
TXN_ID = "trips of the first three days"


def main() -> None:
    """Make the bucket if it is missing, and write."""
    arguments = _arguments()
    make_bucket(arguments.bucket)
    spark = SparkSession.builder.appName("trips").getOrCreate()
    print(write(trips(spark), f"s3://{arguments.bucket}/trips", HiveMetastore(arguments.metastore)))
    spark.stop()


def make_bucket(name: str) -> None:
    """Make it, with the endpoint and the keys of the environment; one that is there stays."""
    client = boto3.client("s3")
    if name not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
        client.create_bucket(Bucket=name)


def trips(spark: SparkSession) -> DataFrame:
    """The same rows each time, as a write that is repeated has to have."""
    return spark.range(30_000).selectExpr(
        "id AS trip",
        "cast(id * 37 % 2000 AS DOUBLE) / 100 AS fare",
        "date'2026-01-01' + cast(id % 3 AS INT) AS day",
    )


def write(rows: DataFrame, base: str, metastore: Metastore) -> EpochReport:
    """Write ``rows`` once, a directory per day, and tell the metastore of each day."""
    table = MetastorePolicy(TABLE, metastore, create=TableKind.EXTERNAL)
    sink = (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .with_partition_commit(PartitionCommit(policies=[table]))
        .with_uid("trips")
        .build()
    )
    return sink.write(rows, txn_id=TXN_ID)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--bucket", default="lake", help="where the files go; made if it is missing")
    parser.add_argument("--metastore", default="thrift://metastore:9083", help="which one learns of them")
    return parser.parse_args()


if __name__ == "__main__":
    main()
