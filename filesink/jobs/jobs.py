"""``Jobs``: run job files, look at them, stop and restore them; what the command line does as well.

from filesink.jobs import Jobs

jobs = Jobs("/data/jobs")
info = jobs.run("flights.conf", variables={"day": "2026-01-31"})
assert info.state == "FINISHED"
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from filesink.errors import FilesinkError, JobError
from filesink.jobs.life.described import described, plan_of
from filesink.jobs.life.events import Event, JobInfo, PipelineInfo, after
from filesink.jobs.life.lease import holder
from filesink.jobs.life.log import lines_of
from filesink.jobs.life.running import Back, Runner, RunOptions
from filesink.jobs.life.savepoints import Savepoint, Savepoints
from filesink.jobs.life.states import ENDED, JOB, State
from filesink.jobs.life.store import JobStore, check_id
from filesink.jobs.life.supervisor import RETRY
from filesink.jobs.life.watching import Figures
from filesink.jobs.looking import job_of
from filesink.jobs.plans.planned import Job
from filesink.jobs.plans.values import Plan, differences
from filesink.ports import Clock, Ids
from filesink.storage.base_path import spelling
from filesink.storage.open import open_store
from filesink.storage.retrying import RetryingStore
from filesink.system import SystemClock, SystemIds

_LOG = logging.getLogger(__name__)
_TOLD = 5  # changes of a plan in a message


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
        job = job_of(file, variables, inline_secrets=inline_secrets)
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
        back: Back | None = None,
        options: RunOptions | None = None,
    ) -> JobInfo:
        """Go on with a job that failed, was stopped or cancelled, or whose process is gone.

        Streams go on from their checkpoints; of a batch, sinks that are done are not written again.

        Args:
            job: the id.
            variables: those that have changed, and all if the record has none.
            accept_changes: whether another plan than the one that ran may go on.
            back: to a savepoint, and what becomes of what was written since; by default the job goes on
                where it is.
            options: how it is run.

        Raises:
            JobError: ``JOB_RUNNING``, ``JOB_FINISHED``, ``JOB_PLAN``, ``JOB_SAVEPOINT``; or the job file is
                gone or wrong.
        """
        about = self._store.about(job)
        if self.info(job).state is State.FINISHED:
            raise JobError(f"job '{job}' has finished; run the file again as a new job", code="JOB_FINISHED")
        given = {**about["variables"], **(variables or {})}
        made = job_of(Path(about["file"]), given, inline_secrets=about["inline_secrets"])
        changes = list(differences(plan_of(about["plan"]), made.plan))
        if changes and not accept_changes:
            shown = "; ".join(changes[:_TOLD])
            raise JobError(
                f"the plan of job '{job}' is not the one that ran: {shown}. Checkpoints belong to the "
                "old one; run it as a new job, or accept the changes if they touch neither sources nor keys",
                code="JOB_PLAN",
            )
        return self._supervised(job, made, options or RunOptions(), back)

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
            pipelines=tuple(
                PipelineInfo(number=one.number, figures=self._figures(job, one.number))
                for one in drawn.pipelines
            ),
            holder=holder(self._store, job, self._clock.now_ms()),
            submitted_ms=about["at_ms"],
            changed_ms=about["at_ms"],
        )
        return after(begin, map(Event.of, self._store.chain(job, "events")))

    def _figures(self, job: str, pipeline: int) -> Figures | None:
        _, found = self._store.last(job, f"figures-{pipeline}")
        return None if found is None else Figures.of(found)

    def savepoints(self, job: str) -> Sequence[Savepoint]:
        """Where a job can go back to, the oldest first."""
        self._store.about(job)
        return Savepoints(store=self._store, job=job).list()

    def logs(self, job: str) -> Sequence[tuple[int, str]]:
        """What has happened to a job, and what filesink has warned of meanwhile.

        Moments, in milliseconds since 1970 UTC, and lines, in their order. What Spark logs is where Spark
        logs, and what ``Console`` prints is kept nowhere.
        """
        self._store.about(job)
        happened = (Event.of(one) for one in self._store.chain(job, "events"))
        lines = [(one.at_ms, str(one)) for one in happened]
        return sorted([*lines, *lines_of(self._store, job)], key=lambda line: line[0])

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

    def retry(self, job: str) -> JobInfo:
        """Have failed pipelines of a job that runs started again, while the others go on.

        Raises:
            JobError: ``JOB_STATE``; none has failed, or nobody runs the job, and ``restore`` does it.
        """
        info = self.info(job)
        if not any(one.state is State.FAILED for one in info.pipelines):
            raise JobError(f"no pipeline of job '{job}' has failed", code="JOB_STATE")
        self._check_runs(info)
        self._request(job, RETRY)
        return info

    def _ask(self, job: str, state: State) -> JobInfo:
        info = self.info(job)
        if info.state in ENDED or state not in JOB[info.state]:
            raise JobError(f"job '{job}' is {info.state}, so it cannot be stopped", code="JOB_STATE")
        self._check_runs(info)
        self._request(job, state.value)
        return info

    @staticmethod
    def _check_runs(info: JobInfo) -> None:
        if not info.holder:
            raise JobError(
                f"nobody runs job '{info.id}' any more, though it is {info.state}; restore it"
                if info.state not in ENDED
                else f"job '{info.id}' has ended, {info.state}; restore it",
                code="JOB_STATE",
            )

    def _request(self, job: str, wanted: str) -> None:
        number, _ = self._store.last(job, "requests")
        self._store.append(job, "requests", number + 1, {"state": wanted, "at_ms": self._clock.now_ms()})

    def _supervised(self, identity: str, job: Job, options: RunOptions, back: Back | None = None) -> JobInfo:
        return Runner(
            store=self._store,
            job=job,
            info=lambda: self.info(identity),
            clock=self._clock,
            ids=self._ids,
        ).run(options, back)
