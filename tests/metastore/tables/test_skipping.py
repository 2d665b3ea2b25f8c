"""``recover(announce="skip")``: the way out where a partition cannot be announced after *decide*."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from filesink.errors import (
    CommitFailedError,
    FilesinkError,
    MetastoreConflictError,
    MetastoreError,
    StateError,
)
from filesink.file_sink.report import RecoveryReport
from filesink.metastore.api import Partition
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy
from filesink.operations.maintenance import Announce, Lost
from filesink.storage.faulty import Fault
from tests.metastore.tables.test_metastore_policy import NAME, Metastores

DAYS = [f"day={day}/k=a" for day in range(9)]


@pytest.fixture
def sut() -> Metastores:
    """A sink and its metastore."""
    return Metastores()


def recover(sut: Metastores, announce: Announce, lost: Lost = Lost.RAISE) -> RecoveryReport:
    """As an operator does."""
    return sut.world.maintenance(announce).recover(lost, None)


def meanwhile(sut: Metastores, change: Callable[[], object]) -> None:
    """Have ``change`` done when the epoch is decided and its files are visible, and not announced."""

    def plan(operation: str, table: str) -> Fault | None:
        del operation, table
        if sut.world.visible():
            change()
        return None

    sut.fault = plan


def elsewhere(sut: Metastores, *days: str) -> Callable[[], None]:
    """Somebody registers these days at another location."""

    def change() -> None:
        for day in days:
            sut.partitions[day, "a"] = Partition(values=(day, "a"), location=f"file:/theirs/{day}")

    return change


def stuck(sut: Metastores, error: type[FilesinkError] = MetastoreConflictError) -> None:
    """An epoch of nine days is decided and visible, and neither it nor a recovery can announce all."""
    with pytest.raises(error):
        sut.write(0, *DAYS)
    assert len(sut.world.visible()) == len(DAYS)
    with pytest.raises(error):
        recover(sut, Announce.RAISE)
    assert not sut.world.ledger().head().complete


def test_partitions_at_another_location_are_skipped_and_named(sut: Metastores) -> None:
    """All others are announced; the chain goes on, and so does the query, without touching those."""
    meanwhile(sut, elsewhere(sut, "3", "7"))
    stuck(sut)
    report = recover(sut, Announce.SKIP)
    assert report.unannounced == ("day=3/k=a", "day=7/k=a")
    assert [one.epoch for one in report.published] == [0]
    assert {v[0] for v, one in sut.partitions.items() if "theirs" not in one.location} == set("0124568")
    assert sut.partitions["3", "a"].location == "file:/theirs/3"
    sut.write(1, "day=9/k=a")
    assert ("9", "a") in sut.partitions
    assert recover(sut, Announce.SKIP) == RecoveryReport()


def test_what_was_skipped_is_announced_with_its_next_files(sut: Metastores) -> None:
    """When the metastore was mended; all files in the directory count."""
    meanwhile(sut, elsewhere(sut, "3"))
    stuck(sut)
    recover(sut, Announce.SKIP)
    sut.fault = lambda _operation, _table: None
    del sut.partitions["3", "a"]
    sut.write(1, "day=3/k=a")
    assert sut.partitions["3", "a"].parameters["numFiles"] == "2"


def test_a_table_that_is_gone_is_skipped_whole(sut: Metastores) -> None:
    """Nothing can be announced: every partition is named."""
    meanwhile(sut, lambda: sut.tables.tables.pop(NAME, None))
    stuck(sut)
    assert list(recover(sut, Announce.SKIP).unannounced) == DAYS
    assert sut.world.ledger().head().complete


def test_a_metastore_that_is_away_is_skipped_without_waiting(sut: Metastores) -> None:
    """Who says skip does not want ten retries."""

    def plan(operation: str, table: str) -> Fault | None:
        del operation, table
        raise MetastoreError("away", code="METASTORE_DOWN")

    sut.fault = plan
    stuck(sut, CommitFailedError)
    sut.world.clock.slept.clear()
    assert list(recover(sut, Announce.SKIP).unannounced) == DAYS
    assert sut.world.clock.slept == []


def test_a_policy_of_the_users_own_that_fails_is_skipped(sut: Metastores) -> None:
    """For the partition that it fails at; the others are announced by all policies."""
    told = []

    def listen(event) -> None:
        if event.bucket == "day=5/k=a":
            raise ValueError("a bug")
        told.append(event.bucket)

    sut.world.partition_commit = PartitionCommit(policies=[ListenerPolicy(listen), sut.policy])
    stuck(sut, CommitFailedError)
    assert recover(sut, Announce.SKIP).unannounced == ("day=5/k=a",)
    assert set(told) == set(DAYS) - {"day=5/k=a"}
    assert set(sut.partitions) == {(str(day), "a") for day in (0, 1, 2, 3, 4, 6, 7, 8)}


def test_a_sink_without_partition_commit_skips_all(sut: Metastores) -> None:
    """As when announcing was given up: what was decided is named, and the chain goes on."""
    meanwhile(sut, elsewhere(sut, "3"))
    stuck(sut)
    sut.world.partition_commit = None
    with pytest.raises(StateError):
        recover(sut, Announce.RAISE)
    assert list(recover(sut, Announce.SKIP).unannounced) == DAYS
    sut.write(1, "day=1/k=a")


def test_bytes_that_are_gone_and_partitions_elsewhere_are_given_up_together(sut: Metastores) -> None:
    """Both ways out in one call."""
    meanwhile(sut, elsewhere(sut, "3"))
    stuck(sut)
    gone = next(path for path in sut.world.visible() if path.startswith("day=1/"))
    del sut.world.files.files[gone]
    report = recover(sut, Announce.SKIP, Lost.ACCEPT)
    assert (report.unannounced, report.lost_rows) == (("day=3/k=a",), 1)


def test_a_partition_that_waits_and_cannot_be_announced_waits_no_more(sut: Metastores) -> None:
    """It would refuse each epoch from the one in which it is due; others that wait are kept."""
    sut.world.partition_commit = PartitionCommit(policies=[sut.policy], delay=1000)
    sut.write(0, *DAYS)
    elsewhere(sut, "3", "7")()
    sut.world.clock.now = 5000
    with pytest.raises(MetastoreConflictError):
        sut.write(1, "day=9/k=a")
    assert recover(sut, Announce.RAISE) == RecoveryReport()
    assert recover(sut, Announce.SKIP).unannounced == ("day=3/k=a", "day=7/k=a")
    sut.write(1, "day=9/k=a")
    assert {v[0] for v, one in sut.partitions.items() if "theirs" not in one.location} == set("0124568")
