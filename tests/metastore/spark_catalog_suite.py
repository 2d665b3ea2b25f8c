"""The session's catalog keeps the contract, and Spark SQL reads what is announced.

Not collected by itself: Hive support cannot be added to the session that the other tests share, so
``test_spark_catalog`` runs this file in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from filesink import FileSink
from filesink.buckets import BucketAssigner
from filesink.metastore.api import Metastore, TableKind
from filesink.metastore.hive import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import SuccessFilePolicy
from filesink.spark.catalog import SparkCatalog
from formats.parquet import ParquetWriterFactory
from tests.contracts.metastore_contract import MetastoreContract, MetastoreSite
from tests.metastore.hive_server import HiveServer
from tests.metastore.test_hive import HiveSite

URI = os.environ["FILESINK_TEST_METASTORE"]
WAREHOUSE = Path(os.environ["FILESINK_TEST_WAREHOUSE"])


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """A session whose catalog is the metastore server."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.hadoop.hive.metastore.uris", URI)
        .config("spark.sql.warehouse.dir", str(WAREHOUSE))
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@dataclass
class SparkSite(HiveSite):
    """The service itself is the oracle, asked by its bare stubs."""

    session: SparkSession | None = None

    def metastore(self) -> Metastore:
        return SparkCatalog(self.session)


@pytest.fixture
def site(session: SparkSession) -> MetastoreSite:
    """The server seen through the session."""
    return SparkSite(
        server=HiveServer(port=int(URI.rpartition(":")[2]), warehouse=WAREHOUSE), session=session
    )


class TestSparkCatalog(MetastoreContract):
    """The conformance suite, through Spark's session."""


ROWS = [Row(id=i, name=f"n{i}", day=f"2024-01-0{i % 3 + 1}", k="a/b" if i % 2 else None) for i in range(30)]


@pytest.mark.parametrize("door", ["thrift", "catalog"])
def test_spark_sql_reads_what_is_announced(session: SparkSession, tmp_path: Path, door: str) -> None:
    """A table made by the sink is read by Spark SQL, partitions pruned, statistics seen."""
    metastore = HiveMetastore(URI) if door == "thrift" else SparkCatalog(session)
    policies = [
        MetastorePolicy(f"default.{door}", metastore, create=TableKind.EXTERNAL),
        SuccessFilePolicy(),
    ]
    sink = (
        FileSink.for_bulk_format(tmp_path / "t", ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day", "k"))
        .with_partition_commit(PartitionCommit(policies=policies))
        .with_uid("t")
        .build()
    )
    frame = session.createDataFrame(ROWS)
    sink.write(frame.where("id < 20"))
    sink.write(frame.where("id >= 20"))
    table = session.table(f"default.{door}")
    assert sorted(row.id for row in table.collect()) == list(range(30))
    assert {row.name for row in table.where("day = '2024-01-01' and k = 'a/b'").collect()} == {
        f"n{i}" for i in range(3, 30, 6)
    }
    assert table.where("k is null").count() == 15
    described = session.sql(f"describe extended default.{door} partition (day='2024-01-01', k='a/b')")
    statistics = {row.col_name: row.data_type for row in described.collect()}["Partition Statistics"]
    # Spark does not show its own catalog how many rows a partition had, so their sum is not known there.
    assert statistics.endswith("bytes, 5 rows" if door == "thrift" else "bytes")
    assert len(list((tmp_path / "t").rglob("_SUCCESS"))) == 6
