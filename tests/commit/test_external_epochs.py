"""An engine that runs the tasks by itself: commit and abort in processes that have seen no task."""

from __future__ import annotations

import pytest

from filesink.commit.external_epochs import CollectedEpochs, counted, slot_for
from filesink.commit.replay import EpochOptions, History
from filesink.commit.task import WriteTask
from filesink.errors import ConcurrentDriverError, IdentityError, ReplayMismatchError, StorageError
from filesink.ledger.record import BatchWrite
from filesink.ports import Ports, SerialRunner
from filesink.storage.faulty import Fault, Moment
from tests.fakes import SCHEMA, World, keep_open, micro_batch, plan_of, records


class Engine:
    """Runs tasks in this process; each step has a new loop, as each has a new process in Spark."""

    def __init__(self, world):
        self.world = world
        self.schema = SCHEMA
        self.history = History.POSSIBLE

    def write(self, cause, *batches):
        """One task per batch; the slot that they were told and their results."""
        slot = self.slot(cause)
        return slot, self.run(slot, *batches)

    def slot(self, cause):
        """What a task asks for first."""
        world = self.world
        return slot_for(cause, world.ledger(), sink=world.tiers(), schema=self.schema, options=EpochOptions())

    def run(self, slot, *batches):
        """What it does then."""
        world = self.world
        if slot is None:
            parts = enumerate(batches)
            return [counted(world.tiers(), part.num_rows, subtask=i, attempt=0) for i, part in parts]
        task = WriteTask(sink=world.tiers(), sink_id=world.sink_id, slot=slot, driver_ms=0, time_zone="UTC")
        return [
            task.run_with(subtask, 0, [batch], clock=world.clock, ids=world.ids)
            for subtask, batch in enumerate(batches)
        ]

    def commit(self, cause, slot, results):
        return self._loop().commit(cause, results, slot=slot, schema=self.schema)

    def abort(self, results):
        self._loop().abort(results, files_of=self.world.sink_id)

    def _loop(self):
        world = self.world
        ports = Ports(clock=world.clock, ids=world.ids, runner=SerialRunner())
        options = EpochOptions(history=self.history)
        return CollectedEpochs(world.tiers(), world.ledger(), ports=ports, options=options)


@pytest.fixture
def engine():
    """One base path, no epoch yet."""
    return Engine(World())


def failing(operation):
    """The first call of ``operation`` fails, and so does every later one."""

    def plan(asked, path):
        del path
        failure = StorageError("no permission", code="PERMISSION")
        return Fault(moment=Moment.BEFORE, error=failure) if asked == operation else None

    return plan


def test_results_become_visible(engine):
    """Each epoch takes the next slot, and its rows appear once."""
    for number in range(3):
        cause = micro_batch(number)
        slot, results = engine.write(cause, records(f"{number}a"), records(f"{number}b"))
        outcome = engine.commit(cause, slot, results)
        assert (outcome.slot, slot, outcome.rows, outcome.replayed) == (number, number, 2, False)
    assert engine.world.rows() == ["0a", "0b", "1a", "1b", "2a", "2b"]
    assert engine.world.hidden() == []


def test_tasks_of_a_decided_epoch_only_count(engine):
    """A replay writes no file, and its rows are compared."""
    first = engine.write(micro_batch(0), records("1", "2"))
    engine.commit(micro_batch(0), *first)
    slot, results = engine.write(micro_batch(0), records("1"), records("2"))
    assert slot is None
    assert engine.world.hidden() == []
    assert engine.commit(micro_batch(0), slot, results).replayed
    slot, results = engine.write(micro_batch(0), records("1", "2", "3"))
    with pytest.raises(ReplayMismatchError):
        engine.commit(micro_batch(0), slot, results)
    assert engine.world.rows() == ["1", "2"]


def test_results_that_came_late_for_a_decided_epoch(engine):
    """Tasks that write what another process has decided meanwhile: their files are discarded."""
    slot = engine.slot(micro_batch(0))
    engine.commit(micro_batch(0), *engine.write(micro_batch(0), records("1")))
    late = engine.run(slot, records("1"))
    assert len(engine.world.hidden()) == 1
    assert engine.commit(micro_batch(0), slot, late).replayed
    assert engine.world.rows() == ["1"]
    assert engine.world.hidden() == []


@pytest.mark.parametrize("cause", [micro_batch(2), BatchWrite()], ids=["stream", "batch"])
@pytest.mark.parametrize("late", [False, True], ids=["swept by the other", "written after its sweep"])
def test_files_are_decided_in_their_own_slot_only(engine, cause, late):
    """Whoever took the slot meanwhile may be sweeping those files, so no later slot may name them."""
    engine.commit(micro_batch(0), *engine.write(micro_batch(0), records("0")))
    slot = engine.slot(cause)
    results = None if late else engine.run(slot, records("slow"))
    engine.commit(micro_batch(1), *engine.write(micro_batch(1), records("1")))
    results = results or engine.run(slot, records("slow"))
    with pytest.raises(ConcurrentDriverError):
        engine.commit(cause, slot, results)
    assert engine.world.rows() == ["0", "1"]
    assert engine.world.hidden() == []


def test_results_without_a_slot_are_never_a_new_epoch(engine):
    """Counts of a replay cannot be taken for an epoch of so many rows and no file."""
    results = [counted(engine.world.tiers(), 7, subtask=0, attempt=0)]
    with pytest.raises(ConcurrentDriverError):
        engine.commit(micro_batch(0), None, results)
    assert engine.world.ledger().head() is None


def test_what_a_losing_twin_left_is_swept_by_its_own_epoch(engine):
    """Spark runs tasks twice and tells nobody; a chain that nobody writes to again is clean all the same."""
    slot, results = engine.write(BatchWrite(), records("1", bucket="a"))
    engine.run(slot, records("1", bucket="a"))
    assert len(engine.world.hidden()) == 2
    engine.history = History.NONE
    engine.commit(BatchWrite(), slot, results)
    assert engine.world.rows() == ["1"]
    assert engine.world.hidden() == []


def test_abort_of_a_job_that_has_failed_discards(engine):
    """What tasks have reported is gone if one has no result, and the next attempt is the epoch."""
    _, results = engine.write(micro_batch(0), records("1"), records("2"))
    assert len(engine.world.hidden()) == 2
    engine.abort([*results, None])
    assert engine.world.hidden() == []
    engine.commit(micro_batch(0), *engine.write(micro_batch(0), records("1"), records("2")))
    assert engine.world.rows() == ["1", "2"]


def test_abort_after_a_commit_touches_nothing(engine):
    """A record that could not be created may appear later; the next epoch sweeps what it does not need."""
    slot, results = engine.write(micro_batch(0), records("1"))
    engine.world.fault = failing("put_if_absent")
    with pytest.raises(StorageError):
        engine.commit(micro_batch(0), slot, results)
    before = engine.world.contents()
    engine.abort(results)
    assert engine.world.contents() == before
    engine.world.fault = lambda _operation, _path: None
    engine.commit(micro_batch(0), *engine.write(micro_batch(0), records("1")))
    assert engine.world.rows() == ["1"]
    assert engine.world.hidden() == []


def test_abort_after_the_decision_touches_nothing(engine):
    """A commit that decided and could not publish is carried through by the next one."""
    slot, results = engine.write(micro_batch(0), records("1"), records("2"))
    engine.world.fault = failing("publish")
    with pytest.raises(Exception, match="could not be committed"):
        engine.commit(micro_batch(0), slot, results)
    before = engine.world.contents()
    engine.abort(results)
    assert engine.world.contents() == before
    engine.world.fault = lambda _operation, _path: None
    assert engine.commit(micro_batch(0), *engine.write(micro_batch(0), records("1"), records("2"))).replayed
    assert engine.world.rows() == ["1", "2"]
    assert engine.world.hidden() == []


def test_a_foreign_query_is_refused_before_it_writes(engine):
    """A task asks for its slot first, and a query that may not write here gets none."""
    engine.commit(micro_batch(0), *engine.write(micro_batch(0), records("1")))
    stranger = micro_batch(0, query_id="0a0b0c0d-0000-4000-8000-000000000002")
    with pytest.raises(IdentityError, match="on_new_query"):
        engine.write(stranger, records("1"))
    assert engine.world.hidden() == []


def test_parts_that_another_engine_left_open_are_closed_and_not_dropped():
    """Tasks without state say nothing about it: what the chain holds is published with the epoch."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("held")))
    assert world.rows() == []
    engine = Engine(world)
    cause = micro_batch(1)
    engine.commit(cause, *engine.write(cause, records("new")))
    assert sorted(world.rows()) == ["held", "new"]
