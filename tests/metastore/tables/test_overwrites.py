"""What a metastore is told of an overwrite: partitions that lost all their files have none, and stay."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from filesink.ledger.identity import batch_write
from filesink.metastore.api import Partition
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import CommittedPartition, ListenerPolicy, SuccessFilePolicy
from filesink.metastore.statistics import statistics
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFiles, MemoryStore
from tests.fakes import World, records
from tests.metastore.tables.test_metastore_policy import NAME, TABLE, Metastores

GONE = {"numFiles": "0", "totalSize": "0", "numRows": "0"}


@pytest.fixture
def sut() -> Metastores:
    """A sink and its metastore."""
    return Metastores()


def overwrite(world: World, *buckets: str, mode: SaveMode = SaveMode.OVERWRITE, txn_id: str = "") -> None:
    """A batch write of one row in each bucket, by a driver that starts now."""
    sink_id, cause = batch_write(mode, world.uid, txn_id, world.ids)
    world.driver(sink_id).run(cause, world.job([records("new", bucket=bucket) for bucket in buckets]))


def test_an_emptied_partition_stays_and_has_nothing(sut: Metastores) -> None:
    """Its statistics are those of no file; what else is said of it stays, and so does its location."""
    sut.write(0, "day=1/k=a", "day=2/k=a")
    theirs = sut.partitions["1", "a"]
    sut.partitions["1", "a"] = replace(theirs, parameters={**theirs.parameters, "mine": "1"})
    overwrite(sut.world, "day=2/k=a")
    assert sut.partitions["1", "a"] == replace(theirs, parameters={**GONE, "mine": "1"})
    assert sut.partitions["2", "a"].parameters["numRows"] == "1"


def test_partitions_without_data_are_not_touched_by_dynamic_overwrite(sut: Metastores) -> None:
    """Neither their files nor what the metastore says of them."""
    sut.write(0, "day=1/k=a", "day=2/k=a")
    before = sut.partitions["1", "a"]
    overwrite(sut.world, "day=2/k=a", mode=SaveMode.OVERWRITE_PARTITIONS)
    assert sut.partitions["1", "a"] == before


def test_a_table_without_partitions_may_lose_everything(sut: Metastores) -> None:
    """An overwrite with no rows: the table has no files, and says so."""
    sut.tables.tables[NAME].table = replace(TABLE, partition_keys=())
    sut.write(0, "")
    overwrite(sut.world)
    assert sut.tables.tables[NAME].table.parameters == GONE


def test_what_is_no_partition_is_replaced_and_not_told(sut: Metastores) -> None:
    """Directories of others lose their files in an overwrite of everything; no table has them."""
    theirs = Partition(values=("8", "a"), location="file:/elsewhere", parameters={"numFiles": "7"})
    sut.partitions["8", "a"] = theirs
    for bucket in ("export", "day=1", "x/day=1/k=a", "day=8/k=a", "day=9/k=z"):
        sut.world.files.make(f"{bucket}/file", b"theirs")
    overwrite(sut.world, "day=2/k=a")
    assert set(sut.partitions) == {("2", "a"), ("8", "a")}
    assert sut.partitions["8", "a"] == theirs


def test_files_win_where_two_directories_mean_one_partition(sut: Metastores) -> None:
    """The order of the columns was changed: the emptied directory does not stand for the new one."""
    sut.world.files.make("k=a/day=1/file", b"theirs")
    overwrite(sut.world, "day=1/k=a")
    assert sut.partitions["1", "a"].location == "file:/base/day=1/k=a"


def test_listeners_hear_of_it_and_success_files_do_not() -> None:
    """No files and no rows; nothing new is whole."""
    told: list[CommittedPartition] = []
    world = World(
        partition_commit=PartitionCommit(policies=[SuccessFilePolicy(), ListenerPolicy(told.append)])
    )
    world.files.make("day=1/file", b"theirs")
    overwrite(world, "day=2")
    assert [(one.bucket, one.file_count, one.rows, one.files[1:]) for one in told] == [
        ("day=1", 0, 0, ()),
        ("day=2", 1, 1, ()),
    ]
    assert [path for path in world.contents() if path.endswith("_SUCCESS")] == ["day=2/_SUCCESS"]


OURS = CommittedPartition(
    bucket="d",
    values={},
    location="file:/base/d",
    epoch=0,
    files=("d/ours",),
    file_count=1,
    rows=5,
    bytes=5,
    may_be_repeated=False,
)


@pytest.mark.parametrize(
    ("known", "rows"),
    [
        ({}, "-1"),
        ({"numFiles": "1", "totalSize": "3", "numRows": "10"}, "15"),  # was there, and ours came
        ({"numFiles": "2", "totalSize": "8", "numRows": "15"}, None),  # ours was counted
        ({"numFiles": "2", "totalSize": "8", "numRows": "-1"}, None),
        ({"numFiles": "1", "totalSize": "2", "numRows": "10"}, "-1"),  # another file was there
        ({"numFiles": "2", "totalSize": "7", "numRows": "10"}, "-1"),
        ({"numFiles": "1", "totalSize": "3", "numRows": "x"}, "-1"),
    ],
)
def test_rows_are_known_only_if_files_and_bytes_add_up(known: dict[str, str], rows: str | None) -> None:
    """A file of 5 rows and 5 bytes beside one of 3 bytes: are its rows known?"""
    files = MemoryFiles()
    files.make("d/ours", b"12345")
    files.make("d/other", b"123")
    told = statistics(OURS, MemoryStore(files), known)
    assert told == ({} if rows is None else {"numFiles": "2", "totalSize": "8", "numRows": rows})


def test_statistics_of_columns_end_with_the_values_they_were_made_of() -> None:
    """An overwrite by as many files, rows and bytes leaves the other statistics as they are."""
    files = MemoryFiles()
    files.make("d/ours", b"12345")
    known = statistics(OURS, MemoryStore(files), {})
    accurate = {**known, "COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"a":"true"}}'}
    assert statistics(OURS, MemoryStore(files), accurate)["COLUMN_STATS_ACCURATE"] == "{}"
    assert statistics(OURS, MemoryStore(files), {**known, "COLUMN_STATS_ACCURATE": "{}"}) == {}


class Crash(BaseException):
    """The driver is gone."""


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("mode", list(SaveMode))
def test_a_crash_at_any_call_is_told_all_the_same(mode: SaveMode, moment: Moment) -> None:
    """Of store or metastore: no partition without files; repeated, the table knows each, with its numbers."""
    old = ("day=1/k=a", "day=2/k=a") if "overwrite" in mode.value else ()
    for number in range(1, 300):
        sut, left = Metastores(), [number]
        if old:
            sut.write(0, *old)

        def fault(operation: str, path: str, left: list[int] = left) -> Fault | None:
            del operation, path
            left[0] -= 1
            return None if left[0] else Fault(moment=moment, error=Crash())

        sut.fault = sut.world.fault = fault
        with suppress(Crash):
            overwrite(sut.world, "day=2/k=a", "day=3/k=a", mode=mode, txn_id="t")
        sut.fault = sut.world.fault = lambda _operation, _path: None
        assert directories(sut) >= {f"day={day}/k={k}" for day, k in sut.partitions} - set(old)
        overwrite(sut.world, "day=2/k=a", "day=3/k=a", mode=mode, txn_id="t")
        told = {f"day={day}/k={k}": one.parameters["numFiles"] for (day, k), one in sut.partitions.items()}
        emptied = {"day=1/k=a": "0"} if mode is SaveMode.OVERWRITE else {}
        assert told == {**dict.fromkeys(directories(sut), "1"), **emptied}
        if left[0] > 0:
            assert number > 25
            return
    pytest.fail("a write needs more than 300 calls")


def directories(sut: Metastores) -> set[str]:
    """Those with files that readers see."""
    return {path.rpartition("/")[0] for path in sut.world.visible()}
