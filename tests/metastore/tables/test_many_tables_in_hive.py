"""A thousand tables are a real metastore's, too: each made where it is, with what was written to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from examples.hive_server import HiveServer
from filesink.buckets.assigner import BucketAssigner
from filesink.metastore.api import TableKind, TableName
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.tables_policy import MetastoreTablesPolicy
from filesink.parts.file_format import BulkFormat
from filesink.storage.address import StoreAddress
from formats import ParquetWriterFactory
from tests.fakes import World, micro_batch, plan_of

SCHEMA = pa.schema([("t", pa.string()), ("day", pa.string()), ("id", pa.int64())])
FEW, MANY = 3, 1_000


@pytest.mark.slow
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_tables_of_one_epoch(hive: HiveServer, tmp_path: Path, count: int) -> None:
    """And another partition of each with the next one, though the metastore is asked by several threads."""
    names = [f"default.many{count}_{number}" for number in range(count)]
    assigner = BucketAssigner.table_bucket_assigner(
        "t", path="${schema_name}/${table_name}", within=BucketAssigner.partition_bucket_assigner("day")
    )
    metastore = HiveMetastore(hive.uri)
    policy = MetastoreTablesPolicy("${schema_name}.${table_name}", metastore, create=TableKind.EXTERNAL)
    plan = replace(plan_of(BulkFormat(ParquetWriterFactory())), assigner=assigner)
    world = World(
        plan=plan,
        open_store=StoreAddress(base_path=str(tmp_path / "base")),
        partition_commit=PartitionCommit(policies=[policy]),
    )
    world.tiers().prepare(SCHEMA)
    driver = world.driver()
    for batch in range(2):
        rows = {"t": names, "day": [str(batch)] * count, "id": list(range(count))}
        driver.run(micro_batch(batch), world.job(pa.RecordBatch.from_pydict(rows, SCHEMA), schema=SCHEMA))
    for name in names:
        table = metastore.existing_table(TableName.parse(name))
        assert table.location.endswith(f"/base/{name.replace('.', '/')}")
        found = metastore.get_partitions(table, [("0",), ("1",)])
        assert [one.parameters["numRows"] for one in found] == ["1", "1"]
    metastore.close()
