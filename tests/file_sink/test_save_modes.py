"""Batch writes that replace what is there, or refuse to: what goes, what stays, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.commit.publisher import Decider, Publisher
from filesink.errors import (
    CommitFailedError,
    CommitStateUnknown,
    ConcurrentDriverError,
    ConfigError,
    IdentityError,
    RepeatedTxnError,
    SecurityError,
    StateCorruptError,
    StateError,
    StorageError,
)
from filesink.file_sink.report import report_of
from filesink.ledger.identity import EXCLUSIVE, batch_write, superseding, txn_name
from filesink.ledger.record import BatchWrite, Section
from filesink.ledger.transactions import find_write
from filesink.operations.maintenance import Lost
from filesink.parts.committables import DiscardFile, ReplacedFile
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.file_format import BulkFormat
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFile
from filesink.storage.open import open_store
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from formats import ParquetWriterFactory
from formats.encoders import Encoder
from tests.fakes import World, keep_open, micro_batch, plan_of, records
from tests.storage.fake_objects import FakeObjects

DAY_MS = 24 * 3600 * 1000
BUSY = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))


class Crash(BaseException):
    """The driver is gone."""


@pytest.fixture
def world():
    """A base path with nothing in it."""
    return World()


def write(world, mode, *values, bucket="", txn_id=""):
    """A batch write of a driver that starts now."""
    return write_all(world, mode, records(*values, bucket=bucket), txn_id=txn_id)


def write_all(world, mode, *partitions, txn_id=""):
    """The same, of any number of partitions."""
    sink_id, cause = batch_write(SaveMode(mode), world.uid, txn_id, world.ids)
    return world.driver(sink_id).run(cause, world.job(*partitions))


def crash_at(world, operation, number=1):
    """The driver dies before a call of a kind."""
    left = [number]

    def fault(name, _path):
        left[0] -= name == operation
        return Fault(moment=Moment.BEFORE, error=Crash()) if name == operation and not left[0] else None

    world.fault = fault


def plant(world, path, content=b"theirs"):
    """A file of somebody else."""
    world.files.make(path, content)


# --- what goes and what stays


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_what_replaces_files_is_refused_where_none_can_be_removed(mode):
    """Before a task runs, since the old rows would stay beside the new ones; appends are written."""
    objects, world = FakeObjects(deletes=False), World(plan=plan_of(BulkFormat(ParquetWriterFactory())))
    options = {"options": S3Options(), "clock": world.clock, "ids": world.ids}
    world.open_store = lambda: S3Store(objects, "", **options)
    write(world, "append", "1")
    before = list(objects.objects)

    def is_run():
        raise AssertionError("a task has run")
        yield

    with pytest.raises(ConfigError, match="may not delete") as raised:
        write_all(world, mode, is_run())
    assert raised.value.code == "NO_REMOVAL"
    assert list(objects.objects) == before
    write(world, "append", "2")
    assert len([path for path in objects.objects if "/" not in path]) == 2


def test_overwrite_replaces_everything(world):
    """Every data file below the base path goes, whoever wrote it; the new ones are there."""
    write(world, "append", "1", bucket="a")
    write(world, "append", "2", bucket="b/c")
    plant(world, "by-hand.csv")
    outcome = write(world, "overwrite", "3", bucket="a")
    assert world.rows() == ["3"]
    replaced = [file.path for file in outcome.committables if isinstance(file, ReplacedFile)]
    assert len(replaced) == 3
    assert "by-hand.csv" in replaced
    assert sorted(report_of(outcome).replaced) == sorted(replaced)


def test_overwrite_partitions_touches_only_buckets_with_data(world):
    """Other buckets stay, those below a bucket too."""
    for bucket in ("a", "b", "a/below"):
        write(world, "append", bucket, bucket=bucket)
    write(world, "overwrite_partitions", "new", bucket="a")
    assert world.rows() == ["a/below", "b", "new"]


def test_nothing_replaces_everything(world):
    """Overwriting with no rows leaves no rows; partitions without rows are no partitions."""
    write(world, "append", "1")
    write_all(world, "overwrite_partitions")
    assert world.rows() == ["1"]
    write_all(world, "overwrite")
    assert world.rows() == []


def test_hidden_files_and_other_sinks_stay(world):
    """Names that readers skip, and a base path inside this one, are not replaced."""
    kept = ["_SUCCESS", "a/.hidden", "_old/part-0", ".git/config", "inner/part-0", "inner/_filesink/s/0"]
    kept += ["_checkpoint/offsets/0", "a/.checkpoint/metadata"]
    kept += ["a/_dead_letters/theirs", "a/_dead_letters/b/theirs", "_dead_letters/b/ours"]
    for path in kept:
        plant(world, path)
    write(world, "append", "1", bucket="a")
    write(world, "overwrite", "2", bucket="a")
    write(world, "overwrite_partitions", "3", bucket="inner")
    assert sorted(path for path in kept if path in world.files.files) == sorted(kept)


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions", "error_if_data_exists"])
def test_dead_letters_are_no_data(mode):
    """No write replaces what was put aside, and none is refused because of it."""
    plan = replace(plan_of(Encoder.simple_string_encoder("ascii")), on_bad_record=DeadLetters())
    world = World(plan=plan)
    write(world, "append", "é", bucket="a")
    letters = world.contents()
    assert [path.rpartition("/")[0] for path in letters] == ["_dead_letters/a"]
    outcome = write(world, mode, "1", "ü", bucket="a")
    assert letters.items() <= world.contents().items()
    assert [data for path, data in world.contents().items() if path.startswith("a/")] == [b"1\n"]
    assert [file for file in outcome.committables if isinstance(file, ReplacedFile)] == []


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions", "error_if_data_exists"])
@pytest.mark.parametrize("leads_to", ["file", "directory", "nowhere"])
def test_links_that_readers_follow_are_refused(tmp_path, mode, leads_to):
    """Their rows would stay beside the new ones, or be overlooked; what they lead to is not touched."""
    base, other = tmp_path / "base", tmp_path / "other"
    world = World(open_store=lambda: open_store(base, {}))
    base.mkdir()
    other.mkdir()
    (other / "data").write_text("theirs\n")
    target = {"file": other / "data", "directory": other, "nowhere": tmp_path / "nowhere"}[leads_to]
    if mode != "error_if_data_exists":
        write(world, "append", "old", bucket="a")
    (base / "a").mkdir(exist_ok=True)
    (base / "a" / "link").symlink_to(target)
    before = {path.name for path in (base / "a").iterdir()}
    with pytest.raises(SecurityError, match="'a/link'") as raised:
        write(world, mode, "new", bucket="a")
    assert raised.value.code == "SYMLINK"
    assert {path.name for path in (base / "a").iterdir() if path.name[0] != "."} == before
    assert (other / "data").read_text() == "theirs\n"
    (base / "a" / "link").rename(base / "a" / "_link")
    write(world, mode, "new", bucket="a")
    assert (base / "a" / "_link").is_symlink()


def test_open_parts_of_a_stream_stay():
    """What a stream holds for later is no data yet, and comes when its part is closed."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("held")))
    write(world, "overwrite", "new")
    assert world.rows() == ["new"]
    world.driver().finish()
    assert world.rows() == ["held", "new"]


def test_readers_never_see_neither(world):
    """Old files go when all new ones are visible and their directories durable."""
    write(world, "append", "old")
    steps = []
    world.fault = lambda operation, _path: steps.append((operation, world.rows()))
    write_all(world, "overwrite", records("new", bucket="a"), records("new", bucket="b"))
    assert {tuple(rows) for _, rows in steps} == {
        ("old",), ("new", "old"), ("new", "new", "old"), ("new", "new"),
    }  # fmt: skip
    calls = [operation for operation, _ in steps]
    removal = calls.index("delete_if_unchanged")
    assert "sync_directories" in calls[calls.index("publish") : removal]
    assert "sync_directories" in calls[removal:], "a power cut must not bring the old rows back"


def test_nothing_is_removed_while_a_file_waits_to_be_published(world):
    """The epoch stays decided, with the old rows visible, and the next driver carries it through."""
    write(world, "append", "old")
    world.fault = lambda operation, _path: BUSY if operation == "publish" else None
    with pytest.raises(CommitFailedError):
        write(world, "overwrite", "new")
    assert world.rows() == ["old"]
    world.fault = lambda _operation, _path: None
    world.driver(EXCLUSIVE).recover()
    assert world.rows() == ["new"]


def test_a_removal_that_fails_holds_up_nothing(world):
    """The new rows are there, the epoch is complete; each later write tries again until the old ones go."""
    write(world, "append", "old", bucket="a")
    (old,) = world.visible()
    stuck = StorageError("not permitted", code="PERMISSION")
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=stuck) if operation == "delete_if_unchanged" else None
    )
    first = write(world, "overwrite", "new", bucket="a")
    assert [file.path for file in first.newly_left] == [old]
    assert world.ledger(EXCLUSIVE).head().complete
    assert world.rows() == ["new", "old"]
    second = write(world, "overwrite_partitions", "other", bucket="b")
    assert ([file.path for file in second.left], list(second.newly_left)) == ([old], [])
    world.fault = lambda _operation, _path: None
    third = write(world, "overwrite_partitions", "third", bucket="c")
    assert not third.left
    assert world.rows() == ["new", "other", "third"]


def test_a_merged_file_that_cannot_be_discarded_holds_up_nothing(world):
    """It is hidden and stays hidden: the next start sweeps it."""
    stuck = StorageError("not permitted", code="PERMISSION")
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=stuck) if operation == "discard" else None
    )
    pending = world.driver().run(micro_batch(0), world.job(records("1"))).committables[0]
    committer = world.tiers().create_committer()
    assert committer.commit([DiscardFile(path=pending.staged.path)]) == []


def test_a_changed_file_stays_and_is_named(world, caplog):
    """What somebody has put in the place of a listed file is not ours to remove."""
    write(world, "append", "old")
    path = next(iter(world.visible()))

    def change(operation, _path):
        if operation == "delete_if_unchanged":
            world.files.files[path] = MemoryFile(inode=-1, mtime_ms=0, content=b"edited\n")

    world.fault = change
    write(world, "overwrite", "new")
    assert world.rows() == ["edited", "new"]
    assert f"'{path}' was to be replaced" in caplog.text


def test_files_published_after_the_listing_stay(world):
    """An append that is decided while an overwrite publishes is not its business."""
    write(world, "append", "old")
    done = []

    def append(operation, _path):
        if operation == "publish" and not done:
            done.append(operation)
            write(world, "append", "later")

    world.fault = append
    write(world, "overwrite", "new")
    assert world.rows() == ["later", "new"]


def test_files_of_a_decided_epoch_stay(world):
    """An append that died between publishing and completing is carried through, not called lost."""
    write(world, "append", "old")
    crash_at(world, "put_if_absent", 2)  # the completion
    with pytest.raises(Crash):
        write(world, "append", "decided")
    world.fault = lambda _operation, _path: None
    write(world, "overwrite", "new")
    assert world.rows() == ["decided", "new"]
    assert len(world.maintenance().recover(Lost.RAISE, None).published) == 1
    assert world.rows() == ["decided", "new"]


# --- crashes


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("mode", ["append", "error_if_data_exists", "overwrite", "overwrite_partitions"])
def test_a_crash_at_any_call_is_carried_through(mode, moment):
    """The old rows, or both, or the new ones; repeated, the new ones once; and the next write finds order."""
    before = ["old"] if "overwrite" in mode else []
    for number in range(1, 200):
        world = World()
        if before:
            write(world, "append", "old")
        left = [number]

        def fault(_operation, _path, left=left):
            left[0] -= 1
            return None if left[0] else Fault(moment=moment, error=Crash())

        world.fault = fault
        try:
            write(world, mode, "new", txn_id="t")
        except Crash:
            assert world.rows() in (before, sorted(["new", *before]), ["new"])
        world.fault = lambda _operation, _path: None
        write(world, mode, "new", txn_id="t")
        assert world.rows() == ["new"]
        the_next_write(world, mode)
        world.clock.now += 8 * DAY_MS  # whose they are is written nowhere, so only age tells
        world.maintenance().sweep(7 * DAY_MS)
        assert world.hidden() == []
        if left[0] > 0:
            assert number > 15
            return
    pytest.fail("a write needs more than 200 calls")


def the_next_write(world, mode):
    """In the same mode: added, refused, or instead of what is there."""
    if mode == "error_if_data_exists":
        with pytest.raises(ConfigError) as caught:
            write(world, mode, "newer")
        assert caught.value.code == "DATA_EXISTS"
        mode = "append"
    write(world, mode, "newer")
    assert world.rows() == (["new", "newer"] if mode == "append" else ["newer"])


# --- one at a time


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions", "error_if_data_exists"])
def test_of_two_at_a_time_one_is_refused(world, mode):
    """Who has not seen what the other one did may not decide; the rows of one are there."""
    done = []

    def second(operation, _path):
        if operation == "verify" and not done:
            done.append(operation)
            write(world, mode, "second")

    world.fault = second
    with pytest.raises(ConcurrentDriverError):
        write(world, mode, "first")
    assert world.rows() == ["second"]


def test_an_overwrite_that_died_is_carried_through_by_the_next(world):
    """So nobody waits for a lock of the dead."""
    write(world, "append", "old")
    crash_at(world, "delete_if_unchanged")
    with pytest.raises(Crash):
        write(world, "overwrite", "new", bucket="a")
    world.fault = lambda _operation, _path: None
    write(world, "overwrite_partitions", "newer", bucket="b")
    assert world.rows() == ["new", "newer"]


# --- error_if_data_exists


def test_the_first_write_is_accepted_and_the_second_refused(world):
    """Before its tasks run, and by name; hidden files are no data."""
    plant(world, "_SUCCESS")
    plant(world, "inner/_filesink/s/0")
    plant(world, "inner/part-0")
    plant(world, "a/_dead_letters/theirs")
    write(world, "error_if_data_exists", "1")
    job = world.job(records("2"))
    with pytest.raises(ConfigError, match="Nothing was written") as raised:
        world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.ERROR_IF_DATA_EXISTS), job)
    assert raised.value.code == "DATA_EXISTS"
    assert job.executions == 0


def test_data_that_comes_while_tasks_run_is_seen(world):
    """What was written meanwhile refuses the epoch, which leaves nothing."""
    done = []

    def append(operation, _path):
        if operation == "close" and not done:
            done.append(operation)
            write(world, "append", "meanwhile")

    world.fault = append
    with pytest.raises(ConfigError):
        write(world, "error_if_data_exists", "late")
    assert world.rows() == ["meanwhile"]
    assert [path for path in world.hidden() if "late" in path] == []


# --- txn_id


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions", "error_if_data_exists"])
def test_a_txn_id_is_written_once(world, mode):
    """The second call does nothing, though others have overwritten and the records are folded away."""
    write(world, mode, "1", txn_id="day-1")
    write(world, "overwrite", "2", txn_id="day-2")
    for number in range(130):
        write(world, "overwrite", f"{number:03}")
    assert world.ledger(EXCLUSIVE).history.has_folded()
    again = write(world, mode, "1", txn_id="day-1")
    assert again.replayed
    assert report_of(again).rows == 1
    assert world.rows() == ["129"]


def test_a_txn_id_is_that_of_the_sink():
    """Two sinks with uids of their own on one path mean other data by the same txn_id."""
    world = World(uid="one")
    write(world, "overwrite_partitions", "1", bucket="a", txn_id="day")
    world.uid = "two"
    assert not write(world, "overwrite_partitions", "2", bucket="b", txn_id="day").replayed
    assert world.rows() == ["1", "2"]


def test_a_txn_id_is_known_in_any_mode(world):
    """What was overwritten is not appended again."""
    write(world, "overwrite", "1", txn_id="day")
    assert write(world, "append", "1", txn_id="day").replayed


OTHERS = ["overwrite", "overwrite_partitions", "error_if_data_exists"]


def die_before_publishing(world, mode):
    """A write is decided, and nobody sees its rows."""
    crash_at(world, "publish")
    with pytest.raises(Crash):
        write(world, mode, "1", txn_id="day")
    world.fault = lambda _operation, _path: None


@pytest.mark.parametrize(
    ("first", "second"), [*(("append", mode) for mode in OTHERS), *((mode, "append") for mode in OTHERS)]
)
def test_a_txn_id_that_is_decided_in_another_mode_and_not_complete_is_refused(world, first, second):
    """Neither is it called committed while no row is visible, nor written again beside what comes later."""
    die_before_publishing(world, first)
    with pytest.raises(ConcurrentDriverError, match=f"mode '{first}'") as raised:
        write(world, second, "1", txn_id="day")
    assert raised.value.code == "OTHER_MODE"
    assert world.rows() == []
    world.maintenance().recover(Lost.RAISE, None)
    assert write(world, second, "1", txn_id="day").replayed
    assert world.rows() == ["1"]


@pytest.mark.parametrize("mode", OTHERS)
def test_an_append_is_not_stopped_by_an_overwrite_of_another_txn_id(world, mode):
    """Only of its own rows it is not known whether they will be there."""
    die_before_publishing(world, mode)
    write(world, "append", "2", txn_id="another day")
    write(world, "append", "3")
    assert world.rows() == ["2", "3"]


@pytest.mark.parametrize("mode", [*OTHERS, "append"])
def test_a_txn_id_whose_copy_is_not_complete_is_committed(world, mode):
    """The copy is made when all rows are visible, so whoever finds it need not wait for anybody."""

    def fault(operation, path):
        is_end = operation == "put_if_absent" and path.endswith("complete")
        return Fault(moment=Moment.AFTER, error=Crash()) if is_end else None

    world.fault = fault
    with pytest.raises(Crash):
        write(world, "overwrite", "1", txn_id="day")
    world.fault = lambda _operation, _path: None
    sink_id, cause = batch_write(SaveMode(mode), world.uid, "day", world.ids)
    assert find_write(cause, world.ledger(sink_id)) is not None, "as a task asks, before the driver"
    assert write(world, mode, "1", txn_id="day").replayed
    assert world.rows() == ["1"]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_of_two_writes_of_a_txn_id_at_a_time_one_is_published(world, mode):
    """Both have decided: who claims the txn_id first has it, and the other reports the same rows."""
    done = []

    def second(operation, path):
        if operation == "put_if_absent" and "_txns" in path and not done:
            done.append(path)
            write(world, "append", "1", txn_id="day")

    world.fault = second
    assert write(world, mode, "1", txn_id="day").replayed
    assert world.rows() == ["1"]
    assert world.hidden() == []
    assert world.maintenance().recover(Lost.RAISE, None).published == ()


@pytest.mark.parametrize("who", ["recover", "append"])
def test_what_a_dead_write_has_decided_outlives_repeats_and_sweeps_if_its_txn_id_is_taken(world, who):
    """A repeat changes nothing, no sweep takes a file that a record names; who carries it through does."""
    met = []

    def twin_dies(operation, path):
        if operation == "put_if_absent" and path.endswith(".record") and not met:
            met.append(path)
            with pytest.raises(Crash):
                write(world, "append", "1", txn_id="day")
        elif operation == "put_if_absent" and path.endswith(".claim") and len(met) == 1:
            met.append(path)
            return Fault(moment=Moment.BEFORE, error=Crash())
        return None

    world.fault = twin_dies
    assert not write(world, "append", "1", txn_id="day").replayed
    left = world.hidden()
    assert write(world, "append", "1", txn_id="day").replayed
    world.clock.now += 400 * DAY_MS
    assert world.maintenance().sweep(DAY_MS).files == ()
    assert world.hidden() == left != []
    if who == "recover":
        assert world.maintenance().recover(Lost.RAISE, None).published == ()
    else:
        write(world, "append", "2")
    assert world.hidden() == []
    assert world.rows() == (["1"] if who == "recover" else ["1", "2"])


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_txn_id_with_other_data_is_refused(world, mode):
    """A corrected rerun must not be taken for the first one, nor change anything unasked."""
    write(world, mode, "1", "2", txn_id="day")
    with pytest.raises(RepeatedTxnError, match="2 rows, now it has 1") as raised:
        write(world, mode, "1", txn_id="day")
    assert raised.value.code == "OTHER_DATA"
    assert "on_repeated_txn='replace'" in raised.value.message
    assert world.rows() == ["1", "2"]


def test_a_later_write_takes_the_place_of_an_earlier_one(world):
    """The files of that one go, and no others; it is found under the txn_id from then on."""
    write(world, "append", "other", bucket="a")
    write(world, "append", "1", "2", bucket="a", txn_id="day")
    _, cause = batch_write(SaveMode.APPEND, world.uid, "day", world.ids)
    earlier = find_write(cause, world.ledger())
    sink_id, newer = superseding(cause, earlier.nonce, world.ids)
    outcome = world.driver(sink_id).run(newer, world.job(records("3", bucket="b")))
    assert not outcome.replayed
    assert world.rows() == ["3", "other"]
    assert write(world, "append", "3", bucket="b", txn_id="day").replayed
    late, again = superseding(cause, earlier.nonce, world.ids)
    with pytest.raises(RepeatedTxnError):
        world.driver(late).run(again, world.job(records("4", "5")))
    assert world.rows() == ["3", "other"]


def test_a_write_whose_files_were_replaced_since_cannot_be_replaced(world):
    """Its rows may be in other files, as after offline compaction: they would be there twice."""
    write(world, "append", "1", bucket="a", txn_id="day")
    write(world, "overwrite_partitions", "1 elsewhere", bucket="a")
    _, cause = batch_write(SaveMode.APPEND, world.uid, "day", world.ids)
    earlier = find_write(cause, world.ledger())
    sink_id, newer = superseding(cause, earlier.nonce, world.ids)
    with pytest.raises(RepeatedTxnError, match="not there any more") as raised:
        world.driver(sink_id).run(newer, world.job(records("2", bucket="a")))
    assert raised.value.code == "FILES_GONE"
    assert world.rows() == ["1 elsewhere"]


def supersede(world, mode, *partitions, emptied=()):
    """Replace what the earlier write of "day" has written, as ``on_repeated_txn="replace"`` does."""
    world.emptied = emptied
    _, cause = batch_write(SaveMode(mode), world.uid, "day", world.ids)
    sink_id, newer = superseding(cause, find_write(cause, world.ledger()).nonce, world.ids)
    return world.driver(sink_id).run(newer, world.job(*partitions))


def test_rows_that_move_to_another_partition_leave_none_behind(world):
    """What the earlier write has written goes, wherever it is; then the mode does what it always does."""
    for bucket in ("a", "b", "c"):
        write(world, "append", f"old {bucket}", bucket=bucket)
    write_all(world, "overwrite_partitions", records("1", bucket="a"), records("2", bucket="c"), txn_id="day")
    write(world, "append", "later", bucket="a")
    outcome = supersede(world, "overwrite_partitions", records("3", bucket="b"), records("4", bucket="c"))
    assert world.rows() == ["3", "4", "later"]
    assert len(report_of(outcome).replaced) == 3  # "1", "2", and what was in the new partition


def test_a_write_that_was_overwritten_can_be_replaced_with_its_partitions(world):
    """What is in a partition that goes as a whole need not be found; the error tells that way out."""
    write(world, "append", "1", bucket="a", txn_id="day")
    write(world, "overwrite_partitions", "2", bucket="a")
    with pytest.raises(RepeatedTxnError, match=r"partitions=\[") as raised:
        supersede(world, "overwrite_partitions", records("3", bucket="b"))
    assert raised.value.code == "FILES_GONE"
    assert world.rows() == ["2"]
    supersede(world, "overwrite_partitions", records("3", bucket="b"), emptied=("a", "b"))
    assert world.rows() == ["3"]


def test_dead_letters_of_a_write_do_not_keep_it_from_being_replaced():
    """Readers do not see them, so they are neither replaced nor missed."""
    world = World(plan=replace(plan_of(Encoder.simple_string_encoder("ascii")), on_bad_record=DeadLetters()))
    write(world, "append", "1", "é", bucket="a", txn_id="day")
    supersede(world, "append", records("2", bucket="a"))
    assert [data for path, data in world.contents().items() if path.startswith("a/")] == [b"2\n"]


def test_a_claim_that_was_removed_is_missed(world):
    """Its ``.done`` bears witness: the write is not new, and its rows are not written again."""
    write(world, "append", "1", txn_id="day")
    for path in [path for path in world.files.files if path.endswith(".claim")]:
        del world.files.files[path]
    with pytest.raises(StateCorruptError) as raised:
        write(world, "append", "1", txn_id="day")
    assert raised.value.code == "GAP"
    assert world.rows() == ["1"]


@pytest.mark.parametrize("uid", ["u", None])
def test_appends_go_on_beside_each_other_and_beside_a_stream(uid):
    """None needs what the others have done: each is decided, whoever comes between."""
    world, done = World(uid=uid), []

    def others(operation, path):
        if operation == "put_if_absent" and path.endswith(".record") and len(done) < 4:
            done.append(path)
            world.fault = lambda _operation, _path: None
            number = len(done)
            write(world, "append", str(number))
            world.driver("uid-s").run(micro_batch(number - 1), world.job(records(f"s{number}")))
            world.fault = others

    world.fault = others
    for number in (5, 6):
        write(world, "append", str(number))
    beside = range(1, len(done) + 1)
    assert world.rows() == sorted(["5", "6", *map(str, beside), *(f"s{number}" for number in beside)])
    assert len(done) >= 2
    assert world.hidden() == []


def test_overwrites_of_other_partitions_go_on_beside_each_other(world):
    """Who has lost the slot takes the next one, with the files at hand; the tasks do not run again."""
    for bucket in "abc":
        write(world, "append", f"old {bucket}", bucket=bucket)
    done = []

    def others(operation, _path):
        if operation == "verify" and len(done) < 2:
            bucket = "bc"[len(done)]
            done.append(bucket)
            write(world, "overwrite_partitions", f"new {bucket}", bucket=bucket)

    world.fault = others
    sink_id, cause = batch_write(SaveMode.OVERWRITE_PARTITIONS, world.uid, "", world.ids)
    job = world.job(records("new a", bucket="a"))
    world.driver(sink_id).run(cause, job)
    assert job.executions == 1
    assert world.rows() == ["new a", "new b", "new c"]


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_a_conflict_names_the_partitions(world, mode):
    """Not slots, which mean nothing to the user; nothing of the loser is visible, or left for long."""
    write(world, "append", "old", bucket="day=1")
    done = []

    def second(operation, _path):
        if operation == "verify" and not done:
            done.append(operation)
            write(world, "overwrite_partitions", "second", bucket="day=1")

    world.fault = second
    with pytest.raises(ConcurrentDriverError, match="'day=1'") as raised:
        write(world, mode, "first", bucket="day=1")
    assert raised.value.code == "PARTITION_CONFLICT"
    assert world.rows() == ["second"]
    assert world.hidden() == []


def test_what_an_append_left_half_done_is_carried_through_by_a_later_one(world):
    """It was half done before that began and after it had ended: its driver is dead, or takes no harm."""
    crash_at(world, "publish")
    with pytest.raises(Crash):
        write(world, "append", "1")
    world.fault = lambda _operation, _path: None
    write(world, "append", "2")
    assert world.rows() == ["1", "2"]


def test_many_writes_leave_few_files_and_cost_what_the_first_cost(world):
    """A ledger, a listing or a call for each write that ever was would make the last ones slow."""

    def calls(what):
        counted = []
        world.fault = lambda operation, _path: counted.append(operation)
        what()
        world.fault = lambda _operation, _path: None
        return len(counted)

    def recover():
        return world.maintenance().recover(Lost.RAISE, None)

    def overwrite():
        return write(world, "overwrite_partitions", "x", bucket="z")

    for bucket in "012":
        write(world, "append", "first", bucket=bucket)
    overwrite()
    append = calls(lambda: write(world, "append", "1", txn_id="one"))
    before = calls(recover), calls(overwrite), append
    for number in range(200):
        txn_id = f"{number}" if number % 2 else ""
        write(world, "append", f"{number}", txn_id=txn_id, bucket=f"{number % 3}")
    after = calls(recover), calls(overwrite), calls(lambda: write(world, "append", "1", txn_id="two"))
    assert all(late <= 1.5 * early for early, late in zip(before, after, strict=True)), (before, after)
    ledgers = {path.split("/")[1] for path in world.files.files if path.startswith("_filesink/")}
    assert ledgers == {"appends-u", "exclusive", "_inventory", "_layout", "_txns"}


def test_an_append_whose_slot_cannot_be_looked_at_discards_nothing(world):
    """Its record stands, so its files are decided: whoever recovers publishes them."""
    decided = []
    gone = StorageError("not permitted", code="PERMISSION")

    def fault(operation, path):
        if operation == "put_if_absent" and path.endswith(".record"):
            decided.append(path)
        is_look = operation == "list" and decided and path.startswith("_filesink/appends")
        return Fault(moment=Moment.BEFORE, error=gone) if is_look else None

    world.fault = fault
    with pytest.raises(CommitStateUnknown, match="recover"):
        write(world, "append", "1")
    world.fault = lambda _operation, _path: None
    assert len(world.maintenance().recover(Lost.RAISE, None).published) == 1
    assert world.rows() == ["1"]


def test_an_append_looks_into_no_other_partition(world):
    """One row among many directories costs what it would cost alone."""
    for number in range(60):
        write(world, "append", "x", bucket=f"p={number}")
    listed = []
    world.fault = lambda operation, path: listed.append(path) if operation == "list" else None
    write(world, "append", "y", bucket="p=0", txn_id="t")
    assert {path for path in listed if path.startswith("p=")} <= {"p=0"}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("repeated", [False, True])
def test_nothing_half_put_stays_where_a_txn_id_is_looked_for(world, mode, repeated):
    """A driver has died while it put there; no other epoch is ever decided in that ledger, and sweeps it."""
    if repeated:
        write(world, mode, "1", txn_id="day")
    name = txn_name(world.uid, "day")
    plant(world, f"_filesink/_txns/{name}/.000000.claim.put.x", b"half")
    assert write(world, mode, "1", txn_id="day").replayed is repeated
    assert not [path for path in world.files.files if "/." in path]


# --- what an overwrite announces


def test_a_sink_that_announces_nothing_does_not_complete_an_epoch_that_does(world):
    """All sinks on a path share the ledger of overwrites, and not all of them know the metastore."""
    crash_at(world, "publish")
    with pytest.raises(Crash):
        write(world, "overwrite", "new")
    world.fault = lambda _operation, _path: None
    record = replace(world.ledger(EXCLUSIVE).head().record, announcement=Section(1, b"[]"))
    publisher = Publisher(world.tiers(), world.ledger(EXCLUSIVE), world.ports())
    with pytest.raises(StateError) as raised:
        publisher.publish(record, Decider.EARLIER_DRIVER)
    assert raised.value.code == "PARTITION_COMMIT_OFF"
    assert world.rows() == ["new"]
    assert not world.ledger(EXCLUSIVE).head().complete


# --- taking back


def lose_the_new_file(world, *, before):
    """An overwrite dies before a call, and its file is lost."""
    write(world, "append", "old")
    crash_at(world, before)
    with pytest.raises(Crash):
        write(world, "overwrite", "new", txn_id="t")
    world.fault = lambda _operation, _path: None
    newest = world.ledger(EXCLUSIVE).head().record
    lost = [path for path, data in world.contents().items() if data == b"new\n"]
    for path in lost:
        del world.files.files[path]
    return newest


def test_an_overwrite_can_be_taken_back_while_the_old_files_are_there(world):
    """Then the same txn_id writes again."""
    newest = lose_the_new_file(world, before="publish")
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (newest.slot,)
    assert world.rows() == ["old"]
    assert not write(world, "overwrite", "new", txn_id="t").replayed
    assert world.rows() == ["new"]


def test_a_txn_id_that_is_taken_back_leaves_nothing_of_its_copy(world):
    """The next record of the same txn_id is not complete before its files are published."""

    def fault(operation, path):
        is_own = operation == "put_if_absent" and path.startswith(f"_filesink/{EXCLUSIVE}/")
        return Fault(moment=Moment.BEFORE, error=Crash()) if is_own and path.endswith("complete") else None

    world.fault = fault
    with pytest.raises(Crash):
        write(world, "overwrite", "1", txn_id="day")
    world.fault = lambda _operation, _path: None
    for path in world.visible():
        del world.files.files[path]
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (0,)
    die_before_publishing(world, "append")
    assert write(world, "append", "1", txn_id="day").replayed
    world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == ["1"]


def test_an_overwrite_that_has_removed_is_not_taken_back(world):
    """It would leave neither old nor new rows; what is left is accepted instead, old files too."""
    write(world, "append", "older")
    lose_the_new_file(world, before="delete_if_unchanged")
    old = next(path for path, data in world.visible().items() if data == b"older\n")
    del world.files.files[old]
    with pytest.raises(IdentityError) as raised:
        world.maintenance().recover(Lost.REWRITE, None)
    assert raised.value.code == "NO_REPLAY"
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.lost_rows, world.rows()) == (1, ["old"])
    assert write(world, "overwrite", "new", txn_id="t").replayed
    assert not write(world, "overwrite", "new", txn_id="again").replayed
    assert world.rows() == ["new"]


def lose_one_of_three(world, *, before, number=1):
    """An overwrite dies before a call, and its second file is lost, hidden or not."""
    write(world, "append", "old")
    crash_at(world, before, number)
    with pytest.raises(Crash):
        write_all(world, "overwrite", *map(records, "abc"), txn_id="t")
    world.fault = lambda _operation, _path: None
    for path in [path for path, data in world.contents().items() if data == b"b\n"]:
        del world.files.files[path]


def test_an_overwrite_that_may_have_begun_to_remove_is_not_taken_back(world):
    """The old file is there still, but its removal was asked for, and a server may be late with it."""
    lose_one_of_three(world, before="delete_if_unchanged")
    with pytest.raises(IdentityError, match="may be going") as raised:
        world.maintenance().recover(Lost.REWRITE, None)
    assert raised.value.code == "NO_REPLAY"
    assert world.rows() == ["a", "c", "old"]


def test_an_overwrite_with_a_hidden_file_has_not_begun_to_remove(world):
    """That name goes before the first old file does, so what is there will stay."""
    lose_one_of_three(world, before="publish", number=2)
    assert world.rows() == ["a", "old"]
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (0,)
    assert world.rows() == ["old"]
    assert not write(world, "overwrite", "new", txn_id="t").replayed
    assert world.rows() == ["new"]


def test_a_sink_with_another_uid_recovers_an_overwrite(world):
    """There is one ledger for all of them."""
    crash_at(world, "publish")
    with pytest.raises(Crash):
        write(world, "overwrite", "new")
    world.fault = lambda _operation, _path: None
    world.uid = "another"
    assert len(world.maintenance().recover(Lost.RAISE, None).published) == 1
    assert world.rows() == ["new"]
