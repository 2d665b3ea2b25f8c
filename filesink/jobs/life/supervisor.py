"""Runs a job: its pipelines, each in a thread with a fate of its own, and what others ask for meanwhile.

Rules:
1. Every step is in the store before it is taken; where another supervisor has gone on, this one ends.
2. A pipeline that fails is started again as often as the job says; an error that stays fails it at once.
3. The failure of one pipeline leaves the others alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock, Thread
from typing import Protocol

from filesink.errors import FilesinkError, JobError
from filesink.jobs.life.events import Event, JobInfo, PipelineInfo, after
from filesink.jobs.life.execution import Control
from filesink.jobs.life.lease import Lease
from filesink.jobs.life.log import JobLog, put_newest
from filesink.jobs.life.savepoints import Saved
from filesink.jobs.life.states import ENDED, JOB, State, together
from filesink.jobs.model.env import Env
from filesink.jobs.plans.values import Pipeline
from filesink.ports import Clock

_LOG = logging.getLogger(__name__)
_LOOK_S = 0.5  # how often requests are looked for
_TELL_MS = 5_000
#: A request that is no state: failed pipelines are started again.
RETRY = "RETRY"


class Runs(Protocol):
    """What runs a pipeline: ``Execution``, or another one in a test."""

    def run(
        self,
        pipeline: Pipeline,
        control: Control,
        done: Mapping[str, int | None],
        told: Callable[[str, int | None], None],
    ) -> None:
        """See ``Execution.run``."""


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Runs one job once.

    Args:
        info: the job as its events leave it.
        pipelines: of its plan.
        lease: taken.
        execution: runs a pipeline.
        sentence: what may be shown of an error, and whether it stays.
        save: makes a savepoint of what pipelines have told, once all have ended.
        log: what is warned of meanwhile.
    """

    info: JobInfo
    pipelines: tuple[Pipeline, ...]
    env: Env
    lease: Lease
    execution: Runs
    clock: Clock
    sentence: Callable[[Exception], tuple[str, bool]]
    save: Callable[[Sequence[Saved]], object] = lambda _: None
    log: JobLog | None = None
    _lock: Lock = field(default_factory=Lock)
    _controls: dict[int, Control] = field(default_factory=dict)
    _threads: dict[int, Thread] = field(default_factory=dict)
    _told_ms: int = 0
    _asked: State | None = None
    _requests: int = -1
    _taken: bool = False

    def run(self) -> JobInfo:
        """Run what has not ended well; returns when nothing runs any more.

        Raises:
            JobError: ``JOB_TAKEN``; another process goes on with the job.
        """
        self._requests, _ = self.lease.store.last(self.info.id, "requests")  # older ones were for others
        self._go_on()
        for one in self.pipelines:
            if self._of(one).state is not State.FINISHED:
                self._begin(one)
        try:
            self._watch()
        except KeyboardInterrupt:
            _LOG.warning("interrupted: the job is cancelled")
        finally:
            self._end_all()
            for thread in self._threads.values():
                thread.join()
        if self._taken:
            raise self._was_taken()
        self._tell()
        self._conclude()
        self.lease.give_back()
        return replace(self.info, holder="")

    def _begin(self, pipeline: Pipeline) -> None:
        """Run a pipeline in a thread of its own."""
        number = pipeline.number
        self._controls[number] = Control()
        thread = Thread(target=self._run, args=(pipeline,), name=f"pipeline-{number}", daemon=True)
        self._threads[number] = thread
        thread.start()

    def _conclude(self) -> None:
        """Make the savepoint that was asked for, and note how the job has ended."""
        failed = [one.error for one in self.info.pipelines if one.state is State.FAILED]
        state = together([one.state for one in self.info.pipelines])
        error = failed[0] if failed else ""
        try:
            self._save()
        except FilesinkError as failure:
            state = State.FAILED
            error = f"pipelines have ended, and there is no savepoint: {failure.message}"
        self._note(Event(at_ms=0, by="", state=state, error=error))

    def _save(self) -> None:
        """A savepoint has all pipelines that had not finished, or there is none."""
        saved = [one for control in self._controls.values() for one in control.saved]
        ended = {State.SAVEPOINT_DONE, State.FINISHED}
        left = [one for one in self.info.pipelines if one.state not in ended]
        if left and (saved or self._saves_streams):
            why = f": {left[0].error}" if left[0].error else ""
            raise JobError(f"pipeline {left[0].number} is {left[0].state}{why}", code="JOB_SAVEPOINT")
        if saved:
            self.save(saved)

    @property
    def _saves_streams(self) -> bool:
        return self._asked is State.DOING_SAVEPOINT and self.env.is_stream

    def _go_on(self) -> None:
        """Begin, also where a dead supervisor has left off in the midst of a step."""
        gone = "the process that ran it has ended"
        for one in self.info.pipelines:
            if one.state in {State.INITIALIZING, State.RUNNING, State.DOING_SAVEPOINT}:
                self._step(one.number, State.FAILING, gone)
            elif one.state is State.CANCELING:
                self._step(one.number, State.CANCELED, gone)
        if self.info.state in {State.DOING_SAVEPOINT, State.CANCELING}:
            self._note(Event(at_ms=0, by="", state=State.FAILED, error=gone))
        if self.info.state is not State.RUNNING:
            self._note(Event(at_ms=0, by="", state=State.RUNNING))

    def _watch(self) -> None:
        """Renew the lease, answer requests and tell figures while pipelines run."""
        while not self._taken and (alive := [one for one in self._threads.values() if one.is_alive()]):
            alive[0].join(timeout=_LOOK_S)
            if self.lease.is_old:
                self._keep_lease()
            if self.clock.now_ms() - self._told_ms >= _TELL_MS:
                self._tell()
            self._look_at_requests()

    def _tell(self) -> None:
        """Put figures and the log into the store; what is lost of them is nobody's loss."""
        self._told_ms = self.clock.now_ms()
        try:
            for number, control in self._controls.items():
                if control.figures is not None:
                    put_newest(self.lease.store, self.info.id, f"figures-{number}", control.figures.plain())
            if self.log is not None:
                self.log.flush()
        except FilesinkError as error:  # rows and events do not depend on them
            _LOG.debug("figures were not noted: %s", error.message)

    def _keep_lease(self) -> None:
        try:
            self.lease.renew()
        except JobError:
            self._taken = True

    def _look_at_requests(self) -> None:
        number, request = self.lease.store.last(self.info.id, "requests")
        if number <= self._requests or request is None:
            return
        self._requests = number
        if request["state"] == RETRY:
            self._again()
            return
        wanted = State(request["state"])
        if wanted not in JOB[self.info.state]:
            return
        self._asked = wanted
        self._note(Event(at_ms=0, by="", state=wanted))
        for control in self._controls.values():
            control.saves = wanted is State.DOING_SAVEPOINT
        self._end_all()

    def _again(self) -> None:
        """Start pipelines that have failed once more, while the others go on."""
        for one in self.pipelines:
            if self._of(one).state is State.FAILED and self._asked is None:
                self._threads[one.number].join()  # it has noted that it failed, and is about to end
                self._begin(one)

    def _end_all(self) -> None:
        for control in self._controls.values():
            control.end()

    def _run(self, pipeline: Pipeline) -> None:
        """All attempts of one pipeline."""
        control = self._controls[pipeline.number]
        try:
            for attempt in range(self.env.retry_times + 1):
                if self._attempt(pipeline, control, is_last=attempt == self.env.retry_times):
                    return
        except FilesinkError as error:  # the store, or another supervisor: nothing can be noted any more
            _LOG.error("pipeline %d: %s", pipeline.number, error.message)
            self._taken = True

    def _attempt(self, pipeline: Pipeline, control: Control, *, is_last: bool) -> bool:
        """One attempt; whether it was the last one."""
        number = pipeline.number
        if control.ends.is_set():
            self._ended(number)
            return True
        if self._of(pipeline).state is not State.SCHEDULED:  # a dead supervisor came so far
            self._step(number, State.SCHEDULED)
        self._step(number, State.INITIALIZING)
        self._step(number, State.RUNNING)
        try:
            self.execution.run(
                pipeline,
                control,
                self._of(pipeline).done,
                lambda sink, rows: self._note(Event(at_ms=0, by="", pipeline=number, sink=sink, rows=rows)),
            )
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails its pipeline, and no other
            return self._failed(number, error, control, is_last=is_last)
        if control.ends.is_set():
            self._ended(number)
        else:
            self._step(number, State.FINISHED)
        return True

    def _failed(self, number: int, error: Exception, control: Control, *, is_last: bool) -> bool:
        if control.ends.is_set() and not self._saves_streams:
            self._ended(number)  # whoever ends in the midst of a job hears of it as an error
            return True
        text, stays = self.sentence(error)
        _LOG.warning("pipeline %d failed: %s", number, text)
        _LOG.debug("pipeline %d failed", number, exc_info=error)
        self._step(number, State.FAILING, text)
        if is_last or stays or control.ends.is_set():
            self._step(number, State.FAILED, text)
            return True
        control.ends.wait(self.env.retry_interval_seconds)
        return False

    def _ended(self, number: int) -> None:
        """It was asked to end: by a savepoint, or else it is cancelled."""
        state = self._of_number(number).state
        if state in ENDED:
            return
        if state in {State.CREATED, State.SCHEDULED}:
            self._step(number, State.CANCELED)
        elif self._asked is State.DOING_SAVEPOINT and state is State.RUNNING:
            self._step(number, State.DOING_SAVEPOINT)
            self._step(number, State.SAVEPOINT_DONE)
        else:
            self._step(number, State.CANCELING)
            self._step(number, State.CANCELED)

    def _step(self, number: int, state: State, error: str = "") -> None:
        self._note(Event(at_ms=0, by="", pipeline=number, state=state, error=error))

    def _note(self, event: Event) -> None:
        """Put an event into the store, then believe it."""
        with self._lock:
            if self._taken:  # the chain belongs to somebody else, who may have read it already
                raise self._was_taken()
            event = replace(event, at_ms=self.clock.now_ms(), by=self.lease.by)
            info = after(self.info, [event])
            if not self.lease.store.append(info.id, "events", self.info.events, event.plain()):
                self._taken = True
                raise self._was_taken()
            self.info = info

    def _was_taken(self) -> JobError:
        return JobError(f"job '{self.info.id}' was taken over by another process", code="JOB_TAKEN")

    def _of(self, pipeline: Pipeline) -> PipelineInfo:
        return self._of_number(pipeline.number)

    def _of_number(self, number: int) -> PipelineInfo:
        return next(one for one in self.info.pipelines if one.number == number)
