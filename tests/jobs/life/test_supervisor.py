"""Life of a job without Spark: states, restarts, requests, leases, dead supervisors, two at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest

from filesink.errors import JobError, StateCorruptError
from filesink.jobs.life.events import Event, JobInfo, PipelineInfo, after
from filesink.jobs.life.execution import Control
from filesink.jobs.life.lease import LEASE_MS, Lease, holder
from filesink.jobs.life.session import sentence
from filesink.jobs.life.states import ENDED, JOB, PIPELINE, State, step
from filesink.jobs.life.store import JobStore
from filesink.jobs.life.supervisor import Supervisor
from filesink.jobs.model.env import Env
from filesink.jobs.plans.values import Pipeline
from filesink.ports import Who
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.open import open_store

WAIT_S = 20


class Clock:
    """One that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


@dataclass
class Fake:
    """Runs pipelines as a test says: each attempt takes the next function of its pipeline."""

    attempts: dict[int, list[Callable[[Control], None]]]
    seen: list[tuple[int, dict[str, int | None]]] = field(default_factory=list)

    def run(
        self,
        pipeline: Pipeline,
        control: Control,
        done: Mapping[str, int | None],
        told: Callable[[str, int | None], None],
    ) -> None:
        self.seen.append((pipeline.number, dict(done)))
        self.attempts[pipeline.number].pop(0)(control)
        told(f"sink-{pipeline.number}", 7)


def well(_control: Control) -> None:
    """An attempt that ends."""


def badly(_control: Control) -> None:
    """An attempt that fails, and may be repeated."""
    raise ValueError("hunter2")


def wrongly(_control: Control) -> None:
    """An attempt that can only fail."""
    raise JobError("a column is missing", code="JOB_COLUMN")


def until_asked(control: Control) -> None:
    """An attempt that lasts until somebody wants it to end."""
    assert control.ends.wait(WAIT_S)


def store_at(path: Path | None = None) -> JobStore:
    """A store of jobs, in memory or on a disk."""
    store = MemoryStore(MemoryFiles()) if path is None else open_store(path, {})
    return JobStore(store, "here")


@dataclass
class Site:
    """A store with one job of some pipelines."""

    pipelines: int = 1
    store: JobStore = field(default_factory=store_at)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store.create("job", {"x": 1})

    def lease(self, by: str) -> Lease:
        """A lease that is not taken."""
        return Lease(
            store=self.store, job="job", by=by, who=Who(application="", user="u", host=by), clock=self.clock
        )

    def info(self) -> JobInfo:
        """As its events leave it."""
        numbers = range(1, self.pipelines + 1)
        begin = JobInfo(
            id="job",
            name="x",
            file="x",
            mode="BATCH",
            pipelines=tuple(PipelineInfo(number=one) for one in numbers),
        )
        return after(begin, map(Event.of, self.store.chain("job", "events")))

    def supervisor(self, attempts: dict[int, list[Callable[[Control], None]]], **options: Any) -> Supervisor:
        """One that has the lease."""
        lease = self.lease(options.pop("by", "one"))
        lease.take()
        env = Env(retry_times=2, retry_interval_seconds=0)
        drawn = tuple(Pipeline(number=one.number, vertices=(), edges=()) for one in self.info().pipelines)
        return Supervisor(
            info=self.info(),
            pipelines=drawn,
            env=env,
            lease=lease,
            execution=Fake(attempts),
            clock=self.clock,
            sentence=sentence,
        )

    def ask(self, state: State) -> None:
        """What another process does."""
        number, _ = self.store.last("job", "requests")
        self.store.append("job", "requests", number + 1, {"state": state.value})


def states(info: JobInfo) -> list[State]:
    """Of the pipelines."""
    return [one.state for one in info.pipelines]


@pytest.mark.parametrize("table", [PIPELINE, JOB])
def test_tables_are_whole(table: dict[State, frozenset[State]]) -> None:
    """Each state has a row, and every step that no row has is one sentence with both states."""
    assert set(table) == set(State)
    for before in State:
        for following in State:
            if following in table[before]:
                assert step(table, before, following, "it") is following
            else:
                with pytest.raises(JobError, match=rf"it is {before}, .* not {following}"):
                    step(table, before, following, "it")
    assert table[State.FINISHED] == frozenset()


def test_all_goes_well() -> None:
    """Every pipeline is started once, its sinks are noted, and nobody holds the job any more."""
    site = Site(pipelines=3)
    info = site.supervisor({1: [well], 2: [well], 3: [well]}).run()
    assert (info.state, states(info)) == (State.FINISHED, [State.FINISHED] * 3)
    assert [one.done for one in info.pipelines] == [{"sink-1": 7}, {"sink-2": 7}, {"sink-3": 7}]
    assert site.info() == info
    assert holder(site.store, "job", site.clock.ms) == ""


def test_one_pipeline_fails_and_the_others_go_on() -> None:
    """It is started again as often as the job says, and its error has no value of a record."""
    site = Site(pipelines=2)
    info = site.supervisor({1: [badly, badly, badly], 2: [well]}).run()
    assert (info.state, states(info)) == (State.FAILED, [State.FAILED, State.FINISHED])
    assert [one.starts for one in info.pipelines] == [3, 1]
    assert "ValueError" in info.error
    assert "hunter2" not in repr(info)


def test_one_that_fails_once_is_started_again() -> None:
    """And then the job is as good as any."""
    info = Site().supervisor({1: [badly, well]}).run()
    assert (info.state, info.pipelines[0].starts) == (State.FINISHED, 2)


def test_what_cannot_help_is_not_repeated() -> None:
    """An error of the job itself fails the pipeline at once, in the words of the error."""
    info = Site().supervisor({1: [wrongly, well]}).run()
    assert (info.state, info.pipelines[0].starts, info.error) == (State.FAILED, 1, "a column is missing")


@pytest.mark.parametrize(
    ("asked", "end"), [(State.DOING_SAVEPOINT, State.SAVEPOINT_DONE), (State.CANCELING, State.CANCELED)]
)
def test_somebody_asks_for_an_end(asked: State, end: State) -> None:
    """Another process puts a request, pipelines end, and one that had finished stays so."""
    site = Site(pipelines=2)
    started = Flag()

    def asking(control: Control) -> None:
        started.set()
        until_asked(control)

    supervisor = site.supervisor({1: [asking], 2: [well]})
    thread = Thread(target=lambda: (started.wait(WAIT_S), site.ask(asked)))
    thread.start()
    info = supervisor.run()
    thread.join()
    assert (info.state, states(info)) == (end, [end, State.FINISHED])


@pytest.mark.parametrize("first", [State.SAVEPOINT_DONE, State.CANCELED, State.FAILED])
def test_restored(first: State) -> None:
    """Pipelines that have finished are left alone, the others go on knowing which sinks are done."""
    site = Site(pipelines=2)
    site.supervisor({1: [wrongly], 2: [well]}).run()
    if first is not State.FAILED:
        info = site.info()
        for state in (State.SCHEDULED, State.INITIALIZING, State.RUNNING):
            site.store.append(
                "job", "events", info.events, Event(at_ms=1, by="x", pipeline=1, state=state).plain()
            )
            info = site.info()
        site.store.append(
            "job", "events", info.events, Event(at_ms=1, by="x", pipeline=1, sink="s", rows=1).plain()
        )
    again = site.supervisor({1: [well], 2: []}, by="two")
    info = again.run()
    assert (info.state, states(info)) == (State.FINISHED, [State.FINISHED] * 2)
    seen = again.execution.seen  # type: ignore[attr-defined]
    assert seen == [(1, {} if first is State.FAILED else {"s": 1})]


@pytest.mark.parametrize("stops", range(1, 9))
def test_a_supervisor_that_dies_at_any_step(stops: int) -> None:
    """Whatever event was its last, the next supervisor takes over and ends the job."""
    site = Site(pipelines=2)
    first = site.supervisor({1: [badly, well], 2: [well]})
    events = iter(range(stops))
    append = site.store.append

    class Dying(JobStore):
        def append(self, job: str, name: str, number: int, value: Mapping[str, Any]) -> bool:
            if name == "events" and next(events, None) is None:
                raise StateCorruptError("the process is gone", code="JSON")
            return append(job, name, number, value)

    first.lease.store = Dying(site.store._store, "here")
    with pytest.raises((JobError, StateCorruptError)):
        first.run()
    with pytest.raises(JobError, match="is run by"):
        site.lease("two").take()
    site.clock.ms += LEASE_MS + 1
    info = site.supervisor({1: [well, well], 2: [well, well]}, by="two").run()
    assert (info.state, states(info)) == (State.FINISHED, [State.FINISHED] * 2)


def test_a_zombie_is_fenced() -> None:
    """A supervisor whose lease was taken over cannot note anything, and ends what it runs."""
    site = Site()
    running, ended = Flag(), Flag()

    def long(control: Control) -> None:
        running.set()
        until_asked(control)
        ended.set()

    zombie = site.supervisor({1: [long]})
    failures: list[Exception] = []

    def run() -> None:
        try:
            zombie.run()
        except JobError as error:
            failures.append(error)

    thread = Thread(target=run)
    thread.start()
    assert running.wait(WAIT_S)
    number, last = site.store.last("job", "leases")
    assert last is not None
    site.store.append("job", "leases", number + 1, {**last, "by": "two", "host": "two"})
    site.clock.ms += LEASE_MS
    thread.join(WAIT_S)
    assert ended.is_set()
    assert [error.code for error in failures] == ["JOB_TAKEN"]
    assert states(site.info()) == [State.RUNNING]  # it has noted nothing since


def test_two_who_take_over_at_once() -> None:
    """One of them gets the lease, whoever looks first."""
    site = Site()
    one, two = site.lease("one"), site.lease("two")
    append = site.store.append

    def between(job: str, name: str, number: int, value: Mapping[str, Any]) -> bool:
        site.store.append = append  # type: ignore[method-assign]
        two.take()
        return append(job, name, number, value)

    site.store.append = between  # type: ignore[method-assign]
    with pytest.raises(JobError, match="somebody else"):
        one.take()


def test_leases_are_kept_short() -> None:
    """However often one is renewed, few files are left; one that was given back is free at once."""
    site = Site()
    lease = site.lease("one")
    lease.take()
    for _ in range(50):
        lease.renew()
    assert len(site.store.chain("job", "leases")) <= 3
    assert holder(site.store, "job", site.clock.ms) == "u@one"
    lease.give_back()
    site.lease("two").take()


def test_events_that_cannot_follow() -> None:
    """A chain that was damaged is refused, not believed."""
    info = JobInfo(id="job", name="x", file="x", mode="BATCH", pipelines=(PipelineInfo(number=1),))
    with pytest.raises(JobError, match="CREATED"):
        after(info, [Event(at_ms=1, by="x", pipeline=1, state=State.FINISHED)])
    for wrong in ({}, {"state": "NONE"}, {**Event(at_ms=1, by="x").plain(), "more": 1}):
        with pytest.raises(StateCorruptError):
            Event.of(wrong)
    assert Event.of(Event(at_ms=1, by="x", state=State.FAILED).plain()).state in ENDED
    assert replace(info, state=State.FAILED) != info


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "x" * 65, "a b", "_x"])
def test_ids_stay_in_their_directory(tmp_path: Path, name: str) -> None:
    """What is no id reaches no file."""
    store = store_at(tmp_path / "jobs")
    with pytest.raises(JobError, match="a job id"):
        store.create(name, {})
    assert not list(tmp_path.iterdir())


def test_records_on_a_disk(tmp_path: Path) -> None:
    """A job is created once; another store of the same path knows it; a damaged record is told."""
    store_at(tmp_path).create("job", {"a": 1})
    with pytest.raises(JobError, match="already"):
        store_at(tmp_path).create("job", {"a": 2})
    again = store_at(tmp_path)
    assert (again.ids(), again.about("job")) == (["job"], {"a": 1})
    with pytest.raises(JobError, match="did you mean 'job'"):
        again.about("jobb")
    (tmp_path / "job" / "job").write_bytes(b"nonsense")
    with pytest.raises(StateCorruptError):
        again.about("job")
