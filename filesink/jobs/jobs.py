"""``Jobs``: run job files, look at them, stop and restore them; what the command line does as well.

from filesink.jobs import Jobs

jobs = Jobs("/data/jobs")
info = jobs.run("flights.conf", variables={"day": "2026-01-31"})
assert info.state == "FINISHED"
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from filesink.errors import FilesinkError, JobError
from filesink.jobs.life.described import described, plan_of
from filesink.jobs.life.events import Event, JobInfo, PipelineInfo, after
from filesink.jobs.life.execution import Execution
from filesink.jobs.life.lease import Lease, holder
from filesink.jobs.life.secrets import Secrets, process_environment
from filesink.jobs.life.session import sentence, session
from filesink.jobs.life.states import JOB, State
from filesink.jobs.life.store import JobStore, check_id
from filesink.jobs.life.supervisor import Supervisor, has_ended
from filesink.jobs.plans.planned import Job, planned
from filesink.jobs.plans.values import Plan, differences
from filesink.jobs.plugins.sources.spark import settings_of
from filesink.jobs.text.read import read
from filesink.jobs.text.variables import Variables
from filesink.ports import Clock, Ids
from filesink.storage.base_path import spelling
from filesink.storage.open import open_store
from filesink.storage.retrying import RetryingStore
from filesink.system import SystemClock, SystemIds, this_driver

_LOG = logging.getLogger(__name__)
_TOLD = 5  # changes of a plan in a message


def plan(
    file: str | os.PathLike[str],
    *,
    variables: Mapping[str, str] | None = None,
    inline_secrets: bool = False,
) -> Plan:
    """What a job file would run. Nothing is opened, listed or written.

    Args:
        file: HOCON (``.conf``), YAML or SQL.
        variables: values of ``${name}``; they come before those of the file and of the environment.
        inline_secrets: whether secrets may stand in the file, as SeaTunnel has them.

    Raises:
        JobError: one sentence with file and line.
    """
    return _planned(Path(file), variables or {}, inline_secrets=inline_secrets).plan


def _planned(file: Path, variables: Mapping[str, str], *, inline_secrets: bool) -> Job:
    known = Variables(given=variables, environment=process_environment())
    return planned(read(file, known), inline_secrets=inline_secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a job is run.

    Args:
        master: Spark's; comes before that of the file.
        say: prints what ``Console`` shows.
    """

    master: str | None = None
    say: Callable[[str], None] = print


class Jobs:
    """The jobs whose records lie below a path, in any store; no server is needed.

    Several processes may use one path: each job is run by one of them, which holds a lease.

    Args:
        path: of the records, and of checkpoints and ledgers of the jobs' sinks; made if missing.
        storage_options: as ``FileSink``'s ``with_storage_options``; never written anywhere.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        given = os.fspath(path)
        base = spelling(given if "://" in given else Path(given).resolve())
        self._clock: Clock = clock or SystemClock()
        self._ids: Ids = ids or SystemIds()
        self._store = JobStore(RetryingStore(open_store(base, storage_options or {}), self._clock), base)

    def run(
        self,
        file: str | os.PathLike[str],
        *,
        name: str | None = None,
        variables: Mapping[str, str] | None = None,
        inline_secrets: bool = False,
        options: RunOptions | None = None,
    ) -> JobInfo:
        """Run a job to its end.

        Args:
            file: see ``plan``; it has to stay where it is for ``restore``.
            name: the id of the job; a random one by default.
            variables: see ``plan``; kept in the record, so that ``restore`` knows them.
            inline_secrets: see ``plan``; variables are then not kept.
            options: how it is run.

        Raises:
            JobError: nothing was run; failures of pipelines are in what is returned.
        """
        identity, job = self._created(Path(file), name, dict(variables or {}), inline_secrets=inline_secrets)
        return self._supervised(identity, job, options or RunOptions())

    def submit(
        self,
        file: str | os.PathLike[str],
        *,
        name: str | None = None,
        variables: Mapping[str, str] | None = None,
        inline_secrets: bool = False,
        options: RunOptions | None = None,
    ) -> str:
        """Run a job in a thread of this process; returns its id. See ``run``."""
        identity, job = self._created(Path(file), name, dict(variables or {}), inline_secrets=inline_secrets)

        def supervised() -> None:
            try:
                self._supervised(identity, job, options or RunOptions())
            except FilesinkError as error:
                _LOG.error("job '%s': %s", identity, error.message)

        Thread(target=supervised, name=identity).start()
        return identity

    def _created(
        self, file: Path, name: str | None, variables: dict[str, str], *, inline_secrets: bool
    ) -> tuple[str, Job]:
        job = _planned(file, variables, inline_secrets=inline_secrets)
        identity = check_id(name or self._ids.uuid())
        about = {
            "file": str(file.resolve()),
            "variables": {} if inline_secrets else variables,
            "inline_secrets": inline_secrets,
            "plan": described(job.plan),
            "at_ms": self._clock.now_ms(),
            # Sinks know what they have written by this: an id may have been another job's, elsewhere.
            "unique": self._ids.uuid(),
        }
        self._store.create(identity, about)
        return identity, job

    def restore(
        self,
        job: str,
        *,
        variables: Mapping[str, str] | None = None,
        accept_changes: bool = False,
        options: RunOptions | None = None,
    ) -> JobInfo:
        """Go on with a job that failed, was stopped or cancelled, or whose process is gone.

        Streams go on from their checkpoints; of a batch, sinks that are done are not written again.

        Args:
            job: the id.
            variables: those that have changed, and all if the record has none.
            accept_changes: whether another plan than the one that ran may go on.
            options: how it is run.

        Raises:
            JobError: ``JOB_RUNNING``, ``JOB_FINISHED``, ``JOB_PLAN``; or the job file is gone or wrong.
        """
        about = self._store.about(job)
        if self.info(job).state is State.FINISHED:
            raise JobError(f"job '{job}' has finished; run the file again as a new job", code="JOB_FINISHED")
        given = {**about["variables"], **(variables or {})}
        made = _planned(Path(about["file"]), given, inline_secrets=about["inline_secrets"])
        changes = list(differences(plan_of(about["plan"]), made.plan))
        if changes and not accept_changes:
            shown = "; ".join(changes[:_TOLD])
            raise JobError(
                f"the plan of job '{job}' is not the one that ran: {shown}. Checkpoints belong to the "
                "old one; run it as a new job, or accept the changes if they touch neither sources nor keys",
                code="JOB_PLAN",
            )
        return self._supervised(job, made, options or RunOptions())

    def list(self) -> list[JobInfo]:
        """All jobs, by their ids."""
        return [self.info(job) for job in self._store.ids()]

    def info(self, job: str) -> JobInfo:
        """How far a job is.

        Raises:
            JobError: ``JOB_ID``; there is none of this id.
        """
        about = self._store.about(job)
        drawn = plan_of(about["plan"])
        begin = JobInfo(
            id=job,
            name=drawn.name,
            file=about["file"],
            mode=drawn.mode,
            pipelines=tuple(PipelineInfo(number=one.number) for one in drawn.pipelines),
            holder=holder(self._store, job, self._clock.now_ms()),
            submitted_ms=about["at_ms"],
            changed_ms=about["at_ms"],
        )
        return after(begin, map(Event.of, self._store.chain(job, "events")))

    def plan_of(self, job: str) -> Plan:
        """The plan that a job ran with at first."""
        return plan_of(self._store.about(job)["plan"])

    def stop(self, job: str) -> JobInfo:
        """Ask for an end from which ``restore`` goes on: what ``savepoint`` does, under Spark's word."""
        return self.savepoint(job)

    def savepoint(self, job: str) -> JobInfo:
        """Ask for an end: a batch after the sink that is being written, a stream where its checkpoint is."""
        return self._ask(job, State.DOING_SAVEPOINT)

    def cancel(self, job: str) -> JobInfo:
        """Ask for an end at once. What was not decided is not there; ``restore`` may begin again."""
        return self._ask(job, State.CANCELING)

    def _ask(self, job: str, state: State) -> JobInfo:
        info = self.info(job)
        if has_ended(info) or state not in JOB[info.state]:
            raise JobError(f"job '{job}' is {info.state}, so it cannot be stopped", code="JOB_STATE")
        if not info.holder:
            raise JobError(
                f"nobody runs job '{job}' any more, though it is {info.state}; restore it", code="JOB_STATE"
            )
        number, _ = self._store.last(job, "requests")
        self._store.append(job, "requests", number + 1, {"state": state.value, "at_ms": self._clock.now_ms()})
        return info

    def _supervised(self, identity: str, job: Job, options: RunOptions) -> JobInfo:
        lease = Lease(
            store=self._store, job=identity, by=self._ids.uuid(), who=this_driver(), clock=self._clock
        )
        lease.take()
        try:
            return self._started(identity, job, options, lease)
        except BaseException:
            lease.give_back()
            raise

    def _started(self, identity: str, job: Job, options: RunOptions, lease: Lease) -> JobInfo:
        environment = process_environment()
        settings = settings_of(job.env.spark, Secrets(environment=environment).reveal)
        spark = session(settings, name=job.plan.name, master=options.master)
        execution = Execution(
            job=self._store.about(identity)["unique"],
            spark=spark,
            env=job.env,
            plugins=job.plugins,
            directory=self._store.directory(identity),
            secrets=Secrets(environment=environment, spark=spark),
            clock=self._clock,
            say=options.say,
        )
        return Supervisor(
            info=self.info(identity),
            pipelines=job.plan.pipelines,
            env=job.env,
            lease=lease,
            execution=execution,
            clock=self._clock,
            sentence=sentence,
        ).run()
