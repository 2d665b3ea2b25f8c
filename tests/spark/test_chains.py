"""Which loops and timers a driver keeps, and for how long. Needs no Spark that runs."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from filesink import IdentityError
from filesink.epoch_record import BatchWrite
from filesink.replay import OnGap
from filesink.spark import chains as chains_module
from filesink.spark import engine as engine_module
from filesink.spark.chains import Chains
from filesink.spark.engine import SparkEngine
from tests.fakes import World, keep_open, micro_batch, plan_of, records

CHAIN = "uid-u"
SESSION = SimpleNamespace()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The ids of the queries that run; after the test, none does."""
    ids: set[str] = set()
    monkeypatch.setattr(chains_module, "is_active", lambda _session, query_id: query_id in ids)
    yield ids
    ids.clear()


def chains_of(world: World, *, interval: float = 0.01) -> Chains:
    """The chains of a driver; upkeep looks all the time."""
    return Chains(
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
    chains = chains_of(world)
    running |= {"first", "second"}
    chains.watch(CHAIN, SESSION, "first")
    with chains.use(CHAIN, SESSION) as loop:
        loop.run(micro_batch(0), world.job(records("1")))
    chains.watch(CHAIN, SESSION, "second")
    running.remove("second")
    chains.release(CHAIN)
    assert world.rows() == []
    world.clock.now = 10_000
    assert eventually(lambda: world.rows() == ["1"])
    with chains.use(CHAIN, SESSION) as same:
        assert same is loop


def test_the_last_query_that_ends_takes_loop_and_timer_along(running, timers):
    """A chain that nobody needs is read again by whoever comes next, and no thread stays."""
    chains = chains_of(World(), interval=60)
    running.add("q")
    chains.watch(CHAIN, SESSION, "q")
    chains.watch(CHAIN, SESSION, "q")
    assert timers() == 1
    with chains.use(CHAIN, SESSION) as loop:
        pass
    running.clear()
    chains.release(CHAIN)
    assert timers() == 0
    with chains.use(CHAIN, SESSION) as other:
        assert other is not loop


def test_a_restart_keeps_the_timer_that_its_first_run_leaves(running, timers):
    """The end of a run that a new one has replaced, told late, does not stop the upkeep of the new one."""
    chains = chains_of(World(), interval=60)
    running.add("q")
    chains.watch(CHAIN, SESSION, "q")
    chains.release(CHAIN)
    assert timers() == 1
    running.clear()
    chains.release(CHAIN)
    assert timers() == 0


def test_two_threads_in_one_chain_share_its_loop():
    """The first of two writes that ends does not close what the other works with; the last does."""
    chains = chains_of(World())
    with chains.use(CHAIN, SESSION) as first:
        with chains.use(CHAIN, SESSION):
            pass
        chains.release(CHAIN)
        with chains.use(CHAIN, SESSION) as second:
            assert second is first
    chains.release(CHAIN)
    with chains.use(CHAIN, SESSION) as third:
        assert third is not first


def test_timers_end_with_the_chains_they_belong_to(running, timers):
    """A sink that is made for every batch leaves no thread behind, though the query runs on."""
    running.add("q")
    for _ in range(10):
        chains = chains_of(World())
        chains.watch(CHAIN, SESSION, "q")
    assert timers() > 0
    del chains
    gc.collect()
    assert eventually(lambda: timers() == 0)


class Session:
    """What an engine asks of a session: settings."""

    def __init__(self) -> None:
        self.conf = SimpleNamespace(get=lambda _name, default=None: default)


def test_sinks_that_are_made_for_each_batch_go_with_their_threads(running, timers):
    """Nothing that a timer holds keeps an engine alive."""
    running.add("q")
    for _ in range(10):
        options = engine_module.EngineOptions(check_interval_ms=10)
        SparkEngine(World().tiers(), options)._keep_time(CHAIN, Session(), "q")
    gc.collect()
    assert eventually(lambda: timers() == 0)


def frame(*values: str) -> SimpleNamespace:
    """A DataFrame of a world: what an engine asks of one before its job."""
    return SimpleNamespace(isStreaming=False, sparkSession=Session(), records=records(*values))


@pytest.fixture
def two_sinks(monkeypatch: pytest.MonkeyPatch) -> tuple[World, SparkEngine, SparkEngine]:
    """Two drivers of one uid whose frames are the records of a world."""
    world = World()
    monkeypatch.setattr(SparkEngine, "check", lambda _self, _df: None)
    monkeypatch.setattr(SparkEngine, "_job", lambda _self, df, run_id: world.job(df.records, run_id=run_id))
    monkeypatch.setattr(engine_module, "SparkRunner", lambda _session: None)
    return world, SparkEngine(world.tiers()), SparkEngine(world.tiers())


def test_two_sinks_of_one_uid_may_write_in_turns(two_sinks):
    """A batch write goes on from what other drivers have written since the last one of this sink."""
    world, one, other = two_sinks
    for number in range(6):
        sink = other if number % 2 else one
        assert sink.write(frame(str(number))).cause == BatchWrite()
    assert world.rows() == ["0", "1", "2", "3", "4", "5"]


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

    def run_of(ids: object) -> tuple[SimpleNamespace, SimpleNamespace]:
        return SimpleNamespace(ids=ids), SimpleNamespace(df=df)

    class Overtaken:
        """Ids that are compared just when the other thread gets its turn."""

        __hash__ = None

        def __eq__(self, _other: object) -> bool:
            engine._run = run_of("other")
            return True

    mine = run_of(Overtaken())
    engine._run = mine
    monkeypatch.setattr(engine_module, "current_ids", lambda _df: "mine")
    assert engine._current_run(df) is mine


def test_a_loop_that_is_let_go_is_closed():
    """What it holds, a connection to a metastore say, goes with it, when nobody works in it any more."""
    closed = []
    loop = SimpleNamespace(close=lambda: closed.append("loop"))
    chains = Chains(lambda _sink_id, _session: loop, note=lambda _outcome: None, interval=60)
    with chains.use(CHAIN, SESSION):
        chains.release(CHAIN)
        assert closed == []
    chains.release(CHAIN)
    chains.release(CHAIN)
    assert closed == ["loop"]


@pytest.mark.parametrize(("retained", "kept"), [("500", 500), ("7", 100), ("", 100), (None, 100)])
def test_as_many_batches_are_kept_as_spark_may_replay(retained, kept):
    """A session that retains more of its log can be sent back further; less never makes us forget."""
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda _name, default: retained or default))
    loop = engine_module._open(World().tiers(), engine_module.EngineOptions(), CHAIN, session)
    assert loop._options.keep_batches == kept
