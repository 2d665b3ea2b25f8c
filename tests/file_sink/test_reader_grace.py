"""What an overwrite replaces, and keeps for readers who hold a snapshot: for how long, and who removes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import filesink
from compaction.offline.finished import FinishedTiers
from compaction.offline.superseded import current
from filesink.errors import (
    CommitFailedError,
    ConcurrentDriverError,
    RepeatedTxnError,
    StagedDataLost,
    StateError,
    StorageError,
)
from filesink.file_sink.report import report_of
from filesink.inventory.adoption.adopt import Adoption
from filesink.inventory.chains import left_files
from filesink.ledger.identity import EXCLUSIVE, batch_write, superseding
from filesink.operations.fsck.check import Check
from filesink.operations.maintenance import Lost
from filesink.parts.file_format import BulkFormat
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.sink_directory.site import Site
from filesink.sink_directory.status import status_of
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFile
from filesink.storage.open import open_store
from formats import ParquetWriterFactory
from tests.fakes import SettableClock, World, micro_batch, plan_of, records

NOW = 1_700_000_000_000
GRACE = 3_600_000
TEN_MINUTES = 600_000


class Crash(BaseException):
    """The driver is gone."""


@pytest.fixture
def world():
    """Rows ``a`` and ``b`` in two buckets, below a base path whose overwrites have a grace."""
    world = World(reader_grace_ms=GRACE, clock=SettableClock(NOW))
    write(world, "append", "a", bucket="a")
    write(world, "append", "b", bucket="b")
    return world


def write(world, mode, *values, bucket="", txn_id=""):
    """A batch write of a driver that starts now."""
    sink_id, cause = batch_write(SaveMode(mode), world.uid, txn_id, world.ids)
    return world.driver(sink_id).run(cause, world.job(records(*values, bucket=bucket)))


def site(world):
    """What ``filesink.open`` would look at."""
    return Site(base_path="/base", store=world.store(), clock=world.clock)


def rows_at(world, version=None):
    """The rows of a snapshot; ``KeyError`` if a file of it is gone."""
    paths = site(world).snapshots().files_at(version).rows["path"].to_pylist()
    return sorted(line for path in paths for line in world.contents()[path].decode().splitlines())


def waiting(world):
    """Paths that are kept, by the ledger."""
    return sorted(file.path for file in left_files(world.ledger(EXCLUSIVE)))


def in_bucket(world, bucket):
    """Visible files of a bucket."""
    return sorted(path for path in world.visible() if path.rpartition("/")[0] == bucket)


def pass_grace(world):
    """Just when it is over."""
    world.clock.now += GRACE


# --- who sees what


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_the_version_before_can_be_read_for_the_grace(world, mode):
    """Who reads by versions sees each row once; who lists sees both, until the time is over."""
    (old,) = in_bucket(world, "a")
    write(world, mode, "new", bucket="a")
    rest = [] if mode == "overwrite" else ["b"]
    assert rows_at(world) == sorted(["new", *rest])
    assert rows_at(world, 2) == ["a", "b"]
    assert old in world.visible()
    assert "new" in world.rows()
    world.clock.now += GRACE - 1
    write(world, "append", "later", bucket="c")
    assert rows_at(world, 2) == ["a", "b"]
    world.clock.now += TEN_MINUTES
    write(world, "append", "more", bucket="c")
    assert old not in world.visible()
    assert rows_at(world) == sorted(["new", "later", "more", *rest])
    with pytest.raises(KeyError):
        rows_at(world, 2)


def test_without_a_grace_nothing_is_kept(world):
    """As ever: old files go with the epoch that replaces them."""
    world.reader_grace_ms = 0
    outcome = write(world, "overwrite", "new")
    assert world.rows() == ["new"]
    assert (list(outcome.left), list(outcome.kept)) == ([], [])
    assert b"grace_ms" not in world.files.files[f"_filesink/{EXCLUSIVE}/000000000000.record"].content


def test_the_time_begins_when_the_new_version_is_there(world):
    """However long the tasks and the publication take, a reader who began just before has the whole grace."""

    def slowly(operation, _path):
        world.clock.now += 2 * GRACE if operation == "publish" else 0

    world.fault = slowly
    outcome = write(world, "overwrite", "new")
    world.fault = lambda _operation, _path: None
    assert {file.until_ms - world.clock.now for file in outcome.kept} == {GRACE}
    assert rows_at(world, 2) == ["a", "b"]


def test_a_driver_that_carries_the_epoch_through_gives_the_whole_time(world):
    """Days may have passed since it was decided: only then does the new version come."""
    died = []

    def die(operation, _path):
        if operation == "publish" and not died:
            died.append(operation)
            return Fault(moment=Moment.BEFORE, error=Crash())
        return None

    world.fault = die
    with pytest.raises(Crash):
        write(world, "overwrite", "new")
    world.clock.now += 100 * GRACE
    world.maintenance().recover(Lost.RAISE, None)
    assert rows_at(world) == ["new"]
    assert rows_at(world, 2) == ["a", "b"]
    world.clock.now += GRACE
    world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == ["new"]


def test_a_report_says_what_is_kept_and_until_when(world):
    """Not as removed, and not as what could not be."""
    outcome = write(world, "overwrite", "new")
    report = report_of(outcome)
    assert (len(report.kept), list(report.replaced), list(report.not_removed)) == (2, [], [])
    assert not outcome.newly_left
    assert report.kept_until is not None
    assert report.kept_until.timestamp() * 1000 == world.clock.now + GRACE
    assert f"2 replaced files kept until {report.kept_until:%Y-%m-%d}" in report.line()
    pass_grace(world)
    second = report_of(write(world, "overwrite", "newer"))
    assert (len(second.replaced), len(second.kept)) == (2, 1)


def test_waiting_is_neither_tried_nor_waited_for_nor_told(world, caplog):
    """No removal is asked for, no pause is made, and the log has no warning."""
    calls = []
    world.fault = lambda operation, path: calls.append((operation, path))
    before = world.clock.now
    write(world, "overwrite", "new")
    assert "delete_if_unchanged" not in {operation for operation, _ in calls}
    assert world.clock.now == before
    assert not caplog.records


def test_a_snapshot_is_read_until_the_file_goes_and_then_says_so(tmp_path):
    """With the public face, from a real directory."""
    world = World(
        plan=plan_of(BulkFormat(ParquetWriterFactory())),
        open_store=lambda: open_store(str(tmp_path), {}),
        clock=SettableClock(NOW),
        reader_grace_ms=GRACE,
    )
    write(world, "append", "old")
    before = filesink.open(tmp_path).snapshot()
    write(world, "overwrite", "new")
    assert filesink.open(tmp_path).snapshot().dataset().count_rows() == 1
    for snapshot in (before, filesink.open(tmp_path).snapshot(1)):
        assert snapshot.dataset().to_table().num_rows == 1
    pass_grace(world)
    write(world, "append", "more")
    with pytest.raises(StorageError, match="Read version 3") as raised:
        before.dataset().to_table()
    assert raised.value.code == "SNAPSHOT_GONE"


# --- later writes


def test_a_second_overwrite_neither_ends_nor_prolongs_the_time(world):
    """Whatever its own grace is: the snapshot is that of the version before the first one."""
    write(world, "overwrite", "new")
    first = {file.path: file.until_ms for file in left_files(world.ledger(EXCLUSIVE))}
    world.clock.now += GRACE // 2
    for grace in (0, 10 * GRACE):
        world.reader_grace_ms = grace
        write(world, "overwrite", f"with {grace}")
        times = {file.path: file.until_ms for file in left_files(world.ledger(EXCLUSIVE))}
        assert {path: times[path] for path in first} == first
        assert rows_at(world, 2) == ["a", "b"]
    world.reader_grace_ms = 0
    world.clock.now += GRACE // 2
    write(world, "overwrite", "last")
    assert {"a", "b", "new"}.isdisjoint(world.rows())
    assert rows_at(world) == ["last"]


def test_what_was_put_in_the_place_of_a_kept_file_is_replaced_by_itself(world):
    """It is another file, with a time of its own; the record of the old one stands beside it."""
    write(world, "overwrite_partitions", "new", bucket="a")
    (old,) = waiting(world)
    world.files.files[old] = MemoryFile(inode=-1, mtime_ms=0, content=b"edited\n")
    write(world, "overwrite_partitions", "newer", bucket="a")
    assert "edited" in world.rows()
    pass_grace(world)
    write(world, "overwrite_partitions", "newest", bucket="a")
    assert "edited" not in world.rows()


def test_a_removal_that_fails_when_it_is_due_is_told_once(world):
    """By the first write that meets it, as without a grace; waiting before was no failure."""
    write(world, "overwrite", "new")
    pass_grace(world)
    stuck = StorageError("not permitted", code="PERMISSION")
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=stuck) if operation == "delete_if_unchanged" else None
    )
    first = write(world, "overwrite_partitions", "x", bucket="x")
    second = write(world, "overwrite_partitions", "y", bucket="y")
    assert (len(first.left), len(first.newly_left)) == (2, 2)
    assert (len(second.left), len(second.newly_left)) == (2, 0)


def test_overwrites_of_other_partitions_run_beside_each_other(world):
    """What earlier writes keep there is nobody's: it is no conflict, in either of them."""
    write(world, "overwrite_partitions", "a2", bucket="a")
    write(world, "overwrite_partitions", "b2", bucket="b")
    begun = []

    def beside(operation, path):
        if operation == "put_if_absent" and path.endswith(".record") and not begun:
            begun.append(path)
            write(world, "overwrite_partitions", "b3", bucket="b")

    world.fault = beside
    write(world, "overwrite_partitions", "a3", bucket="a")
    assert rows_at(world) == ["a3", "b3"]
    assert len(waiting(world)) == 4
    assert len(set(waiting(world))) == 4
    begun.clear()

    def same(operation, path):
        if operation == "put_if_absent" and path.endswith(".record") and not begun:
            begun.append(path)
            write(world, "overwrite_partitions", "a4", bucket="a")

    world.fault = same
    with pytest.raises(ConcurrentDriverError):
        write(world, "overwrite_partitions", "a5", bucket="a")


def test_kept_files_are_no_data(world):
    """A write that wants to be the first may come after an overwrite without rows."""
    write(world, "overwrite")
    assert len(world.visible()) == 2
    write(world, "error_if_data_exists", "first")
    assert rows_at(world) == ["first"]


def test_a_write_that_was_overwritten_cannot_be_replaced_while_its_files_are_kept(world):
    """They are there, and no version has them: replacing them would bring its rows beside others."""
    first = write(world, "append", "1", bucket="a", txn_id="t")
    record = world.ledger("appends-u").read(first.slot)
    write(world, "overwrite", "all")
    _, cause = batch_write(SaveMode.APPEND, world.uid, "t", world.ids)
    sink_id, cause = superseding(cause, record.nonce, world.ids)
    with pytest.raises(RepeatedTxnError) as raised:
        world.driver(sink_id).run(cause, world.job(records("2", bucket="a")))
    assert raised.value.code == "FILES_GONE"


def test_a_write_that_was_merged_cannot_be_replaced_while_its_files_stay(world):
    """They are there for readers of ``compaction.files``, and the merged file has their rows, too."""
    write(world, "append", "1", bucket="a", txn_id="t")
    (record,) = [one for one in world.ledger("appends-u").history.newest_first() if one.cause.txn_id == "t"]
    compact(world, GRACE)
    _, cause = batch_write(SaveMode.APPEND, world.uid, "t", world.ids)
    sink_id, cause = superseding(cause, record.nonce, world.ids)
    with pytest.raises(RepeatedTxnError) as raised:
        world.driver(sink_id).run(cause, world.job(records("2", bucket="a")))
    assert raised.value.code == "FILES_GONE"
    assert rows_at(world) == ["1", "a", "b"]


def test_what_a_replaced_write_had_is_kept_as_well(world):
    """``on_repeated_txn="replace"`` is an overwrite of its files."""
    first = write(world, "append", "1", bucket="a", txn_id="t")
    record = world.ledger("appends-u").read(first.slot)
    _, cause = batch_write(SaveMode.APPEND, world.uid, "t", world.ids)
    sink_id, cause = superseding(cause, record.nonce, world.ids)
    world.driver(sink_id).run(cause, world.job(records("2", bucket="a")))
    assert rows_at(world) == ["2", "a", "b"]
    assert rows_at(world, 3) == ["1", "a", "b"]
    assert len(waiting(world)) == 1


# --- who removes


@pytest.mark.parametrize("who", ["append", "stream", "sweep", "recover", "overwrite"])
def test_whoever_comes_next_removes_what_is_due(world, who):
    """No later overwrite has to come; the one that does finds nothing left to do."""
    write(world, "overwrite_partitions", "new", bucket="a")
    (old,) = waiting(world)
    doing = {
        "append": lambda: write(world, "append", "x", bucket="x"),
        "stream": lambda: world.driver().run(micro_batch(0), world.job(records("x", bucket="x"))),
        "sweep": lambda: world.maintenance().sweep(GRACE),
        "recover": lambda: world.maintenance().recover(Lost.RAISE, None),
        "overwrite": lambda: write(world, "overwrite_partitions", "x", bucket="x"),
    }[who]
    world.clock.now += GRACE - 1
    plan = world.maintenance().plan_sweep(GRACE)
    assert old not in [file.path for file in plan.files]
    assert old in world.visible()
    world.clock.now += 1
    assert [file.path for file in world.maintenance().plan_sweep(GRACE).files] == [old]
    assert [file.path for file in world.maintenance().plan_recover().garbage.files] == [old]
    doing()
    assert old not in world.visible()
    write(world, "overwrite_partitions", "y", bucket="y")
    assert waiting(world) == []


def test_a_stream_looks_again_and_again(world):
    """It runs for weeks; an overwrite comes in between, and its files go though nobody else writes."""
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("0", bucket="s")))
    write(world, "overwrite_partitions", "new", bucket="a")
    (old,) = waiting(world)
    for number, hours in enumerate((0.5, 0.4, 0.3), 1):
        driver.run(micro_batch(number), world.job(records(str(number), bucket="s")))
        assert old in world.visible()
        world.clock.now += int(hours * GRACE)
    driver.run(micro_batch(4), world.job(records("4", bucket="s")))
    assert old not in world.visible()
    calls = []
    world.fault = lambda operation, path: calls.append((operation, path))
    for number in range(5, 8):
        world.clock.now += TEN_MINUTES
        driver.run(micro_batch(number), world.job(records(str(number), bucket="s")))
    assert not [path for operation, path in calls if operation == "read" and f"/{EXCLUSIVE}/" in path]


def test_damage_in_the_chain_of_overwrites_does_not_stop_a_stream(world, caplog):
    """It is told in the log, as what it is."""
    write(world, "overwrite_partitions", "new", bucket="a")
    pass_grace(world)
    world.files.files[f"_filesink/{EXCLUSIVE}/000000000000.complete"].content = b"x"
    world.driver().run(micro_batch(0), world.job(records("x", bucket="x")))
    assert "x" in world.rows()
    assert "could not be looked at" in caplog.text


def test_a_clock_that_was_far_ahead_keeps_nothing_for_ever(world):
    """Whoever wrote then dated what it kept years from now."""
    world.clock.now += 10_000 * GRACE
    write(world, "overwrite", "new")
    world.clock.now -= 10_000 * GRACE
    write(world, "append", "x", bucket="x")
    assert world.rows() == ["new", "x"]


# --- crashes


@pytest.mark.parametrize("moment", Moment)
def test_a_crash_at_any_call_keeps_what_it_should(moment):
    """Nothing goes early, nothing comes back, and in the end nothing stays."""
    for number in range(1, 200):
        world = World(reader_grace_ms=GRACE, clock=SettableClock(NOW))
        write(world, "append", "old")
        left = [number]

        def fault(_operation, _path, left=left):
            left[0] -= 1
            return None if left[0] else Fault(moment=moment, error=Crash())

        world.fault = fault
        try:
            write(world, "overwrite", "new", txn_id="t")
        except Crash:
            assert rows_at(world) in (["old"], ["new"])
        world.fault = lambda _operation, _path: None
        write(world, "overwrite", "new", txn_id="t")
        assert rows_at(world) == ["new"]
        assert rows_at(world, 1) == ["old"]
        assert world.rows() == ["new", "old"]
        pass_grace(world)
        write(world, "append", "x")
        assert world.rows() == ["new", "x"]
        if left[0] > 0:
            assert number > 15
            return
    pytest.fail("it never comes to its end")


def lost_overwrite(world):
    """An overwrite is decided and its bytes are lost, while an earlier one keeps files; returns those."""
    write(world, "overwrite_partitions", "new", bucket="a")
    kept = waiting(world)

    def die(operation, _path):
        return Fault(moment=Moment.BEFORE, error=Crash()) if operation == "publish" else None

    world.fault = die
    with pytest.raises(Crash):
        write(world, "overwrite", "lost")
    world.fault = lambda _operation, _path: None
    for path in world.hidden():
        del world.files.files[path]
    return kept


def test_an_overwrite_is_taken_back_though_what_it_took_over_is_gone(world):
    """Those rows were replaced before; what it was to replace itself is there and stays."""
    (old,) = lost_overwrite(world)
    pass_grace(world)
    with pytest.raises(StagedDataLost):
        world.maintenance().recover(Lost.RAISE, None)
    world.driver().run(micro_batch(0), world.job(records("x", bucket="x")))
    assert old not in world.visible()
    assert len(world.maintenance().recover(Lost.REWRITE, None).retracted) == 1
    assert rows_at(world) == ["b", "new", "x"]
    assert waiting(world) == []


def test_giving_up_an_overwrite_leaves_what_it_took_over_to_its_time(world):
    """Its own files stay, for they are replaced by nothing; rows that were replaced before do not return."""
    (old,) = lost_overwrite(world)
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 1
    assert waiting(world) == [old]
    assert rows_at(world) == ["b", "new"]
    pass_grace(world)
    write(world, "append", "x", bucket="x")
    assert old not in world.visible()
    assert world.rows() == ["b", "new", "x"]


def test_a_stuck_publication_is_no_reason_to_forget(world):
    """An epoch that fails and is tried again names what it took over, with its time."""
    write(world, "overwrite_partitions", "new", bucket="a")
    before = left_files(world.ledger(EXCLUSIVE))
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, _path: busy if operation == "publish" else None
    with pytest.raises(CommitFailedError):
        write(world, "overwrite_partitions", "x", bucket="b")
    assert left_files(world.ledger(EXCLUSIVE)) == before
    world.fault = lambda _operation, _path: None
    write(world, "append", "y", bucket="y")
    assert rows_at(world, 2) == ["a", "b"]
    world.maintenance().recover(Lost.RAISE, None)
    assert set(before) <= set(left_files(world.ledger(EXCLUSIVE)))


# --- those who list


def compact(world, grace_ms=0):
    """Offline compaction by the clock of the test."""
    tiers = FinishedTiers(
        address=world.store, plan=world.plan, bucket=None, target_size=1 << 20, grace_ms=grace_ms
    )
    return tiers.compact(Ports(clock=world.clock, ids=world.ids, runner=SerialRunner()))


@pytest.mark.parametrize("merge_grace_ms", [0, GRACE // 2])
def test_compaction_merges_nothing_that_is_kept(world, merge_grace_ms):
    """Its rows would be back, in a file of their own. What is due goes with the merge."""
    write(world, "overwrite_partitions", "new", bucket="a")
    write(world, "append", "more", bucket="a")
    (old,) = waiting(world)
    compact(world, merge_grace_ms)
    assert old in world.visible()
    assert rows_at(world) == ["b", "more", "new"]
    assert rows_at(world, 2) == ["a", "b"]
    data = world.visible()
    read = [line for path in current(world.store(), None) for line in data[path].decode().splitlines()]
    assert sorted(read) == ["b", "more", "new"]
    pass_grace(world)
    write(world, "append", "last", bucket="a")
    compact(world)
    assert world.rows() == ["b", "last", "more", "new"]


def test_an_overwrite_of_merged_files_keeps_what_readers_of_versions_need(world):
    """Inputs of the merge go with its own grace, as they did; the merged file with that of the overwrite."""
    write(world, "append", "a2", bucket="a")
    compact(world, GRACE // 2)
    write(world, "overwrite", "new")
    world.clock.now += GRACE // 2
    compact(world)
    assert rows_at(world, 4) == ["a", "a2", "b"]
    assert rows_at(world) == ["new"]
    pass_grace(world)
    write(world, "append", "x")
    assert world.rows() == ["new", "x"]


def test_adoption_brings_nothing_back(world):
    """Neither what a complete epoch keeps, nor what one keeps that has its version and is not complete."""
    write(world, "overwrite_partitions", "new", bucket="a")
    Adoption(world.store(), clock=world.clock, ids=world.ids).run()
    assert rows_at(world) == ["b", "new"]

    def die(operation, path):
        is_end = operation == "put_if_absent" and path.endswith("000000000001.complete")
        return Fault(moment=Moment.BEFORE, error=Crash()) if is_end else None

    world.fault = die
    with pytest.raises(Crash):
        write(world, "overwrite", "newest")
    world.fault = lambda _operation, _path: None
    assert rows_at(world) == ["newest"]
    Adoption(world.store(), clock=world.clock, ids=world.ids).run()
    assert rows_at(world) == ["newest"]
    world.maintenance().recover(Lost.RAISE, None)
    assert rows_at(world) == ["newest"]


def test_adoption_without_an_inventory_does_neither(world):
    """Only the ledger tells what is kept, be the newest epoch complete or not."""
    write(world, "overwrite_partitions", "new", bucket="a")
    world.forget_inventory()

    def die(operation, _path):
        return Fault(moment=Moment.BEFORE, error=Crash()) if operation == "publish" else None

    world.fault = die
    with pytest.raises(Crash):
        write(world, "overwrite_partitions", "b2", bucket="b")
    world.fault = lambda _operation, _path: None
    with pytest.raises(StateError, match="decided and not complete"):
        Adoption(world.store(), clock=world.clock, ids=world.ids).run()
    world.maintenance().recover(Lost.RAISE, None)
    Adoption(world.store(), clock=world.clock, ids=world.ids).run()
    assert rows_at(world) == ["b2", "new"]


def test_status_says_what_is_kept_and_until_when(world):
    """As long as it is; what is due is none of it."""
    write(world, "overwrite", "new")
    found = status_of(site(world), 1)
    assert (found.files, found.kept_files, found.kept_bytes) == (1, 2, 4)
    assert found.kept_until is not None
    assert found.kept_until.timestamp() * 1000 == world.clock.now + GRACE
    pass_grace(world)
    found = status_of(site(world), 1)
    assert (found.kept_files, found.kept_bytes, found.kept_until) == (0, 0, None)


def test_fsck_finds_nothing_wrong_with_what_is_kept(world):
    """A note when the time is over and nobody has come; nothing when somebody has."""

    def codes():
        check = Check(store=world.store(), clock=world.clock, progress=lambda *_: None)
        return [finding.code for finding in check.run("/base", "quick").findings]

    write(world, "overwrite", "new")
    assert codes() == []
    pass_grace(world)
    assert codes() == ["FILE_LEFT", "FILE_LEFT"]
    world.maintenance().sweep(GRACE)
    assert codes() == []


def test_a_power_cut_that_gives_a_kept_file_back_gives_nothing_back(world):
    """The next overwrite still has it on its list."""
    write(world, "overwrite_partitions", "new", bucket="a")
    (old,) = waiting(world)
    file = replace(world.files.files[old])
    pass_grace(world)
    write(world, "append", "x", bucket="x")
    assert old not in world.visible()
    world.files.files[old] = file
    compact(world)
    assert rows_at(world) == ["b", "new", "x"]
    write(world, "overwrite_partitions", "y", bucket="y")
    assert old not in world.visible()
