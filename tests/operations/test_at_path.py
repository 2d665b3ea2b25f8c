"""What can be done by who knows the path of a sink, and not its program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import filesink
from filesink.errors import ConfigError, StateError
from filesink.ledger.identity import OnNewQuery, batch_write
from filesink.ledger.record import BatchWrite, MicroBatch
from filesink.metastore.api import Column, Table, TableName
from filesink.metastore.memory import MemoryMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.operations.at_path import operations_at
from filesink.operations.path_tiers import Announcing
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from tests.fakes import FakeJob, micro_batch
from tests.fakes import records as lines
from tests.operations.broken_paths import Killed, whole, with_open_parts
from tests.sink_directory.written import Written, records

NAME = TableName.parse("web.trips")


def metastore_at(base: Path) -> MemoryMetastore:
    """With a table at ``base``, which has no partition yet."""
    metastore = MemoryMetastore()
    metastore.create_table(
        Table(
            name=NAME,
            columns=(Column(name="value", type="string"),),
            partition_keys=(Column(name="k", type="int"),),
            location=str(base),
            format=HIVE_FORMATS["parquet"],
        )
    )
    return metastore


def partitions(metastore: MemoryMetastore) -> list[str]:
    """Where those are that it knows, by the last part of their paths."""
    found = metastore.tables.find(NAME).partitions.values()
    return sorted(one.location.rpartition("/")[2] for one in found)


def test_partitions_are_announced_again(tmp_path: Path) -> None:
    """All with files, or those that are named; whoever knows them already is told nothing new."""
    base = tmp_path / "base"
    whole(base)
    metastore = metastore_at(base)
    operations = operations_at(str(base), announcing=Announcing(metastore=metastore, table="web.trips"))
    planned = operations.plan_publish()
    assert [(one.bucket, one.files, one.rows) for one in planned] == [
        ("k=1", 2, 5), ("k=2", 3, 5), ("k=3", 3, 4),
    ]  # fmt: skip
    assert partitions(metastore) == []
    operations.publish(["k=2"])
    assert partitions(metastore) == ["k=2"]
    operations.publish()
    operations.publish()
    assert partitions(metastore) == ["k=1", "k=2", "k=3"]


def test_fsck_compares_a_metastore(tmp_path: Path) -> None:
    """Directories that it does not know, and those that it has elsewhere; what waits is no fault."""
    base = tmp_path / "base"
    whole(base)
    metastore = metastore_at(base)
    told = Announcing(metastore=metastore, table="web.trips")

    def findings() -> list[tuple[str, str]]:
        report = filesink.fsck(base, depth="quick", metastore=metastore, table="web.trips")
        return [(finding.code, finding.path) for finding in report.findings]

    assert findings() == [("PARTITION_MISSING", f"k={k}") for k in (1, 2, 3)]
    operations_at(str(base), announcing=told).publish()
    assert findings() == []
    known = metastore.tables.find(NAME).partitions
    (values,) = (one for one, partition in known.items() if partition.location.endswith("k=2"))
    known[values] = replace(known[values], location="/elsewhere/k=2")
    assert findings() == [("PARTITION_ELSEWHERE", "k=2")]
    with pytest.raises(ConfigError, match="a metastore and the name of a table go together"):
        filesink.fsck(base, metastore=metastore)


def test_nobody_to_tell(tmp_path: Path) -> None:
    """A table goes with a metastore, and somebody has to be named."""
    base = tmp_path / "base"
    whole(base)
    with pytest.raises(ConfigError, match="nobody is named"):
        operations_at(str(base)).publish()
    with pytest.raises(ConfigError, match="a metastore and the name of a table go together"):
        Announcing(table="web.trips")


def died_before_announcing(base: Path) -> MemoryMetastore:
    """The files of an epoch are visible, and the metastore does not know their partition."""
    written = Written(base)
    metastore = metastore_at(base)
    written.world.partition_commit = PartitionCommit(policies=[MetastorePolicy("web.trips", metastore)])
    written.write(records(1, "a"))
    killed = Fault(moment=Moment.BEFORE, error=Killed())
    written.world.fault = lambda operation, path: (
        killed if operation == "put_if_absent" and path.endswith(".entry") else None
    )
    with pytest.raises(Killed):
        written.write(records(2, "b"))
    metastore.tables.find(NAME).partitions.clear()  # as if it had died before that, too
    return metastore


def test_an_epoch_that_announces_is_not_completed_without(tmp_path: Path) -> None:
    """The caller names the metastore, or says that it goes on without."""
    base = tmp_path / "base"
    metastore = died_before_announcing(base)
    with pytest.raises(StateError, match="announces partitions"):
        operations_at(str(base)).recover()
    assert len(operations_at(str(base)).plan_recover().epochs) == 1
    named = operations_at(str(base), announcing=Announcing(metastore=metastore, table="web.trips"))
    assert len(named.recover().published) == 1
    assert partitions(metastore) == ["k=2"]
    assert operations_at(str(base)).plan_recover().epochs == ()


def test_going_on_without_announcing(tmp_path: Path) -> None:
    """Those that were not announced are named."""
    base = tmp_path / "base"
    metastore = died_before_announcing(base)
    assert list(operations_at(str(base)).recover(announce="skip").unannounced) == ["k=2"]
    assert partitions(metastore) == []


def test_only_the_sink_with_a_uid_is_recovered(tmp_path: Path) -> None:
    """Another one stays for its own driver."""
    base = tmp_path / "base"
    written = Written(base)
    killed = Fault(moment=Moment.BEFORE, error=Killed())
    for uid in ("u", "v"):
        written.world.fault = lambda operation, _path: killed if operation == "publish" else None
        with pytest.raises(Killed):
            written.write(records(1, uid), uid=uid)
        written.world.fault = lambda _operation, _path: None
    operations = operations_at(str(base), uid="u")
    assert [epoch.sink for epoch in operations.plan_recover().epochs] == ["uid-u"]
    assert len(operations.recover().published) == 1
    assert [epoch.sink for epoch in operations_at(str(base)).plan_recover().epochs] == ["uid-v"]


def run(written: Written, batch: pa.RecordBatch, sink_id: str, cause: MicroBatch | BatchWrite) -> None:
    """One epoch of a chain, beside those of others."""
    world = written.world
    job = FakeJob([[batch]], world.clock, world.ids, schema=batch.schema)
    world.driver(sink_id, on_new_query=OnNewQuery.APPEND).run(cause, job)


def dying(base: Path) -> list[str]:
    """A path where drivers of each kind of chain have died behind a decision; the ids that status has."""
    written = Written(base)
    ids, killed = written.world.ids, Fault(moment=Moment.BEFORE, error=Killed())
    for sink_id, cause in (
        ("uid-u", micro_batch(0, query_id="u")),
        ("uid-query-1", micro_batch(0, query_id="of a uid that looks like an id")),
        ("query-1", micro_batch(0, query_id="1")),
        ("query-2", micro_batch(0, query_id="2")),
        batch_write(SaveMode.APPEND, None, "", ids),
        batch_write(SaveMode.APPEND, "v", "", ids),
        batch_write(SaveMode.OVERWRITE_PARTITIONS, None, "", ids),
    ):
        written.world.fault = lambda operation, _path: killed if operation == "publish" else None
        with pytest.raises(Killed):
            run(written, records(1, sink_id), sink_id, cause)
        written.world.fault = lambda _operation, _path: None
    return [state.id for state in filesink.open(base).status().sinks]


@pytest.mark.parametrize(
    ("sink_id", "recovered"),
    [
        ("query-2", ["query-2"]),
        ("appends", ["appends"]),
        ("exclusive", ["exclusive"]),
        ("uid-u", ["uid-u", "exclusive"]),
        ("u", ["uid-u", "exclusive"]),
        ("appends-v", ["appends-v", "exclusive"]),
        ("query-1", ["uid-query-1", "exclusive"]),  # a uid comes first, whatever it looks like
        ("uid-query-1", ["uid-query-1", "exclusive"]),
    ],
)
def test_each_id_that_status_shows_is_taken(tmp_path: Path, sink_id: str, recovered: list[str]) -> None:
    """One that tells a uid stands for all chains of that sink, any other for itself alone."""
    base = tmp_path / "base"
    ids = dying(base)
    assert set(ids) >= {sink_id} or sink_id == "u"
    operations = operations_at(str(base), uid=sink_id)
    assert sorted(one.sink for one in operations.plan_recover().epochs) == sorted(recovered)
    assert len(operations.recover().published) == len(recovered)
    left = {one.sink for one in operations_at(str(base)).plan_recover().epochs}
    assert left == set(ids) - set(recovered)


def test_what_a_stream_without_a_uid_holds_back_is_finished_by_its_id(tmp_path: Path) -> None:
    """And that of others is left to them."""
    base = tmp_path / "base"
    written = with_open_parts(base)
    other = [part.sink for part in operations_at(str(base)).plan_finish()]
    run(written, lines("mine", bucket="day=1"), "query-1", micro_batch(0, query_id="1"))
    operations = operations_at(str(base), uid="query-1")
    assert [part.sink for part in operations.plan_finish()] == ["query-1"]
    assert operations.finish() is not None
    assert [part.sink for part in operations_at(str(base)).plan_finish()] == other
