"""One run of a job: its lease, the savepoint that it goes back to, its Spark session, its supervisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from filesink.errors import JobError
from filesink.jobs.life.events import Event, JobInfo
from filesink.jobs.life.execution import Execution
from filesink.jobs.life.lease import Lease
from filesink.jobs.life.log import JobLog, put_newest
from filesink.jobs.life.savepoints import Saved, Savepoint, Savepoints
from filesink.jobs.life.secrets import Secrets, process_environment
from filesink.jobs.life.session import sentence, session
from filesink.jobs.life.store import JobStore
from filesink.jobs.life.supervisor import Supervisor
from filesink.jobs.life.wiring import Given
from filesink.jobs.plans.planned import Job
from filesink.jobs.plans.values import Vertex
from filesink.jobs.plugins.api import Run, Sink
from filesink.jobs.plugins.sources.spark import settings_of
from filesink.ports import Clock, Ids
from filesink.system import this_driver

_RETURNS = "returns"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a job is run.

    Args:
        master: Spark's; comes before that of the file.
        say: prints what ``Console`` shows.
    """

    master: str | None = None
    say: Callable[[str], None] = print


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """The savepoint that a job is restored from.

    Args:
        savepoint: its number.
        on_newer_epochs: what becomes of what its sinks have written since.
    """

    savepoint: int
    on_newer_epochs: Literal["refuse", "roll_back"] = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs a job of a store once.

    Args:
        info: the job as its events leave it; called once the lease is there, and after each change.
    """

    store: JobStore
    job: Job
    info: Callable[[], JobInfo]
    clock: Clock
    ids: Ids

    def run(self, options: RunOptions, back: Back | None = None) -> JobInfo:
        """Run it to its end.

        Raises:
            JobError: ``JOB_RUNNING``, ``JOB_SAVEPOINT``, ``JOB_REFUSED``, ``JOB_SPARK``; nothing was run.
                ``JOB_TAKEN``.
        """
        identity = self.info().id
        lease = Lease(store=self.store, job=identity, by=self.ids.uuid(), who=this_driver(), clock=self.clock)
        lease.take()
        log = JobLog(store=self.store, job=identity, clock=self.clock)
        try:
            with lease.kept(), log.listening():
                return self._started(lease, log, options, back)
        except BaseException:
            lease.give_back()
            raise

    def _started(self, lease: Lease, log: JobLog, options: RunOptions, back: Back | None) -> JobInfo:
        environment, env = process_environment(), self.job.env
        settings = settings_of(env.spark, Secrets(environment=environment).reveal)
        spark = session(settings, name=self.job.plan.name, master=options.master)
        info, savepoints = self.info(), Savepoints(store=self.store, job=lease.job)
        given = self._given(info, Secrets(environment=environment, spark=spark), options)
        back = _unfinished(self.store, lease.job) or back
        if back is not None:
            _Return(savepoints, given, spark, lease, info, self.job, self.ids).to(back)
            info = self.info()
            given = replace(given, directories=info.directories)
        return Supervisor(
            info=info,
            pipelines=self.job.plan.pipelines,
            env=env,
            lease=lease,
            execution=Execution(spark=spark, given=given),
            clock=self.clock,
            sentence=sentence,
            save=partial(self._save, savepoints, info.directories),
            log=log,
        ).run()

    def _given(self, info: JobInfo, secrets: Secrets, options: RunOptions) -> Given:
        return Given(
            job=self.store.about(info.id)["unique"],
            env=self.job.env,
            plugins=self.job.plugins,
            directory=self.store.directory(info.id),
            directories=info.directories,
            secrets=secrets,
            clock=self.clock,
            say=options.say,
        )

    def _save(self, savepoints: Savepoints, directories: Mapping[str, str], streams: Sequence[Saved]) -> None:
        savepoints.save(streams, directories, self.clock, self.ids)


def _unfinished(store: JobStore, job: str) -> Back | None:
    """The return to a savepoint in the midst of which a process has died."""
    _, found = store.last(job, _RETURNS)
    if found is None or found["is_over"]:
        return None
    return Back(savepoint=found["savepoint"], on_newer_epochs="roll_back")


@dataclass(frozen=True, slots=True)
class _Return:
    """Takes a job back to a savepoint, before anything of it runs."""

    savepoints: Savepoints
    given: Given
    spark: Any
    lease: Lease
    info: JobInfo
    job: Job
    ids: Ids

    def to(self, back: Back) -> None:
        """Roll back the sinks that have written since, or refuse."""
        savepoint = self.savepoints.find(back.savepoint)
        newer = self.savepoints.newer(savepoint, self.given.directories)
        if not newer:  # the checkpoints are where they were
            self._intend({"is_over": True})
            return
        if back.on_newer_epochs == "refuse":
            since = ", ".join(f"{sink} has begun {count:,} epochs" for sink, count in sorted(newer.items()))
            raise JobError(
                f"savepoint {savepoint.number} of job '{self.info.id}' is older than its sinks: {since} "
                "since. Restore without a savepoint to go on where the job is, or have them rolled back",
                code="JOB_SAVEPOINT",
            )
        waiting = [one for one in savepoint.streams if one.sink in newer]
        for one in waiting:
            self._check(savepoint, one)
        self._intend({"is_over": False, "savepoint": savepoint.number})
        for one in waiting:
            self.lease.renew()  # not beside somebody who took over while the last one was rolled back
            plugin, vertex = self._sink(one)
            plugin.roll_back(self._run(vertex), one.path, self._version(savepoint, one))
        for sink in sorted(newer):
            self._note(sink, self.savepoints.bring_back(savepoint, sink, self.ids))
        self._intend({"is_over": True})

    def _intend(self, value: Mapping[str, Any]) -> None:
        """Note what is about to be done: files that went back need the checkpoint of then."""
        put_newest(self.lease.store, self.info.id, _RETURNS, value)

    def _check(self, savepoint: Savepoint, one: Saved) -> None:
        plugin, vertex = self._sink(one)
        plugin.plan_roll_back(self._run(vertex), one.path, self._version(savepoint, one))

    def _run(self, vertex: Vertex) -> Run:
        return replace(self.given.run(vertex, self.spark), queries=self.savepoints.queries(vertex.id))

    def _version(self, savepoint: Savepoint, one: Saved) -> int:
        if one.version is None and one.path == "":
            vertex = self._sink(one)[1]
            raise JobError(
                f"{vertex.place}: sink {vertex.plugin} cannot take back what it has written since savepoint "
                f"{savepoint.number}",
                code="JOB_REFUSED",
            )
        if one.version is None or not one.is_idle:
            raise JobError(
                f"savepoint {savepoint.number} was made while {one.sink} was at work on a micro-batch: "
                "nobody knows which rows belong to it. Take an earlier one, or restore without a savepoint",
                code="JOB_SAVEPOINT",
            )
        return one.version

    def _sink(self, one: Saved) -> tuple[Sink, Vertex]:
        vertex = next((found for found in self.job.plan.vertices if found.id == one.sink), None)
        plugin = self.job.plugins.get(one.sink)
        if vertex is None or not isinstance(plugin, Sink):
            raise JobError(
                f"the job file has no {one.sink} any more, which the savepoint has", code="JOB_PLAN"
            )
        return plugin, vertex

    def _note(self, sink: str, directory: str) -> None:
        """The new directory is the sink's from now on."""
        number = next(
            one.number for one in self.job.plan.pipelines for vertex in one.vertices if vertex.id == sink
        )
        last, _ = self.lease.store.last(self.info.id, "events")
        event = Event(
            at_ms=self.lease.clock.now_ms(), by=self.lease.by, pipeline=number, sink=sink, directory=directory
        )
        if not self.lease.store.append(self.info.id, "events", last + 1, event.plain()):
            raise JobError(f"job '{self.info.id}' was taken over by another process", code="JOB_TAKEN")
