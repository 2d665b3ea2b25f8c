"""Which loops and timers a driver keeps, and for how long. Needs no Spark that runs."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from filesink import ConfigError, IdentityError
from filesink.commit.replay import OnGap
from filesink.ledger.record import BatchWrite
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy
from filesink.ports import SerialRunner
from filesink.save_mode import SaveMode
from filesink.spark import engine as engine_module
from filesink.spark import engine_options as options_module
from filesink.spark import epoch_loops as loops_module
from filesink.spark.engine import SparkEngine
from filesink.spark.engine_options import EngineOptions, open_loop
from filesink.spark.epoch_loops import EpochLoops
from filesink.spark.query_internals import RunIds
from filesink.spark.runner import SparkRunner
from tests.fakes import QUERY, SCHEMA, World, keep_open, micro_batch, plan_of, records

CHAIN = "uid-u"
SESSION = SimpleNamespace()


def run_of(query: str, run: str = "run-1") -> RunIds:
    """One run of a query."""
    return RunIds(query_id=query, run_id=run)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The ids of the queries that run; after the test, none does."""
    ids: set[str] = set()
    monkeypatch.setattr(loops_module, "is_active", lambda _session, query_id: query_id in ids)
    yield ids
    ids.clear()


def loops_of(world: World, *, interval: float = 0.01) -> EpochLoops:
    """The chains of a driver; upkeep looks all the time."""
    return EpochLoops(
        lambda sink_id, _session: world.driver(sink_id), note=lambda _outcome: None, interval=interval
    )


def eventually(claim: Callable[[], bool]) -> bool:
    """Whether ``claim`` comes true within half a minute."""
    end = time.monotonic() + 30
    while not claim():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def timers() -> Callable[[], int]:
    """How many threads of timers there are that the test has started."""
    earlier = set(threading.enumerate())
    return lambda: sum(one.name == "filesink-upkeep" for one in set(threading.enumerate()) - earlier)


def test_the_end_of_one_query_is_not_that_of_another(running):
    """A second query of a uid, which is refused and ends, leaves the first its upkeep."""
    world = World(plan=plan_of(policy=keep_open()))
    loops = loops_of(world)
    running |= {"first", "second"}
    loops.watch(CHAIN, SESSION, "first")
    with loops.use(CHAIN, SESSION) as loop:
        loop.run(micro_batch(0), world.job(records("1")))
    loops.watch(CHAIN, SESSION, "second")
    running.remove("second")
    loops.release(CHAIN)
    assert world.rows() == []
    world.clock.now = 10_000
    assert eventually(lambda: world.rows() == ["1"])
    with loops.use(CHAIN, SESSION) as same:
        assert same is loop


def test_upkeep_that_has_closed_something_is_noted():
    """Each epoch once, and not that there was nothing to do."""
    world, noted = World(plan=plan_of(policy=keep_open())), []
    loops = EpochLoops(lambda sink_id, _session: world.driver(sink_id), note=noted.append, interval=60)
    with loops.use(CHAIN, SESSION) as loop:
        loop.run(micro_batch(0), world.job(records("1")))
    for world.clock.now in (0, 10_000, 20_000):
        loops._upkeep(CHAIN, SESSION)
    assert [outcome.slot for outcome in noted] == [1]


def test_a_run_goes_on_from_what_others_have_left(running):
    """A query whose end nobody told starts again after another process: its first batch succeeds."""
    world = World()
    loops = loops_of(world, interval=60)
    running.add(QUERY)
    loops.begin(CHAIN, run_of(QUERY))
    loops.watch(CHAIN, SESSION, QUERY)
    with loops.use(CHAIN, SESSION) as loop:
        loop.run(micro_batch(0), world.job(records("0")))
    world.driver().run(BatchWrite(), world.job(records("other")))
    loops.begin(CHAIN, run_of(QUERY, "run-2"))
    with loops.use(CHAIN, SESSION) as loop:
        loop.run(micro_batch(1), world.job(records("1"), run_id="run-2"))
    assert world.rows() == ["0", "1", "other"]


def test_a_chain_stays_open_while_its_runs_go_on(running):
    """Neither the next batch of a run, nor a run of a second query, takes the loop from one that runs."""
    loops = loops_of(World(), interval=60)
    running |= {"first", "second"}
    for query in ("first", "second", "first", "second"):
        loops.begin(CHAIN, run_of(query))
        loops.watch(CHAIN, SESSION, query)
        with loops.use(CHAIN, SESSION) as loop:
            if query == "first":
                first = loop
            assert loop is first


def test_queries_of_one_sink_do_not_let_go_of_their_chains():
    """Batches of two queries that take turns go on in the loops of their own, with or without a timer."""
    loops = loops_of(World())
    found = {"a": set(), "b": set()}
    for query in ("a", "b", "a", "b"):
        loops.begin(f"stream-{query}", run_of(query, f"run-{query}"))
        with loops.use(f"stream-{query}", SESSION) as loop:
            found[query].add(loop)
    assert [len(each) for each in found.values()] == [1, 1]


def test_a_timer_is_bound_to_the_session_of_its_run(monkeypatch, timers):
    """After a replaced session the timer asks the new one, so that parts are closed though no batch comes."""
    world = World(plan=plan_of(policy=keep_open()))
    loops = loops_of(world)
    old, new = SimpleNamespace(runs=True), SimpleNamespace(runs=True)
    monkeypatch.setattr(loops_module, "is_active", lambda session, _query_id: session.runs)
    for session, run in ((old, "run-1"), (new, "run-2")):
        loops.begin(CHAIN, run_of(QUERY, run))
        loops.watch(CHAIN, session, QUERY)
        with loops.use(CHAIN, session) as loop:
            loop.run(micro_batch(int(session is new)), world.job(records(run), run_id=run))
    assert timers() == 1
    old.runs = False
    world.clock.now = 10_000
    assert eventually(lambda: world.rows() == ["run-1", "run-2"])
    new.runs = False
    loops.release(CHAIN)
    assert timers() == 0


def test_a_run_waits_until_the_chain_is_its_own():
    """Who comes second with a run does not get the loop that the first is still letting go."""
    closing, closed = threading.Event(), threading.Event()

    def close() -> None:
        closing.set()
        closed.wait(30)

    loops = EpochLoops(lambda *_: SimpleNamespace(close=close), note=lambda _outcome: None, interval=60)
    with loops.use(CHAIN, SESSION):
        pass
    came: list[str] = []

    def come(name: str) -> None:
        loops.begin(CHAIN, run_of(QUERY))
        came.append(name)

    threads = [threading.Thread(target=come, args=(name,)) for name in ("batch", "start")]
    threads[0].start()
    assert closing.wait(30)
    threads[1].start()
    threads[1].join(0.2)
    assert came == []
    closed.set()
    for thread in threads:
        thread.join(30)
    assert sorted(came) == ["batch", "start"]


def test_the_last_query_that_ends_takes_loop_and_timer_along(running, timers):
    """A chain that nobody needs is read again by whoever comes next, and no thread stays."""
    loops = loops_of(World(), interval=60)
    running.add("q")
    loops.watch(CHAIN, SESSION, "q")
    loops.watch(CHAIN, SESSION, "q")
    assert timers() == 1
    with loops.use(CHAIN, SESSION) as loop:
        pass
    running.clear()
    loops.release(CHAIN)
    assert timers() == 0
    with loops.use(CHAIN, SESSION) as other:
        assert other is not loop


def test_a_restart_keeps_the_timer_that_its_first_run_leaves(running, timers):
    """The end of a run that a new one has replaced, told late, does not stop the upkeep of the new one."""
    loops = loops_of(World(), interval=60)
    running.add("q")
    loops.watch(CHAIN, SESSION, "q")
    loops.release(CHAIN)
    assert timers() == 1
    running.clear()
    loops.release(CHAIN)
    assert timers() == 0


def test_two_threads_in_one_chain_share_its_loop():
    """The first of two writes that ends does not close what the other works with; the last does."""
    loops = loops_of(World())
    with loops.use(CHAIN, SESSION) as first:
        with loops.use(CHAIN, SESSION):
            pass
        loops.release(CHAIN)
        with loops.use(CHAIN, SESSION) as second:
            assert second is first
    loops.release(CHAIN)
    with loops.use(CHAIN, SESSION) as third:
        assert third is not first


def test_timers_end_with_the_chains_they_belong_to(running, timers):
    """A sink that is made for every batch leaves no thread behind, though the query runs on."""
    running.add("q")
    for _ in range(10):
        loops = loops_of(World())
        loops.watch(CHAIN, SESSION, "q")
    assert timers() > 0
    del loops
    gc.collect()
    assert eventually(lambda: timers() == 0)


class Session:
    """What an engine asks of a session: settings, and whether it was stopped."""

    def __init__(self) -> None:
        self.conf = SimpleNamespace(get=lambda _name, default=None: default)
        self.sparkContext = SimpleNamespace(_jsc=object())

    def stop(self) -> None:
        """See Spark."""
        self.sparkContext._jsc = None


def test_sinks_that_are_made_for_each_batch_go_with_their_threads(running, timers):
    """Nothing that a timer holds keeps an engine alive."""
    running.add("q")
    for _ in range(10):
        options = EngineOptions(check_interval_ms=10)
        SparkEngine(World().tiers(), options)._join(CHAIN, Session(), run_of("q"))
    gc.collect()
    assert eventually(lambda: timers() == 0)


def frame(*values: str) -> SimpleNamespace:
    """A DataFrame of a world: what an engine asks of one before its job."""
    return SimpleNamespace(isStreaming=False, sparkSession=Session(), records=records(*values))


@pytest.fixture
def two_sinks(monkeypatch: pytest.MonkeyPatch) -> tuple[World, SparkEngine, SparkEngine]:
    """Two drivers of one uid whose frames are the records of a world."""
    world = World()
    monkeypatch.setattr(engine_module, "check_frame", lambda _df: None)
    monkeypatch.setattr(SparkEngine, "check", lambda _self, _df: None)
    monkeypatch.setattr(SparkEngine, "_job", lambda _self, df, run_id: world.job(df.records, run_id=run_id))
    monkeypatch.setattr(options_module, "SparkRunner", lambda _session, _name: None)
    return world, SparkEngine(world.tiers()), SparkEngine(world.tiers())


def test_two_sinks_of_one_uid_may_write_in_turns(two_sinks):
    """A batch write goes on from what other drivers have written since the last one of this sink."""
    world, one, other = two_sinks
    for number in range(6):
        sink = other if number % 2 else one
        assert isinstance(sink.write(frame(str(number))).cause, BatchWrite)
    assert world.rows() == ["0", "1", "2", "3", "4", "5"]


@dataclass
class BatchJob:
    """The job of a micro-batch of a world."""

    df: Any
    world: World
    run_id: str
    offsets: str = ""
    rows_before: int | None = None
    wanted: Any = None
    schema = SCHEMA
    time_zone = "UTC"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world.job(self.df.records, run_id=self.run_id), name)


class Stream:
    """``foreachBatch`` of one engine, in a process whose sessions come and go."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine = SparkEngine(world.tiers())
        self.session = Session()
        self.run = "run-1"
        self.opened: list[Session] = []
        monkeypatch.setattr(engine_module, "check_frame", lambda _df: None)
        monkeypatch.setattr(engine_module, "current_ids", lambda _df: run_of(QUERY, self.run))
        monkeypatch.setattr(engine_module, "open_run", self._open_run)
        monkeypatch.setattr(options_module, "SparkRunner", self._runner)
        monkeypatch.setattr(engine_module.SparkSession, "active", lambda: self.session)
        monkeypatch.setattr(SparkEngine, "check", lambda _self, _df: None)
        monkeypatch.setattr(SparkEngine, "_job", lambda _self, df, run_id: BatchJob(df, world, run_id))

    def _open_run(self, _df: object, ids: RunIds) -> SimpleNamespace:
        return SimpleNamespace(ids=ids, micro_batch=lambda number: (micro_batch(number), ""))

    def _runner(self, session: Session, _name: str) -> SerialRunner:
        self.opened.append(session)
        return SerialRunner()

    def batch(self, batch_id: int) -> None:
        """One micro-batch, of a row that is its number."""
        df = frame(str(batch_id))
        df.schema, df.sparkSession = "the same", self.session
        self.engine.foreach_batch(df, batch_id)

    def replace_session(self) -> None:
        """``spark.stop()``, and a new one."""
        self.session.stop()
        self.session = Session()


@pytest.fixture
def stream(running, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Stream]]:
    """A query that runs, with parts that stay open."""
    running.add(QUERY)
    world = World(plan=plan_of(policy=keep_open()))
    stream = Stream(world, monkeypatch)
    yield world, stream
    running.clear()
    stream.engine._loops.release(CHAIN)


def test_a_query_starts_again_in_a_new_session(stream):
    """The loop of the next run works with the session of that run; batches of one run share a loop."""
    _, query = stream
    first = query.session
    query.batch(0)
    query.batch(1)
    query.replace_session()
    query.run = "run-2"
    query.batch(2)
    query.batch(3)
    assert query.opened == [first, query.session]


def test_a_function_of_the_user_s_may_leave_a_batch_out(stream):
    """Whoever calls foreach_batch knows why there is no call for a batch; the next ones go on."""
    world, query = stream
    query.batch(0)
    query.batch(2)
    query.engine.finish()
    assert world.rows() == ["0", "2"]


def test_a_query_starts_again_after_another_process(stream):
    """With foreachBatch, too, one restart is enough to go on from what another driver has written."""
    world, query = stream
    query.batch(0)
    world.driver().run(BatchWrite(), world.job(records("other")))
    query.run = "run-2"
    query.batch(1)
    query.engine.finish()
    assert world.rows() == ["0", "1", "other"]


def test_a_write_after_a_query_goes_on_from_what_others_have_left(stream, running):
    """A batch write of a sink whose query has ended is not taken for a rival of another process."""
    world, query = stream
    query.batch(0)
    running.clear()
    world.driver().run(BatchWrite(), world.job(records("other")))
    query.engine.write(frame("mine"))
    assert "mine" in world.rows()


def test_finish_reads_what_others_have_left(stream, running):
    """finish() after a query that ended knows what another process has done with its parts meanwhile."""
    world, query = stream
    query.batch(0)
    running.clear()
    world.driver().run(micro_batch(1), world.job(records("1")))
    query.engine.finish()
    assert world.rows() == ["0", "1"]


def test_finish_works_with_a_session_that_runs(stream, running):
    """A session that was replaced after the query had ended is not asked any more."""
    world, query = stream
    query.batch(0)
    running.clear()
    query.replace_session()
    query.engine.finish()
    assert query.opened[1:] == [query.session]
    assert world.rows() == ["0"]


def test_finish_needs_no_session_that_runs(stream, running, monkeypatch):
    """What is open can be closed after spark.stop(), as far as no job is needed for it."""
    world, query = stream
    query.batch(0)
    running.clear()
    query.session.stop()

    def none() -> Session:
        raise PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})

    monkeypatch.setattr(engine_module.SparkSession, "active", none)
    query.engine.finish()
    assert world.rows() == ["0"]


def test_a_job_in_a_stopped_session_is_refused():
    """The error names the cause and the way out instead of a trace of Java's."""
    session = Session()
    session.stop()
    with pytest.raises(ConfigError) as refused:
        SparkRunner(session).run(str, [1, 2])
    assert refused.value.code == "SESSION_STOPPED"
    assert SparkRunner(session).run(str, []) == []


def test_whether_gaps_are_refused_is_said_with_each_batch():
    """A loop that was opened for a batch write refuses missing batches of a query that start() made."""
    world = World()
    loop = world.driver()
    loop.run(BatchWrite(), world.job(records("a")))
    loop.run(micro_batch(0), world.job(records("b")), on_gap=OnGap.REFUSE)
    with pytest.raises(IdentityError) as refused:
        loop.run(micro_batch(2), world.job(records("d")), on_gap=OnGap.REFUSE)
    assert refused.value.code == "BATCHES_MISSING"
    loop.run(micro_batch(2), world.job(records("d")), on_gap=OnGap.LOG)
    assert world.rows() == ["a", "b", "d"]


def test_a_batch_never_gets_the_run_of_another_query(monkeypatch):
    """Two queries may share a sink: what the thread of one notes is not taken for its own by the other."""
    engine = SparkEngine(World().tiers())
    df = SimpleNamespace(schema="the same")

    def held(ids: object) -> tuple[SimpleNamespace, SimpleNamespace]:
        return SimpleNamespace(ids=ids), SimpleNamespace(df=df)

    class Overtaken:
        """Ids that are compared just when the other thread gets its turn."""

        __hash__ = None

        def __eq__(self, _other: object) -> bool:
            engine._run = held("other")
            return True

    mine = held(Overtaken())
    engine._run = mine
    monkeypatch.setattr(engine_module, "current_ids", lambda _df: "mine")
    assert engine._current_run(df) is mine


def test_a_loop_that_is_let_go_is_closed():
    """What it holds, a connection to a metastore say, goes with it, when nobody works in it any more."""
    closed = []
    loop = SimpleNamespace(close=lambda: closed.append("loop"))
    loops = EpochLoops(lambda _sink_id, _session: loop, note=lambda _outcome: None, interval=60)
    with loops.use(CHAIN, SESSION):
        loops.release(CHAIN)
        assert closed == []
    loops.release(CHAIN)
    loops.release(CHAIN)
    assert closed == ["loop"]


class Connected(ListenerPolicy):
    """Counts how often it is closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_an_overwrite_closes_what_it_has_opened(two_sinks):
    """No chain keeps its loop, so the policies are closed with each, also with one that fails."""
    world, *_ = two_sinks
    policy = Connected(print)
    world.partition_commit = PartitionCommit(policies=[policy])
    engine = SparkEngine(world.tiers())
    engine.write(frame("1"), mode=SaveMode.OVERWRITE)
    assert policy.closed == 1
    df = frame()
    df.records = (1 / 0 for _ in "1")
    with pytest.raises(ZeroDivisionError):
        engine.write(df, mode=SaveMode.OVERWRITE)
    assert policy.closed == 2
    assert world.rows() == ["1"]


@pytest.mark.parametrize(("retained", "kept"), [("500", 500), ("7", 100), ("", 100), (None, 100)])
def test_as_many_batches_are_kept_as_spark_may_replay(retained, kept):
    """A session that retains more of its log can be sent back further; less never makes us forget."""
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda _name, default: retained or default))
    loop = open_loop(World().tiers(), EngineOptions(), CHAIN, session)
    assert loop._chain._options.keep_batches == kept
