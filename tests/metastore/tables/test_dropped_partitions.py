"""Partitions that retention has emptied go from the metastore: whoever dies, and whoever writes meanwhile."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from filesink.metastore.announcements import Announcement, AnnouncementCodec
from filesink.metastore.api import Metastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.operations.maintenance import Lost
from filesink.operations.replacing.refresh import Refresh
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.storage.faulty import Fault, Moment
from tests.fakes import World
from tests.metastore.tables.test_metastore_policy import Metastores

GOLDEN = Path(__file__).parents[2] / "golden"
KEEP_ONE = Retention(by="partition time", extractor="2026-01-$day", keep=1)
GRACE_MS = 3_600_000


def retain(world: World, *, grace_ms: int = 0) -> None:
    """Keep the newest day."""
    tiers = replace(world.tiers(), reader_grace_ms=grace_ms)
    Retain(tiers=tiers, retention=KEEP_ONE, base_path="/base").run(world.ports())


def written(*buckets: str) -> Metastores:
    """One file in each, announced."""
    sut = Metastores()
    sut.write(0, *(buckets or ("day=1/k=a", "day=2/k=a")))
    return sut


@pytest.mark.parametrize("grace_ms", [0, GRACE_MS])
def test_an_emptied_partition_goes(grace_ms: int) -> None:
    """Also if its files stay for readers of older versions; others stay as they are."""
    sut = written()
    before = sut.partitions["2", "a"]
    retain(sut.world, grace_ms=grace_ms)
    assert sut.partitions == {("2", "a"): before}
    assert any(path.startswith("day=1/") for path in sut.world.visible()) == bool(grace_ms)


def test_partitions_that_a_new_query_replaces_go() -> None:
    """The first batch of a full refresh announces those that it writes."""
    sut = written()
    Refresh(tiers=sut.world.tiers(), base_path="/base")(sut.world.ports(), lambda: None)
    assert sut.partitions == {}


def test_one_with_a_strangers_file_stays() -> None:
    """Its rows are read through the table."""
    sut = written()
    sut.world.files.make("day=1/k=a/theirs", b"theirs")
    retain(sut.world)
    assert sut.partitions["1", "a"].parameters["numFiles"] == "1"


def test_one_that_is_elsewhere_stays() -> None:
    """It is another directory's."""
    sut = written()
    theirs = replace(sut.partitions["1", "a"], location="file:/elsewhere")
    sut.partitions["1", "a"] = theirs
    retain(sut.world)
    assert sut.partitions["1", "a"] == theirs


def test_a_partition_comes_back_with_its_next_file() -> None:
    """As one that is new."""
    sut = written()
    retain(sut.world)
    sut.write(1, "day=1/k=a")
    assert sut.partitions["1", "a"].parameters["numRows"] == "1"


@pytest.mark.parametrize("moment", Moment)
def test_a_file_that_comes_meanwhile_is_not_forgotten(moment: Moment) -> None:
    """A stream publishes and finds the partition known, just before it is dropped or just after."""
    sut = written()

    def write(operation: str, _table: str) -> Fault | None:
        if operation == "drop_partitions":
            sut.fault = lambda _operation, _table: None
            if moment is Moment.BEFORE:
                sut.write(1, "day=1/k=a")
            else:
                sut.world.fault = late
        return None

    def late(_operation: str, _path: str) -> Fault | None:
        sut.world.fault = lambda _operation, _path: None
        sut.write(1, "day=1/k=a")
        return None

    sut.fault = write
    retain(sut.world)
    assert sut.partitions["1", "a"].parameters["numFiles"] == "1"
    assert sut.partitions["1", "a"].parameters["numRows"] in {"1", "-1"}


class Crash(BaseException):
    """The driver is gone."""


def test_a_file_that_comes_before_a_crash_is_not_forgotten() -> None:
    """The driver dies when the partition is dropped, and has not looked again: the next one does."""
    sut = written()

    def write(operation: str, _table: str) -> Fault | None:
        if operation != "drop_partitions":
            return None
        sut.fault = lambda _operation, _table: None
        sut.write(1, "day=1/k=a")
        return Fault(moment=Moment.AFTER, error=Crash())

    sut.fault = write
    with suppress(Crash):
        retain(sut.world)
    assert ("1", "a") not in sut.partitions
    sut.world.uid = None
    sut.world.maintenance().recover(Lost.RAISE, None)
    assert sut.partitions["1", "a"].parameters["numFiles"] == "1"


@pytest.mark.parametrize("comes", ["", "day=1/k=a"])
@pytest.mark.parametrize("moment", Moment)
def test_a_crash_at_any_call(moment: Moment, comes: str) -> None:
    """Of store or metastore, a stream writes afterwards or not: in the end the table has what has files."""
    for number in range(1, 400):
        sut, left = written(), [number]

        def fault(operation: str, path: str, left: list[int] = left) -> Fault | None:
            del operation, path
            left[0] -= 1
            return None if left[0] else Fault(moment=moment, error=Crash())

        sut.fault = sut.world.fault = fault
        with suppress(Crash):
            retain(sut.world)
        sut.fault = sut.world.fault = lambda _operation, _path: None
        if comes:
            sut.write(1, comes)
        sut.world.maintenance().recover(Lost.RAISE, None)
        sut.world.uid = None
        sut.world.maintenance().recover(Lost.RAISE, None)
        sut.world.uid = "u"
        visible = {path.rpartition("/")[0] for path in sut.world.visible()}
        assert {f"day={day}/k={k}" for day, k in sut.partitions} == visible
        if left[0] > 0:
            assert number > 25
            return
    pytest.fail("a retention needs more than 400 calls")


def test_a_metastore_that_cannot_drop_is_told_that_there_are_no_files() -> None:
    """As by an overwrite."""
    sut = written()
    sut.metastore.drop_partitions = Metastore.drop_partitions.__get__(sut.metastore)
    retain(sut.world)
    assert sut.partitions["1", "a"].parameters["numFiles"] == "0"


def test_policies_of_others_are_told() -> None:
    """``is_dropped`` says that it is more than an overwrite that has left nothing."""
    told: list[tuple[str, bool]] = []

    class Told(MetastorePolicy):
        def commit_all(self, partitions, site):
            told.extend((one.bucket, one.is_dropped) for one in partitions)
            return super().commit_all(partitions, site)

    sut = Metastores()
    sut.policy = Told("db.t", sut.metastore)
    sut.world = World(partition_commit=PartitionCommit(policies=[sut.policy]))
    driver = sut.world.driver()
    sut.write(0, "day=1/k=a", "day=2/k=a", driver=driver)
    retain(sut.world)
    assert told == [("day=1/k=a", False), ("day=2/k=a", False), ("day=1/k=a", True)]


def test_bytes_of_one_that_may_go() -> None:
    """Only such an announcement has the word; those of earlier releases are read as before."""
    goes = Announcement(bucket="day=1", first_seen_ms=1, slot=2, may_go=True)
    golden = (GOLDEN / "announcements-1-dropped.json").read_bytes()
    assert AnnouncementCodec().encode([goes]) == golden
    assert AnnouncementCodec().decode(1, golden) == [goes]
