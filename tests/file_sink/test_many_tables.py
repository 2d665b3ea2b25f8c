"""Many tables below one base path: one record decides all, and each directory is a table of its own."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.errors import (
    BucketError,
    CommitFailedError,
    ConfigError,
    MetastoreConflictError,
    MetastoreError,
)
from filesink.file_sink.report import report_of
from filesink.metastore.api import TableKind, TableName
from filesink.metastore.memory import MemoryMetastore, MemoryTables
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.tables_policy import MetastoreTablesPolicy
from filesink.naming import OutputFileConfig, parent
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.file_format import BulkFormat
from filesink.storage.faulty import Fault, Moment
from formats import Encoder, ParquetWriterFactory
from tests.fakes import World, keep_open, micro_batch, plan_of
from tests.metastore.faulty import FaultyMetastore

SCHEMA = pa.schema([("t", pa.string()), ("day", pa.string()), ("id", pa.int64()), ("more", pa.int64())])
PATH = "${schema_name}/${table_name}"


def rows(*tables: str, day: str = "1", first: int = 0) -> pa.RecordBatch:
    """One row for each name."""
    count = len(tables)
    values = {"t": list(tables), "day": [day] * count, "id": range(first, first + count), "more": [7] * count}
    return pa.RecordBatch.from_pydict({name: list(column) for name, column in values.items()}, SCHEMA)


def world_of(form=None, **options) -> World:
    """A sink of tables, partitioned by day."""
    assigner = BucketAssigner.table_bucket_assigner(
        "t", path=PATH, within=BucketAssigner.partition_bucket_assigner("day"), columns={"s.narrow": ["id"]}
    )
    plan = replace(plan_of(form or BulkFormat(ParquetWriterFactory())), assigner=assigner)
    return World(plan=replace(plan, **options))


def run(world: World, batch: int, *batches: pa.RecordBatch):
    """A micro-batch, with a task for each of ``batches``."""
    return world.driver().run(micro_batch(batch), world.job(*batches, schema=SCHEMA))


def ids(world: World, directory: str) -> list[int]:
    """Those in the files of a table, by the files themselves."""
    found = [data for path, data in world.visible().items() if path.startswith(f"{directory}/")]
    return sorted(one for data in found for one in _read(data)["id"].to_pylist())


def _read(data: bytes) -> pa.Table:
    return pa.parquet.read_table(pa.BufferReader(data))


def test_one_record_decides_all_tables() -> None:
    """Each row is in the directory of its table, and nowhere else, whichever task had it."""
    world = world_of()
    outcome = run(world, 0, rows("s.a", "s.b", "s.a"), rows("s.b", "r.a", first=3))
    run(world, 1, rows("s.new", first=9))
    assert outcome.slot == 0
    assert (ids(world, "s/a"), ids(world, "s/b"), ids(world, "r/a"), ids(world, "s/new")) == (
        [0, 2], [1, 3], [4], [9],
    )  # fmt: skip
    assert {parent(path) for path in world.visible()} == {
        "s/a/day=1", "s/b/day=1", "r/a/day=1", "s/new/day=1",
    }  # fmt: skip
    tables = report_of(outcome, tables=world.plan.assigner.path).tables
    assert {name: (one.files, one.rows) for name, one in tables.items()} == {
        "s.a": (1, 2), "s.b": (2, 2), "r.a": (1, 1),
    }  # fmt: skip


def test_a_driver_that_dies_publishes_all_tables_or_none() -> None:
    """Killed before any file of the decided epoch was visible: the next driver has all of them."""
    world = world_of()
    killed = [Fault(moment=Moment.BEFORE, error=KeyboardInterrupt())]
    world.fault = lambda name, _path: killed.pop() if name == "publish" and killed else None
    with pytest.raises(KeyboardInterrupt):
        run(world, 0, rows("s.a", "s.b", "r.a"))
    assert world.visible() == {}
    world.driver().recover()
    assert (ids(world, "s/a"), ids(world, "s/b"), ids(world, "r/a")) == ([0], [1], [2])


def test_a_table_has_its_own_columns() -> None:
    """Those that were chosen for it, without partition columns and the one that names tables."""
    world = world_of()
    run(world, 0, rows("s.narrow", "s.wide"))
    columns = {path.split("/")[1]: _read(data).column_names for path, data in world.visible().items()}
    assert columns == {"narrow": ["id"], "wide": ["id", "more"]}


def test_records_of_a_broken_table_are_put_aside() -> None:
    """And do not stop the others; without dead letters they fail the epoch, and nothing is visible."""
    broken = rows("s.a", "nothing", "_hidden.x", first=0)
    world = world_of()
    with pytest.raises(BucketError, match="name of a table, in column 't'"):
        run(world, 0, broken)
    assert world.visible() == {}
    world = world_of(on_bad_record=DeadLetters())
    outcome = run(world, 0, broken)
    assert ids(world, "s/a") == [0]
    assert outcome.metrics["dead_letters"] == 2
    letters = [data for path, data in world.visible().items() if path.startswith("_dead_letters")]
    assert sorted(one for data in letters for one in _read(data)["t"].to_pylist()) == ["_hidden.x", "nothing"]


def test_names_of_files_have_their_table() -> None:
    """In parts of one piece, and in those that stay open and are put together later."""
    names = OutputFileConfig(part_prefix="${table_name}")
    world = world_of(names=names)
    run(world, 0, rows("s.a", "s.b"))
    assert {path.rpartition("/")[2].split("-")[0] for path in world.visible()} == {"a", "b"}
    lines = world_of(Encoder.json_lines(), names=names, policy=keep_open())
    driver = lines.driver()
    for batch in range(2):
        driver.run(micro_batch(batch), lines.job(rows("s.a", first=batch), schema=SCHEMA))
    assert lines.visible() == {}
    driver.finish()
    (path,) = lines.visible()
    assert path.startswith("s/a/day=1/a-")
    assert lines.hidden() == []


class Tables:
    """A sink of tables and its metastore."""

    def __init__(self, **options) -> None:
        self.tables = MemoryTables()
        self.fault = lambda _operation: None
        metastore = FaultyMetastore(MemoryMetastore(self.tables), lambda name, _table: self.fault(name))
        self.policy = MetastoreTablesPolicy("${schema_name}.${table_name}", metastore, **options)
        self.world = world_of()
        self.world.partition_commit = PartitionCommit(policies=[self.policy])
        self.world.tiers().prepare(SCHEMA)

    def partitions(self, name: str):
        return sorted(self.tables.tables[TableName.parse(name)].partitions)

    def columns(self, name: str) -> list[str]:
        return [column.name for column in self.tables.tables[TableName.parse(name)].table.columns]


def test_tables_are_made_in_the_epoch_that_has_their_first_rows() -> None:
    """Each at its own place, with its own columns; later ones get partitions."""
    sut = Tables(create=TableKind.EXTERNAL)
    run(sut.world, 0, rows("s.a", "s.narrow"))
    assert sut.partitions("s.a") == [("1",)]
    assert (sut.columns("s.a"), sut.columns("s.narrow")) == (["id", "more"], ["id"])
    run(sut.world, 1, rows("s.a", "r.b", day="2", first=5))
    assert sut.partitions("s.a") == [("1",), ("2",)]
    assert sut.partitions("r.b") == [("2",)]
    found = sut.tables.tables[TableName.parse("r.b")]
    assert found.table.location.endswith("/base/r/b")
    (partition,) = found.partitions.values()
    assert partition.location.endswith("/base/r/b/day=2")
    assert (partition.parameters["numFiles"], partition.parameters["numRows"]) == ("1", "1")


def test_a_table_that_is_not_there_refuses_its_epoch() -> None:
    """Before it is decided: nothing of it is visible, not of other tables either."""
    sut = Tables()
    with pytest.raises(MetastoreConflictError, match=r"s\.a"):
        run(sut.world, 0, rows("s.a"))
    assert sut.world.visible() == {}


def test_a_table_that_the_metastore_refuses_does_not_stop_the_others() -> None:
    """It is named, its files are visible, and when it is mended the next epoch tells of it."""
    sut = Tables(create=TableKind.EXTERNAL, on_broken_table="skip")
    run(sut.world, 0, rows("s.a", "s.b"))
    name = TableName.parse("s.a")
    good = sut.tables.tables[name].table
    sut.tables.tables[name].table = replace(good, partition_keys=(replace(good.partition_keys[0], name="k"),))
    run(sut.world, 1, rows("s.a", "s.b", day="2", first=2))
    assert sut.partitions("s.b") == [("1",), ("2",)]
    assert list(sut.policy.broken) == ["s.a"]
    assert ids(sut.world, "s/a") == [0, 2]
    sut.tables.tables[name].table = good
    run(sut.world, 2, rows("s.a", day="3", first=4))
    assert sut.partitions("s.a") == [("1",), ("3",)]
    assert sut.policy.broken == {}


@pytest.mark.parametrize("operation", ["get_table", "create_table", "add_partitions"])
@pytest.mark.parametrize("moment", Moment)
def test_a_metastore_that_is_away_for_a_moment(operation: str, moment: Moment) -> None:
    """When a table is first seen, before the epoch is decided or after it: it is made all the same, once."""
    sut = Tables(create=TableKind.EXTERNAL)
    down = [Fault(moment=moment, error=MetastoreError("away", code="METASTORE_UNKNOWN"))]
    sut.fault = lambda name: down.pop() if name == operation and down else None
    run(sut.world, 0, rows("s.a", "s.b"))
    assert not down
    assert sut.partitions("s.a") == sut.partitions("s.b") == [("1",)]


def test_another_driver_makes_the_table_of_a_decided_epoch() -> None:
    """The first one died when the metastore was away, and only the next one comes to ask it."""
    sut = Tables(create=TableKind.EXTERNAL)
    sut.fault = lambda _: Fault(moment=Moment.BEFORE, error=MetastoreError("away", code="METASTORE_DOWN"))
    with pytest.raises(CommitFailedError):
        run(sut.world, 0, rows("s.a"))
    assert ids(sut.world, "s/a") == [0]
    sut.fault = lambda _: None
    sut.world.tiers().prepare(SCHEMA)
    run(sut.world, 1, rows("s.a", day="2", first=1))
    assert sut.partitions("s.a") == [("1",), ("2",)]


def test_the_policy_of_tables_goes_with_tables() -> None:
    """And with placeholders that are known."""
    policy = MetastoreTablesPolicy("db.${table_name}", MemoryMetastore())
    flat = World(partition_commit=PartitionCommit(policies=[policy]))
    with pytest.raises(ConfigError, match="table_bucket_assigner"):
        flat.tiers().prepare(pa.schema([("bucket", pa.string()), ("value", pa.string())]))
    with pytest.raises(ConfigError, match="known are"):
        MetastoreTablesPolicy("${db}.${table_name}", MemoryMetastore())
