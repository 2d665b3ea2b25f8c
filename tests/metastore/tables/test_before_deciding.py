"""What cannot be announced is refused while it can be: nothing is decided, nothing visible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from filesink.errors import MetastoreConflictError, MetastoreError, SchemaError
from filesink.metastore.announcements import Announcement
from filesink.metastore.api import Column, Partition
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.partition_committer import committed
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.storage.faulty import Fault, Moment
from tests.metastore.tables.test_metastore_policy import NAME, SCHEMA, TABLE, Metastores, site

THEIRS = Partition(values=("1", "a"), location="file:/elsewhere/day=1/k=a")

NEWS = committed(
    Announcement(bucket="day=1/k=a", first_seen_ms=0, slot=0, files=1, paths=("day=1/k=a/x",)),
    site(),
    repeated=False,
)


@pytest.fixture
def sut() -> Metastores:
    """A sink and its metastore."""
    return Metastores()


def refused(sut: Metastores, code: str, *buckets: str) -> str:
    """The message with which an epoch is refused, of which nothing is left: neither record nor file."""
    before = sut.world.contents()
    head = sut.world.ledger().head()
    with pytest.raises((MetastoreConflictError, SchemaError)) as caught:
        sut.write(0 if head is None else head.record.slot + 1, *buckets)
    assert caught.value.code == code
    assert sut.world.ledger().head() == head
    assert sut.world.contents() == before
    return caught.value.message


def test_a_partition_at_another_location(sut: Metastores) -> None:
    """Partition and both locations are named; other partitions go on, and it does when that is mended."""
    sut.partitions["1", "a"] = THEIRS
    message = refused(sut, "OTHER_LOCATION", "day=1/k=a", "day=2/k=a")
    for part in ("'day=1/k=a'", "db.t", f"'{THEIRS.location}'", "'file:/base/day=1/k=a'"):
        assert part in message
    sut.write(0, "day=2/k=a")
    del sut.partitions["1", "a"]
    sut.write(1, "day=1/k=a")
    assert set(sut.partitions) == {("1", "a"), ("2", "a")}


def test_a_partition_that_gets_files_now_and_is_announced_later(sut: Metastores) -> None:
    """Its first files are refused as well; afterwards it is looked at again only when it is due."""
    sut.world.partition_commit = PartitionCommit(policies=[sut.policy], delay=1000)
    sut.partitions["1", "a"] = THEIRS
    refused(sut, "OTHER_LOCATION", "day=1/k=a")
    sut.partitions.clear()
    sut.calls.clear()
    for batch_id in range(4):
        sut.write(batch_id, "day=1/k=a")
    assert sut.calls == ["get_table", "get_partitions"]
    sut.world.clock.now = 5000
    sut.partitions["1", "a"] = THEIRS
    refused(sut, "OTHER_LOCATION", "day=1/k=a")


def test_two_directories_of_one_partition(sut: Metastores) -> None:
    """Readers of the table would see the files of one."""
    message = refused(sut, "OTHER_LOCATION", "day=1/k=a", "k=a/day=1", "day=2/k=a")
    assert "day=1/k=a" in message
    assert "k=a/day=1" in message
    assert sut.partitions == {}


def test_a_table_that_was_dropped(sut: Metastores) -> None:
    """When it is back, the query goes on."""
    table = sut.tables.tables.pop(NAME)
    refused(sut, "TABLE_NOT_FOUND", "day=1/k=a")
    sut.tables.tables[NAME] = table
    sut.write(0, "day=2/k=a")
    assert set(sut.partitions) == {("2", "a")}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"partition_keys": TABLE.partition_keys[:1]}, "PARTITION_KEYS"),
        ({"partition_keys": ()}, "PARTITION_KEYS"),
        ({"format": HIVE_FORMATS["orc"]}, "TABLE_FORMAT"),
        ({"bucket_columns": ("value",)}, "BUCKETED_TABLE"),
        ({"parameters": {"transactional": "true"}}, "NOT_A_TABLE"),
        ({"columns": (Column(name="value", type="int"),)}, "COLUMN_TYPE"),
        ({"columns": (Column(name="other", type="string"),)}, "EXTRA_COLUMN"),
        (
            {"partition_keys": (Column(name="day", type="char(3)"), Column(name="k", type="string"))},
            "KEY_TYPE",
        ),
    ],
)
def test_a_table_that_is_another_now(sut: Metastores, changes: dict[str, object], code: str) -> None:
    """Keys, format, kind and columns are those that readers go by, as they are at that moment."""
    sut.policy.prepare(site(), SCHEMA)
    found = sut.tables.tables[NAME]
    found.table = replace(TABLE, **changes)
    with pytest.raises((MetastoreConflictError, SchemaError)) as caught:
        sut.policy.check([NEWS], site())
    assert caught.value.code == code


def test_a_table_without_partitions_that_has_moved(sut: Metastores) -> None:
    """Its readers would see nothing."""
    sut.tables.tables[NAME].table = replace(TABLE, partition_keys=(), location="file:/other")
    message = refused(sut, "OTHER_LOCATION", "")
    assert "'file:/other'" in message
    assert "'/base'" in message


@pytest.mark.parametrize("operation", ["get_table", "get_partitions"])
def test_a_metastore_that_is_away_stops_no_epoch(sut: Metastores, operation: str) -> None:
    """It is told when it is back: what may pass by itself is no reason to give up the work of the tasks."""
    sut.fail(operation, Moment.BEFORE, 1)
    sut.write(0, "day=1/k=a")
    assert set(sut.partitions) == {("1", "a")}


def test_what_is_refused_for_good_stops_the_epoch(sut: Metastores) -> None:
    """No permission to look is none to tell."""
    denied = MetastoreConflictError("no", code="METASTORE_REFUSED")
    sut.fault = lambda operation, _: (
        Fault(moment=Moment.BEFORE, error=denied) if operation == "get_partitions" else None
    )
    refused(sut, "METASTORE_REFUSED", "day=1/k=a")


def test_the_look_costs_two_requests_however_many_partitions(sut: Metastores) -> None:
    """And none in an epoch that announces nothing."""
    sut.write(0, *(f"day={day}/k=a" for day in range(300)))
    assert sut.calls == ["get_table", "get_partitions", "add_partitions"]
    sut.calls.clear()
    sut.world.driver().upkeep()
    assert sut.calls == []


@pytest.mark.parametrize("moment", ["looked", "added"])
def test_two_drivers_that_announce_one_partition_are_both_done(
    sut: Metastores, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands where it should when the slower one comes, whoever added it, and has its statistics."""
    ours = Partition(values=("1", "a"), location="file:///base/day=1/k=a")
    add: Callable[..., object] = type(sut.metastore).add_partitions

    def plan(operation: str, table: str) -> None:
        del table
        if operation == "add_partitions" and moment == "looked":
            sut.partitions["1", "a"] = ours

    sut.fault = plan
    if moment == "added":  # and its reply is lost
        lost = [MetastoreError("lost", code="METASTORE_UNKNOWN")]

        def added(*arguments: object) -> object:
            add(*arguments)
            if lost:
                raise lost.pop()
            return set()

        monkeypatch.setattr(type(sut.metastore), "add_partitions", added)
    sut.write(0, "day=1/k=a")
    assert sut.partitions["1", "a"].parameters["numFiles"] == "1"
    assert sut.world.ledger().head().complete
