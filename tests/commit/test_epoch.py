"""The epoch loop over the real file sink, with crashes, replays and rivals, and without Spark."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from filesink.commit.replay import History, OnReplayMismatch
from filesink.errors import (
    CheckpointMismatchError,
    CommitFailedError,
    CommitStateUnknown,
    ConcurrentDriverError,
    ConfigError,
    InternalError,
    ReplayMismatchError,
    ReplayTooOldError,
    StagedDataLost,
    StateCorruptError,
    StateError,
    StorageError,
)
from filesink.ledger.identity import OnNewQuery, batch_write
from filesink.ledger.record import BatchWrite, Finish, Upkeep
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import SuccessFilePolicy
from filesink.operations.maintenance import Lost
from filesink.ports import Losers
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from filesink.storage.faulty import Fault, Moment
from formats.encoders import Encoder
from tests.fakes import World, keep_open, micro_batch, plan_of, records


class Killed(BaseException):
    """The driver dies here."""


def on(operation, moment=Moment.BEFORE, *, path="", error=None, times=1):
    """A fault at the first ``times`` calls of an operation whose path contains ``path``."""
    left = [times]

    def plan(asked, asked_path):
        if asked != operation or path not in asked_path or not left[0]:
            return None
        left[0] -= 1
        return Fault(moment=moment, error=error or Killed())

    return plan


def no_fault(_operation, _path):
    """Nothing fails."""


def open_parts():
    """A world whose parts stay open for a second."""
    return World(plan=plan_of(policy=keep_open()))


def test_a_batch_becomes_visible():
    """Each partition writes its rows into the buckets they belong to, and nothing hidden is left."""
    world = World()
    job = world.job([records("1", "2", bucket="a"), records("3", bucket="b")], records("4", bucket="a"))
    outcome = world.driver().run(BatchWrite(), job)
    assert (outcome.slot, outcome.rows, outcome.replayed) == (0, 4, False)
    assert sorted(path.split("/")[0] for path in world.visible()) == ["a", "a", "b"]
    assert world.rows() == ["1", "2", "3", "4"]
    assert world.hidden() == []


def test_tasks_are_told_the_time_and_the_zone_of_their_driver():
    """Ages, and buckets by the time of writing, are those of one clock; days are the session's."""
    world = World()
    world.clock.now = 1_700_000_000_000
    job, tasks = world.job(time_zone="Asia/Tokyo"), []
    write = job.write
    job.write = lambda run: tasks.append(run.__self__) or write(run)
    world.driver().run(BatchWrite(), job)
    assert [(task.driver_ms, task.time_zone) for task in tasks] == [(1_700_000_000_000, "Asia/Tokyo")]


def test_no_task_at_all():
    """An epoch whose empty input was optimised away still decides, and can be replayed."""
    world = World()
    assert world.driver().run(micro_batch(0), world.job()).rows == 0
    assert world.driver().run(micro_batch(0), world.job()).replayed


def test_an_empty_epoch_carries_the_state_on():
    """Open parts of lanes that have no task stay open and are there for the next epoch."""
    world = open_parts()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1"), records("2")))
    driver.run(micro_batch(1), world.job())
    driver.run(micro_batch(2), world.job(records("3")))
    assert world.rows() == []
    driver.finish()
    assert sorted(world.visible().values()) == [b"1\n3\n", b"2\n"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_micro_batch_that_comes_back_writes_nothing(restart):
    """A replay is executed once, compared, and changes no file."""
    world = World()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1", "2")))
    before = dict(world.files.files)
    replay = world.job(records("1"), records("2"), run_id="run-2")  # other partitioning
    outcome = (world.driver() if restart else driver).run(micro_batch(0), replay)
    assert (outcome.replayed, outcome.rows, replay.executions) == (True, 2, 1)
    assert world.files.files == before


@pytest.mark.parametrize("fault", ["put_if_absent", "publish", "sync_directories"])
@pytest.mark.parametrize("moment", Moment)
def test_a_crash_at_any_step_of_the_driver(fault, moment):
    """Killed before or after any step, the restarted query has each row once and no garbage."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("0")))
    job = world.job(records("1", bucket="a"), records("2", bucket="b"))
    world.fault = on(fault, moment)
    with pytest.raises(Killed):
        world.driver().run(micro_batch(1), job)
    world.fault = no_fault
    world.driver().run(micro_batch(1), job)
    world.driver().run(micro_batch(2), world.job(records("3")))
    assert world.rows() == ["0", "1", "2", "3"]
    assert world.hidden() == []


def test_a_crash_before_complete_is_published_again():
    """A record whose completion got lost is carried out again, and published files stay as they are."""
    world = World()
    world.fault = on("put_if_absent", path=".complete")
    with pytest.raises(Killed):
        world.driver().run(micro_batch(0), world.job(records("1")))
    published = world.visible()
    assert world.driver().recover().replayed
    assert world.driver().recover() is None
    assert world.visible() == published


def test_a_lost_reply_on_decide_is_our_own_record():
    """If only the answer was lost, the epoch goes on as if nothing had happened."""
    world = World()
    world.fault = on("put_if_absent", Moment.AFTER, path=".record", error=StorageError("t", code="TIMEOUT"))
    outcome = world.driver().run(micro_batch(0), world.job(records("1")))
    assert not outcome.replayed
    assert world.rows() == ["1"]


def test_an_answer_that_stays_lost_is_not_another_driver():
    """If the slot cannot be read either, nobody is blamed, nothing is discarded, a restart goes on."""
    world = World()
    lost = StorageError("t", code="TIMEOUT")
    puts = on("put_if_absent", Moment.AFTER, path=".record", error=lost, times=99)
    reads = on("read", path=".record", error=StorageError("r", code="TIMEOUT"), times=99)
    world.fault = lambda *operation: puts(*operation) or reads(*operation)
    with pytest.raises(StorageError) as raised:
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert raised.value.code == "DECIDE_UNKNOWN"
    assert len(world.hidden()) == 1
    world.fault = no_fault
    assert world.driver().run(micro_batch(0), world.job(records("1"))).replayed
    assert world.rows() == ["1"]


def test_a_slot_that_could_not_be_created_discards_nothing_visible():
    """An epoch that failed before its record leaves readers with nothing, and can be repeated."""
    world = World()
    driver = world.driver()
    world.fault = on("put_if_absent", path=".record", error=StorageError("full", code="NO_SPACE"), times=99)
    with pytest.raises(StorageError, match="full"):
        driver.run(micro_batch(0), world.job(records("1")))
    assert world.visible() == {}
    world.fault = no_fault
    driver.run(micro_batch(0), world.job(records("1")))
    assert world.rows() == ["1"]


def test_what_a_failed_epoch_left_is_swept_by_the_next_good_one():
    """Files that tasks reported before a sibling failed do not wait for a restart of the process."""

    def broken():
        yield records("2")
        raise RuntimeError("broken")

    world = World()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("0")))
    with pytest.raises(RuntimeError):
        driver.run(micro_batch(1), world.job(records("1"), broken()))
    assert len(world.hidden()) == 1
    driver.run(micro_batch(1), world.job(records("1"), records("2")))
    assert world.hidden() == []
    assert world.rows() == ["0", "1", "2"]


def rival(world, cause, *batches):
    """A job during which another driver commits an epoch of its own."""

    def meanwhile():
        world.driver().run(cause, world.job(*batches, run_id="rival"))
        yield from batches

    return world.job(meanwhile())


def test_two_drivers_with_the_same_micro_batch():
    """The slower one finds its batch decided, adopts it and discards its own files."""
    world = World()
    outcome = world.driver().run(micro_batch(0), rival(world, micro_batch(0), records("1")))
    assert outcome.replayed
    assert world.rows() == ["1"]
    assert world.hidden() == []


def test_a_batch_that_another_driver_has_decided_and_not_published():
    """Who finds it decided reports it when its rows are visible: the other one may have died since."""
    world = World()

    def meanwhile():
        world.fault = on("publish")
        with pytest.raises(Killed):
            world.driver().run(micro_batch(0), world.job(records("1"), run_id="rival"))
        world.fault = no_fault
        yield records("1")

    assert world.driver().run(micro_batch(0), world.job(meanwhile())).replayed
    assert world.rows() == ["1"]
    assert world.hidden() == []


def test_two_drivers_with_different_batches():
    """The slower one stops; its restart goes on from the new state."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("0")))
    slow = world.driver()
    with pytest.raises(ConcurrentDriverError, match="a restart goes on from the new state") as raised:
        slow.run(BatchWrite(), rival(world, micro_batch(1), records("1")))
    assert raised.value.code == "CONCURRENT_DRIVER"
    assert world.rows() == ["0", "1"]
    slow.run(BatchWrite(), world.job(records("2")))
    assert world.rows() == ["0", "1", "2"]
    assert world.hidden() == []


def test_a_failure_while_another_driver_went_on_is_named_so():
    """A task that failed because its files were swept says that there is another driver."""
    world = World()

    def meanwhile():
        world.driver().run(micro_batch(0), world.job(records("1"), run_id="rival"))
        raise RuntimeError("my files are gone")
        yield

    with pytest.raises(ConcurrentDriverError) as raised:
        world.driver().run(micro_batch(0), world.job(meanwhile()))
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert world.rows() == ["1"]


def test_a_failure_in_a_slot_that_is_folded_away_is_named_so():
    """The record is gone by then; that the slot is void tells that another driver went on."""
    world = World()

    def sleepy():
        awake = world.driver(keep_batches=10)
        for batch_id in range(60):
            awake.run(micro_batch(batch_id), world.job(records(str(batch_id))))
        raise RuntimeError("my files are gone")
        yield

    with pytest.raises(ConcurrentDriverError) as raised:
        world.driver().run(micro_batch(0), world.job(sleepy()))
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_a_slot_that_cannot_be_read_again_discards_nothing():
    """The record was not there at the first look; whether it came since, late, nobody can tell."""
    world = World()
    reads = []

    def fault(operation, path):
        reads.extend([path] if operation == "read" else [])
        if operation == "put_if_absent" or (operation == "read" and len(reads) > 1):
            return Fault(moment=Moment.BEFORE, error=StorageError("away", code="TIMEOUT"))
        return None

    world.fault = fault
    with pytest.raises(StorageError) as raised:
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert any("could not be read either" in note for note in raised.value.__notes__)
    assert len(world.hidden()) == 1


def test_the_reason_of_a_failed_epoch_is_not_hidden_by_its_discarding():
    """That prepared files could not be removed is logged; raised is why they are not wanted."""
    world = World()
    full = on("put_if_absent", path=".record", error=StorageError("full", code="NO_SPACE"), times=99)
    busy = on("discard", error=StorageError("busy", code="BUSY"))
    world.fault = lambda *operation: full(*operation) or busy(*operation)
    with pytest.raises(StorageError, match="full"):
        world.driver().run(micro_batch(0), world.job(records("1")))


def test_what_a_new_sink_left_when_its_first_epoch_failed_is_swept():
    """That nobody had written there before it says nothing of its own second try."""

    def broken():
        yield records("2")
        raise RuntimeError("broken")

    world = World()
    driver = world.driver(history=History.NONE)
    with pytest.raises(RuntimeError):
        driver.run(micro_batch(0), world.job(records("1"), broken()))
    assert len(world.hidden()) == 1
    driver.run(micro_batch(0), world.job(records("1"), records("2")))
    assert world.hidden() == []


def test_a_zombie_that_wins_a_folded_slot_publishes_nothing():
    """A driver that slept through a fold creates a void record, notices, and discards its own."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("0")))

    def sleepy():
        yield records("zombie")
        awake = world.driver(keep_batches=10)
        for batch_id in range(1, 60):
            awake.run(micro_batch(batch_id), world.job(records(str(batch_id))))

    with pytest.raises(ConcurrentDriverError):
        world.driver().run(micro_batch(1), world.job(sleepy()))
    assert "zombie" not in world.rows()
    assert len(world.rows()) == 60
    assert world.hidden() == []


@pytest.mark.parametrize("batches", [0, 1])
def test_a_base_path_that_another_place_stands_for(tmp_path, batches):
    """Unmounted, or an older copy: the epoch fails, a restart there too, and back in place all rows come."""
    real, other, base = (tmp_path / name for name in ("real", "other", "base"))
    real.mkdir()
    base.symlink_to(real)
    world = World(open_store=StoreAddress(base_path=str(base)))
    driver = world.driver()

    def run(number, driver):
        driver.run(micro_batch(number), world.job(records(f"{number}", bucket="x")))

    run(0, driver)
    if batches:
        shutil.copytree(real, other)
    else:
        other.mkdir()
    run(1, driver)
    base.unlink()
    base.symlink_to(other)
    for after in (driver, world.driver()):
        with pytest.raises(StateCorruptError) as raised:
            run(2, after)
        assert raised.value.code == "GAP"
    base.unlink()
    base.symlink_to(real)
    driver = world.driver()
    run(2, driver)
    run(3, driver)
    assert sorted(file.read_text() for file in real.glob("x/part-*")) == ["0\n", "1\n", "2\n", "3\n"]
    assert len([*other.glob("x/part-*")]) == batches


def test_other_offsets_under_a_known_batch_id_are_refused():
    """A checkpoint that was rolled back would lose rows in silence elsewhere; here it stops."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    with pytest.raises(CheckpointMismatchError, match="was rolled back, edited or cloned"):
        world.driver().run(micro_batch(0, fingerprint="f" * 64), world.job(records("2")))
    assert world.rows() == ["1"]


def test_another_number_of_rows_is_refused():
    """A query that is not deterministic stops before it goes on from a wrong state."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1", "2")))
    with pytest.raises(ReplayMismatchError, match="committed with 2 rows, its replay has 1"):
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert world.rows() == ["1", "2"]


def test_keep_first_goes_on_with_what_was_committed(caplog):
    """Who accepts it keeps the first outcome, and a warning says so."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1", "2")))
    driver = world.driver(on_replay_mismatch=OnReplayMismatch.KEEP_FIRST)
    assert driver.run(micro_batch(0), world.job(records("1"))).rows == 2
    assert "kept as committed" in caplog.text


def test_a_second_call_for_a_batch_in_one_run_is_refused():
    """One sink, one DataFrame, one call per batch: a second DataFrame would be dropped as a replay."""
    world = World()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1")))
    with pytest.raises(ConfigError, match="called twice for batch 0") as raised:
        driver.run(micro_batch(0), world.job(records("2")))
    assert raised.value.code == "SECOND_CALL"


def test_a_second_call_is_refused_after_a_replay_too():
    """A restart does not turn the second call of a batch into its replay, which would lose the rows."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("a"), run_id="first"))
    restarted = world.driver()
    assert restarted.run(micro_batch(0), world.job(records("a"), run_id="second")).replayed
    with pytest.raises(ConfigError) as raised:
        restarted.run(micro_batch(0), world.job(records("b"), run_id="second"))
    assert raised.value.code == "SECOND_CALL"


def test_a_returning_query_is_refused_once_its_records_are_folded():
    """Several queries may append, but none may come back when nobody knows what it has written."""
    world = World(plan=plan_of(policy=keep_open()))
    loop = world.driver(on_new_query=OnNewQuery.APPEND)
    loop.run(micro_batch(7), world.job(records("a")))
    for number in range(160):
        loop.run(micro_batch(number, query_id="other"), world.job(records("b")))
    with pytest.raises(ReplayTooOldError) as raised:
        world.driver(on_new_query=OnNewQuery.APPEND).run(micro_batch(7), world.job(records("a")))
    assert raised.value.code == "REPLAY_TOO_OLD"
    first = micro_batch(0, query_id="new")  # nothing of its query can have been written before
    assert not world.driver(on_new_query=OnNewQuery.APPEND).run(first, world.job(records("c"))).replayed


def test_a_replay_older_than_the_records_is_refused():
    """What cannot be compared any more is not skipped in silence."""
    world = World()
    driver = world.driver(keep_batches=10)
    for batch_id in range(60):
        driver.run(micro_batch(batch_id), world.job(records(str(batch_id))))
    with pytest.raises(ReplayTooOldError, match="batch 3 comes back, the newest is 59") as raised:
        world.driver(keep_batches=10).run(micro_batch(3), world.job(records("3")))
    assert raised.value.code == "REPLAY_TOO_OLD"
    assert world.driver().run(micro_batch(55), world.job(records("55"))).replayed
    assert len(world.rows()) == 60


def named(world, txn_id="a"):
    """The ledger of a write that appends, and what its record says."""
    return batch_write(SaveMode.APPEND, world.uid, txn_id, world.ids)


def test_one_txn_id_is_written_once():
    """A second write with the same name changes nothing, in another process too."""
    world = World()
    for replayed in (False, True):
        sink_id, cause = named(world)
        outcome = world.driver(sink_id).run(cause, world.job(records("1")))
        assert (outcome.replayed, outcome.rows) == (replayed, 1)
    assert world.rows() == ["1"]


@pytest.mark.parametrize("dies_at", ["publish", "_txns"])
def test_a_txn_that_crashed_after_its_record_is_carried_through(dies_at):
    """The second call publishes what the first had decided, or takes its place; the rows are there once."""
    world = World()
    dies = Fault(moment=Moment.BEFORE, error=Killed())
    world.fault = lambda operation, path: dies if operation == dies_at or dies_at in path else None
    sink_id, cause = named(world)
    if dies_at == "_txns":  # found by the look before the tasks as well, which only reads
        world.fault = lambda operation, path: (
            dies if operation == "put_if_absent" and "_txns" in path else None
        )
    with pytest.raises(Killed):
        world.driver(sink_id).run(cause, world.job(records("1")))
    world.fault = no_fault
    again = world.driver(sink_id).run(named(world)[1], world.job(records("1")))
    assert again.replayed is (dies_at == "publish")
    assert world.rows() == ["1"]
    world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == ["1"]
    assert world.hidden() == []


def test_a_publish_that_fails_for_a_while_is_retried():
    """Each file by itself, with growing pauses, without holding back the others."""
    world = World()
    world.fault = on("publish", error=StorageError("busy", code="BUSY"), times=3)
    world.driver().run(micro_batch(0), world.job(records("1", bucket="a"), records("2", bucket="b")))
    assert world.rows() == ["1", "2"]
    assert world.clock.slept == sorted(world.clock.slept)
    assert len(world.clock.slept) == 2


def test_a_publish_that_never_works_is_not_reported_as_done():
    """After the last retry the epoch fails, stays decided, and a restart carries it through."""
    world = World()
    world.fault = on("publish", error=StorageError("busy", code="BUSY"), times=99)
    with pytest.raises(CommitFailedError, match="the epoch stays decided"):
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert world.clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    world.fault = no_fault
    assert world.driver().run(micro_batch(0), world.job(records("1"))).replayed
    assert world.rows() == ["1"]


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("path", [".record", ".complete"])
@pytest.mark.parametrize("code", ["UNAVAILABLE", "PUT_UNKNOWN"])
def test_a_ledger_that_is_throttled_is_waited_for(moment, path, code):
    """A store that asks to slow down at *decide* or *complete* ends no query; the epoch is written once."""
    world = World()
    error = CommitStateUnknown if code == "PUT_UNKNOWN" else StorageError
    world.fault = on("put_if_absent", moment, path=path, error=error("slow down", code=code), times=5)
    world.driver().run(micro_batch(0), world.job(records("1")))
    assert world.rows() == ["1"]
    assert world.clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8]
    assert world.driver().recover() is None


@pytest.mark.parametrize("operation", ["list", "read"])
def test_a_chain_that_is_throttled_when_it_is_read_is_waited_for(operation):
    """A restart does not end because the store is busy while the newest record is looked for."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    world.fault = on(operation, path="_filesink", error=StorageError("busy", code="UNAVAILABLE"), times=3)
    world.driver().run(micro_batch(1), world.job(records("2")))
    assert world.rows() == ["1", "2"]
    assert len(world.clock.slept) == 3


def test_an_outage_is_waited_for_once():
    """A store that is gone holds the lock for one patience, not for one after each call that fails."""
    world = World()
    driver = world.driver()
    away = Fault(moment=Moment.BEFORE, error=StorageError("away", code="UNAVAILABLE"))
    world.fault = lambda operation, path: away if "_filesink" in path and operation != "list" else None
    with pytest.raises(StorageError):
        driver.run(micro_batch(0), world.job(records("1")))
    assert world.clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    world.fault = no_fault
    driver.run(micro_batch(0), world.job(records("1")))
    assert world.rows() == ["1"]


def test_a_client_that_is_slow_to_fail_is_not_asked_ten_times():
    """Clients repeat requests for minutes by themselves: a minute after the first failure it is enough."""
    world = World()
    tries = []

    def slow(operation, path):
        if operation != "publish":
            return None
        tries.append(path)
        world.clock.now += 25_000
        return Fault(moment=Moment.BEFORE, error=StorageError("no answer", code="UNAVAILABLE"))

    world.fault = slow
    with pytest.raises(CommitFailedError):
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert len(tries) == 4


@pytest.mark.parametrize("code", ["PERMISSION", "READ_ONLY", "NO_BUCKET", "EXPIRED_CREDENTIALS"])
def test_what_somebody_has_to_mend_is_not_waited_for(code):
    """The lock is not held for half a minute because of a permission, neither before *decide* nor after."""
    world = World()
    refused = StorageError("Permission denied", code=code)
    world.fault = on("put_if_absent", path=".record", error=refused, times=99)
    with pytest.raises(StorageError, match="Permission denied"):
        world.driver().run(micro_batch(0), world.job(records("1")))
    world.fault = on("publish", error=refused, times=99)
    with pytest.raises(
        CommitFailedError, match=f"The first failed with StorageError .{code}. Perm"
    ) as raised:
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert (raised.value.code, raised.value.__cause__) == ("PERMANENT", refused)
    assert world.clock.slept == []
    world.fault = no_fault
    assert world.driver().run(micro_batch(0), world.job(records("1"))).replayed
    assert world.rows() == ["1"]


def test_the_first_failure_of_a_commit_is_named():
    """What Spark shows says why, so that nobody needs the log of a driver that is gone."""
    world = World()
    world.fault = on("publish", error=StorageError("the switch is on fire", code="TIMEOUT"), times=99)
    with pytest.raises(CommitFailedError, match=r"StorageError .TIMEOUT. the switch is on fire"):
        world.driver().run(micro_batch(0), world.job(records("1")))


def test_the_first_failure_of_an_announcement_is_named():
    """As of files: partitions that could not be announced say why."""
    commit = PartitionCommit(policies=[SuccessFilePolicy()])
    world = World(partition_commit=commit)
    refused = StorageError("Permission denied", code="PERMISSION")
    world.fault = on("put_if_absent", path="_SUCCESS", error=refused, times=99)
    with pytest.raises(CommitFailedError, match=r"StorageError .PERMISSION. Permission denied"):
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert world.clock.slept == []


def test_new_files_are_looked_at_with_patience():
    """A store that is busy while the driver verifies what tasks report fails no epoch."""
    world = World()
    world.fault = on("verify", error=StorageError("slow down", code="UNAVAILABLE"), times=3)
    world.driver().run(micro_batch(0), world.job(records("1")))
    assert (world.rows(), len(world.clock.slept)) == (["1"], 3)


def test_others_are_published_beside_what_is_refused():
    """One directory without permission does not keep the rows of the others from readers."""
    world = World()
    refused = StorageError("Permission denied", code="PERMISSION")
    world.fault = on("publish", path="a/", error=refused, times=99)
    with pytest.raises(CommitFailedError, match="1 of 2 pieces"):
        world.driver().run(micro_batch(0), world.job(records("1", bucket="a"), records("2", bucket="b")))
    assert world.rows() == ["2"]


def test_lost_bytes_of_a_decided_epoch_are_named():
    """If decided bytes are gone, no restart passes over it."""
    world = World()
    world.fault = on("publish")
    with pytest.raises(Killed):
        world.driver().run(micro_batch(0), world.job(records("1")))
    del world.files.files[world.hidden()[0]]
    for _ in range(2):
        with pytest.raises(StagedDataLost):
            world.driver().run(micro_batch(0), world.job(records("1")))


def test_what_another_driver_has_decided_is_looked_for_first():
    """Nothing is published of it if bytes are gone, though this driver has just seen an epoch through."""
    world = World()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("0")))

    rival = world.job(records("1", bucket="a"), records("2", bucket="b"), run_id="rival")

    def meanwhile():
        world.fault = on("publish")
        with pytest.raises(Killed):
            world.driver().run(micro_batch(1), rival)
        world.fault = no_fault
        (lost,) = (path for path in world.hidden() if path.startswith("b/"))
        del world.files.files[lost]
        yield records("1", bucket="a")

    with pytest.raises(StagedDataLost, match="Nothing more of the epoch was published"):
        driver.run(micro_batch(1), world.job(meanwhile()))
    assert world.rows() == ["0"]


def test_what_another_driver_published_may_have_been_replaced_since():
    """A slow driver whose epoch another one has completed reports no loss, though its files are gone."""
    world = World()

    def another_publishes_and_the_files_are_replaced(operation, _path):
        if operation == "publish":
            world.fault = no_fault
            assert world.driver().recover().replayed
            for path in world.visible():
                del world.files.files[path]

    world.fault = another_publishes_and_the_files_are_replaced
    assert world.driver().run(micro_batch(0), world.job(records("1"))).rows == 1


def test_a_damaged_record_stops_everything():
    """An unreadable record is neither skipped nor overwritten, and no task runs."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    world.files.files["_filesink/uid-u/000000000000.record"].content = b"x"
    before = dict(world.files.files)
    job = world.job(records("2"))
    with pytest.raises(StateError):
        world.driver().run(micro_batch(1), job)
    assert job.executions == 0
    assert world.files.files == before


def test_a_report_that_the_driver_cannot_see_is_refused():
    """A task that wrote to another host's disk is found out before anything is decided."""
    world = World()
    world.fault = on("verify", error=StagedDataLost("gone", code="STAGED_DATA_LOST"))
    with pytest.raises(StagedDataLost, match="storage that all of them share") as raised:
        world.driver().run(micro_batch(0), world.job(records("1")))
    assert raised.value.code == "NOT_SHARED"
    assert world.driver().ledger.head() is None


def test_upkeep_closes_by_age():
    """Without data a part is closed once it is old enough by the driver's clock, in an epoch of its own."""
    world = open_parts()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1")))
    world.clock.now = 999
    assert driver.upkeep() is None
    world.clock.now = 1000
    outcome = driver.upkeep()
    assert (outcome.cause, outcome.rows) == (Upkeep(), 0)
    assert world.rows() == ["1"]
    assert driver.upkeep() is None
    assert driver.run(micro_batch(0), world.job(records("1"), run_id="run-2")).replayed


def test_upkeep_closes_by_inactivity():
    """A part that nobody has written to for long enough is closed though it is young."""
    world = World(plan=plan_of(policy=keep_open(rollover_interval=10_000, inactivity_interval=500)))
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1"), records("2")))
    world.clock.now = 400
    driver.run(micro_batch(1), world.job(records("3")))
    world.clock.now = 500
    driver.upkeep()
    assert world.rows() == ["2"]
    world.clock.now = 900
    driver.upkeep()
    assert world.rows() == ["1", "2", "3"]


def test_upkeep_gives_way():
    """Upkeep does nothing while an epoch is at work."""
    world = open_parts()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1")))
    world.clock.now = 5000
    seen = []

    def batches():
        seen.append(driver.upkeep())
        yield records("2", bucket="b")

    driver.run(micro_batch(1), world.job([], batches()))
    assert seen == [None]


def test_finish_closes_everything_once():
    """The end of input makes every row visible; a second finish has nothing to do."""
    world = open_parts()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1", bucket="a"), records("2", bucket="b")))
    assert driver.finish().cause == Finish()
    assert world.rows() == ["1", "2"]
    assert driver.finish() is None
    assert world.hidden() == []


def test_finish_waits_for_upkeep():
    """The end of input touches nothing while the timer's epoch is at work, and closes the rest after it."""
    world = open_parts()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("old", bucket="a")))
    world.clock.now = 500
    driver.run(micro_batch(1), world.job(records("young", bucket="b")))
    world.clock.now = 1000
    published, go_on, touched = threading.Event(), threading.Event(), threading.Event()

    def look(operation, _path):
        if threading.current_thread().name.startswith("finisher"):
            touched.set()
        elif operation == "publish" and not published.is_set():
            published.set()
            go_on.wait(30)

    world.fault = look
    with ThreadPoolExecutor(1) as timer, ThreadPoolExecutor(1, thread_name_prefix="finisher") as finisher:
        upkeep = timer.submit(driver.upkeep)
        assert published.wait(30)
        finish = finisher.submit(driver.finish)
        early = touched.wait(0.5)
        go_on.set()
    assert not early
    assert (upkeep.result().slot, finish.result().slot) == (2, 3)
    assert world.rows() == ["old", "young"]


def test_a_batch_write_leaves_nothing_open():
    """Whatever the policy, all rows of a batch write are visible when it returns."""
    world = open_parts()
    world.driver().run(BatchWrite(), world.job(records("1"), records("2")))
    assert world.rows() == ["1", "2"]
    assert world.hidden() == []


def test_a_change_of_format_keeps_old_parts_readable():
    """What was begun as CSV is published as CSV, after the sink was built for JSON."""
    world = World(plan=plan_of(Encoder.csv(), keep_open()))
    world.driver().run(micro_batch(0), world.job(records("1"), records("2")))
    world.plan = plan_of(Encoder.json_lines(), keep_open())
    driver = world.driver()
    driver.run(micro_batch(1), world.job(records("3")))
    driver.finish()
    endings = sorted((path.rpartition(".")[2], data) for path, data in world.visible().items())
    assert endings == [("csv", b"1\n"), ("csv", b"2\n"), ("json", b'{"value":"3"}\n')]


def test_a_replay_with_other_partitioning_after_an_undecided_attempt():
    """Lanes belong to partition indexes of whichever attempt was decided; no row depends on them."""
    world = open_parts()
    world.driver().run(micro_batch(0), world.job(records("1"), records("2"), records("3")))
    world.fault = on("put_if_absent", path=".record")
    with pytest.raises(Killed):
        world.driver().run(micro_batch(1), world.job(records("4"), records("5"), records("6")))
    world.fault = no_fault
    driver = world.driver()
    driver.run(micro_batch(1), world.job([records("4", "5"), records("6")]))
    driver.finish()
    assert sorted(world.visible().values()) == [b"1\n4\n5\n6\n", b"2\n", b"3\n"]
    assert world.hidden() == []


def test_rows_after_a_crash_appear_once():
    """Flink's truncate case: what a dead attempt appended to an open part appears nowhere."""
    world = World(plan=plan_of(policy=keep_open(part_size=10)))
    world.driver().run(micro_batch(0), world.job(records("element")))  # 8 bytes with the line feed
    world.fault = on("put_if_absent", path=".record")
    with pytest.raises(Killed):
        world.driver().run(micro_batch(1), world.job(records("lost--2", "lost--3")))
    world.fault = no_fault
    driver = world.driver()
    driver.run(micro_batch(1), world.job(records("again-4", "again-5")))
    driver.run(micro_batch(2), world.job(records("again-6")))
    driver.finish()
    assert sorted(world.visible().values()) == [b"again-5\nagain-6\n", b"element\nagain-4\n"]
    assert world.hidden() == []


@pytest.mark.parametrize("policy", [None, keep_open()], ids=["closed", "open"])
def test_twins_and_retries_leave_nothing(policy):
    """What speculative twins and failed attempts wrote is swept after the epoch, open parts or not."""
    world = World(plan=plan_of(policy=policy))
    driver = world.driver(history=History.NONE)
    twins = world.job(records("1", bucket="a"), attempts=[(0, 0), (0, 0)], twins=Losers.POSSIBLE)
    driver.run(micro_batch(0), twins)
    retried = world.job(records("2", bucket="b"), attempts=[(0, 0), (0, 1)])
    driver.run(micro_batch(1), retried)
    named = 0 if policy is None else 2
    assert len(world.hidden()) == named
    driver.finish()
    assert world.rows() == ["1", "2"]
    assert world.hidden() == []


def test_sweeping_that_fails_does_not_fail_the_epoch(caplog):
    """The epoch is complete; what could not be removed now is removed after the next one."""
    world = World()
    world.fault = on("put_if_absent", path=".record")
    with pytest.raises(Killed):
        world.driver().run(micro_batch(0), world.job(records("1")))
    driver = world.driver()
    world.fault = on("discard", error=StorageError("busy", code="BUSY"))
    driver.run(micro_batch(0), world.job(records("1")))
    assert "the next epoch tries again" in caplog.text
    assert len(world.hidden()) == 1
    driver.run(micro_batch(1), world.job(records("2")))
    assert world.hidden() == []


def test_the_epoch_after_a_sweep_that_failed_looks_everywhere():
    """Of a driver that has swept before, too: what a twin has left in another bucket is gone then."""
    world = World()
    driver = world.driver(history=History.NONE)
    driver.run(micro_batch(0), world.job(records("0")))
    world.fault = on("discard", error=StorageError("busy", code="BUSY"))
    job = world.job(records("1", bucket="a"), attempts=[(0, 0), (0, 1)], twins=Losers.POSSIBLE)
    driver.run(micro_batch(1), job)
    assert len(world.hidden()) == 1
    driver.run(micro_batch(2), world.job(records("2", bucket="b")))
    assert world.hidden() == []


def test_many_epochs_read_the_chain_once():
    """A driver that is alone reads its records once, and looks for leftovers once, whatever upkeep finds."""
    world = World()
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("0")))
    calls = []
    world.fault = lambda *call: calls.append(call)
    for batch_id in range(1, 20):
        driver.run(micro_batch(batch_id), world.job(records(str(batch_id))))
        assert driver.upkeep() is None
    read = {path for operation, path in calls if operation == "read"}
    assert read == {"_filesink/_inventory/000001.mark"}  # whether others have folded it meanwhile
    assert {path for operation, path in calls if operation == "list"} == {"_filesink/uid-u"}


def test_what_could_not_be_put_on_record_is_refused_at_once(monkeypatch):
    """A sink of one's own that announces without a codec would announce nothing, and nobody would know."""
    commit = PartitionCommit(policies=[SuccessFilePolicy()])
    world = World(partition_commit=commit)
    monkeypatch.setattr("filesink.file_sink.tiers.FileTiers.aggregated_codec", None)
    with pytest.raises(InternalError, match="aggregated_codec"):
        world.driver()
