"""One pipeline on Spark: frames are built from sources to sinks, batches are written, streams are started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

from filesink.jobs.life.savepoints import Saved
from filesink.jobs.life.watching import Figures, Watch
from filesink.jobs.life.wiring import Given, Wiring
from filesink.jobs.model.env import Mode
from filesink.jobs.plans.values import Pipeline, Vertex
from filesink.jobs.plugins.api import Started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 0.2  # how often a stream is looked at
_IDLE_S = 0.02
_IDLE_MS = 10_000  # how long a savepoint waits for the end of a micro-batch
#: Streams that begin at a time, for so long at most. A source in Python has a process, for which Spark waits
#: ten seconds: all streams of a large job at once may starve one another, and again at each retry.
_BEGIN_AT_ONCE = 3
_BEGIN_MS = 30_000

Told = Callable[[str, "int | None"], None]


@dataclass(slots=True)
class Control:
    """What somebody wants of a pipeline that runs, and what it tells meanwhile.

    Attributes:
        ends: set once it shall end.
        saves: whether the end is a savepoint.
        on_end: called when it shall end.
        figures: of its streams, renewed while they run.
        saved: what a savepoint has of it, once it has ended.
    """

    ends: Flag = field(default_factory=Flag)
    saves: bool = False
    on_end: list[Callable[[], object]] = field(default_factory=list)
    figures: Figures | None = None
    saved: tuple[Saved, ...] = ()

    def end(self) -> None:
        """Ask it to end, after the epoch that it is in or before."""
        self.ends.set()
        for stop in list(self.on_end):
            stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Runs pipelines of one job."""

    spark: SparkSession
    given: Given
    _begins: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(_BEGIN_AT_ONCE))

    def run(self, pipeline: Pipeline, control: Control, done: Mapping[str, int | None], told: Told) -> None:
        """Run a pipeline to its end, or until ``control`` asks for it.

        Args:
            pipeline: of the job's plan.
            control: is looked at between sinks, and while a stream runs.
            done: sinks of a batch that are done; they are passed over.
            told: called for each that is done, with its rows.
        """
        session = self.spark.newSession()
        session.sparkContext.setLocalProperty("spark.scheduler.pool", f"pipeline-{pipeline.number}")
        wiring = Wiring(given=self.given, spark=session, pipeline=pipeline)
        sinks = [sink for sink in pipeline.of_kind("sink") if sink.id not in done]
        if self.given.env.is_stream:
            self._follow(self._started(wiring, sinks, control), control, told)
            return
        tag = f"filesink-{self.given.job}-{pipeline.number}"
        session.sparkContext.addJobTag(tag)
        control.on_end.append(lambda: session.sparkContext.cancelJobsWithTag(tag))
        for sink in sinks:
            if control.ends.is_set():
                return
            told(sink.id, wiring.written(sink))

    def _started(
        self, wiring: Wiring, sinks: Sequence[Vertex], control: Control
    ) -> Mapping[str, Sequence[Started]]:
        """Start streams when it is their turn, and let them begin before others may."""
        with self._begins:
            started = wiring.started(sinks)
            queries = [one.query for found in started.values() for one in found]
            until = self.given.clock.now_ms() + _BEGIN_MS
            while (
                any(map(_begins, queries)) and not control.ends.is_set() and self.given.clock.now_ms() < until
            ):
                self.given.clock.sleep(_IDLE_S)
        return started

    def _follow(self, started: Mapping[str, Sequence[Started]], control: Control, told: Told) -> None:
        """Wait until queries end: streams when one of them does, batches when all have."""
        every = [one for found in started.values() for one in found]
        watch = Watch(timeout_ms=self.given.env.checkpoint_timeout, clock=self.given.clock)
        try:
            while every and self._goes_on(every) and not control.ends.is_set():
                self.given.clock.sleep(_LOOK_S)
                control.figures = watch.looked([one.query for one in every])
            if control.ends.is_set() and control.saves:
                self._wait_for_idle(every)
            else:
                _raise_errors(every)
        finally:
            for one in every:
                one.query.stop()
        if control.ends.is_set():
            control.saved = tuple(_saved(started)) if control.saves else ()
            return
        for sink in started:
            told(sink, watch.rows_of([one.query for one in started[sink]]))

    def _goes_on(self, every: Sequence[Started]) -> bool:
        active = [one.query.isActive for one in every]
        if self.given.env.mode is Mode.STREAMING:
            return all(active)
        return any(active) and not any(one.query.exception() for one in every if not one.query.isActive)

    def _wait_for_idle(self, every: Sequence[Started]) -> None:
        """Let micro-batches end, so that a savepoint has none that is at work, if they soon do."""
        until = self.given.clock.now_ms() + _IDLE_MS
        for one in every:
            while one.query.isActive and one.query.status["isTriggerActive"]:
                if self.given.clock.now_ms() > until:
                    return
                self.given.clock.sleep(_IDLE_S)
            one.query.stop()


def _begins(query: Any) -> bool:
    """Whether Spark still makes its sources ready."""
    return query.isActive and str(query.status["message"]).startswith("Initializing")


def _raise_errors(every: Sequence[Started]) -> None:
    for one in every:
        error = one.query.exception()
        if error is not None:
            raise error


def _saved(started: Mapping[str, Sequence[Started]]) -> Iterator[Saved]:
    """What a savepoint has of the sinks of a pipeline; what they have left open becomes visible."""
    for sink, found in started.items():
        for one in found:
            one.finish()
            yield Saved(sink=sink, checkpoint=one.checkpoint, path=one.path, version=one.version())
