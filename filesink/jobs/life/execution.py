"""One pipeline on Spark: frames are built from sources to sinks, batches are written, streams are started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

from filesink.errors import JobError
from filesink.jobs.life.secrets import Secrets
from filesink.jobs.model.env import Env, Mode
from filesink.jobs.plans.values import Pipeline, Vertex
from filesink.jobs.plugins.api import Frames, Plugin, Run, Sink, Source, Transform
from filesink.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 0.2  # how often a stream is looked at


@dataclass(slots=True)
class Control:
    """What somebody wants of a pipeline that runs."""

    ends: Flag = field(default_factory=Flag)
    on_end: list[Callable[[], object]] = field(default_factory=list)

    def end(self) -> None:
        """Ask it to end, after the epoch that it is in or before."""
        self.ends.set()
        for stop in list(self.on_end):
            stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Runs pipelines of one job.

    Args:
        job: unique; not its id, which may be another job's elsewhere.
        directory: of the job's checkpoints and ledgers.
        say: prints a line for people.
    """

    job: str
    spark: SparkSession
    env: Env
    plugins: Mapping[str, Plugin]
    directory: str
    secrets: Secrets
    clock: Clock
    say: Callable[[str], None]

    def run(
        self,
        pipeline: Pipeline,
        control: Control,
        done: Mapping[str, int | None],
        told: Callable[[str, int | None], None],
    ) -> None:
        """Run a pipeline to its end, or until ``control`` asks for it.

        Args:
            pipeline: of the job's plan.
            control: is looked at between sinks, and while a stream runs.
            done: sinks of a batch that are done; they are passed over.
            told: called for each that is done, with its rows.
        """
        session = self.spark.newSession()
        session.sparkContext.setLocalProperty("spark.scheduler.pool", f"pipeline-{pipeline.number}")
        wiring = _Wiring(execution=self, spark=session, pipeline=pipeline)
        if self.env.mode is Mode.STREAMING:
            self._follow(wiring.started(), control)
            return
        tag = f"filesink-{self.job}-{pipeline.number}"
        session.sparkContext.addJobTag(tag)
        control.on_end.append(lambda: session.sparkContext.cancelJobsWithTag(tag))
        for sink in pipeline.of_kind("sink"):
            if control.ends.is_set():
                return
            if sink.id not in done:
                told(sink.id, wiring.written(sink))

    def _follow(self, queries: Sequence[Any], control: Control) -> None:
        """Wait until a query ends; then all of the pipeline's do."""
        try:
            while queries and all(query.isActive for query in queries) and not control.ends.is_set():
                self.clock.sleep(_LOOK_S)
            for query in queries:
                error = query.exception()
                if error is not None:
                    raise error
        finally:
            for query in queries:
                query.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wiring:
    """The frames of one run of a pipeline."""

    execution: Execution
    spark: SparkSession
    pipeline: Pipeline

    def written(self, sink: Vertex) -> int | None:
        return self._sink(sink).write(self._inputs(sink, {}), self._run(sink))

    def started(self) -> list[Any]:
        queries: list[Any] = []
        try:
            for sink in self.pipeline.of_kind("sink"):
                queries += self._start(sink)
        except BaseException:
            for query in queries:
                query.stop()
            raise
        return queries

    def _start(self, sink: Vertex) -> Sequence[Any]:
        try:
            return self._sink(sink).start(self._inputs(sink, {}), self._run(sink))
        except NotImplementedError:
            raise JobError(
                f"{sink.place}: sink {sink.plugin} takes batches only", code="JOB_REFUSED"
            ) from None

    def _sink(self, vertex: Vertex) -> Sink:
        plugin = self.execution.plugins[vertex.id]
        assert isinstance(plugin, Sink)  # noqa: S101 - by its section
        return plugin

    def _inputs(self, vertex: Vertex, made: dict[str, Frames]) -> Frames:
        """The tables that a vertex takes: one is named as what makes it, several by themselves."""
        found: dict[str, Any] = {}
        by_id = {one.id: one for one in self.pipeline.vertices}
        for name in self.pipeline.inputs_of(vertex.id):
            frames = self._frames(by_id[name], made)
            is_query = vertex.kind == "transform" and len(frames) == 1
            for table, frame in frames.items():
                key = by_id[name].output if is_query or not table else table
                if key in found:
                    raise JobError(
                        f"{vertex.place}: two tables '{key}' come to {vertex.plugin}", code="JOB_GRAPH"
                    )
                found[key] = frame
        return found

    def _frames(self, vertex: Vertex, made: dict[str, Frames]) -> Frames:
        if vertex.id not in made:
            plugin = self.execution.plugins[vertex.id]
            run = self._run(vertex)
            if isinstance(plugin, Source):
                frames = plugin.read(run)
            else:
                assert isinstance(plugin, Transform)  # noqa: S101 - sinks feed nobody
                frames = plugin.apply(self._inputs(vertex, made), run)
            tasks = plugin.options.parallelism
            made[vertex.id] = {
                name: frame.repartition(tasks) if tasks else frame for name, frame in frames.items()
            }
        return made[vertex.id]

    def _run(self, vertex: Vertex) -> Run:
        execution = self.execution
        return Run(
            spark=self.spark,
            job=execution.job,
            vertex=vertex.id,
            directory=f"{execution.directory}/{vertex.id}",
            parallelism=vertex.parallelism,
            env=execution.env,
            say=execution.say,
            reveal=execution.secrets.reveal,
        )
