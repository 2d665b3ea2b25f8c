"""The frames of one run of a pipeline, from sources to sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filesink.errors import JobError
from filesink.jobs.life.secrets import Secrets
from filesink.jobs.model.env import Env
from filesink.jobs.plans.values import Pipeline, Vertex
from filesink.jobs.plugins.api import Frames, Plugin, Run, Sink, Source, Started, Transform
from filesink.jobs.text.place import failure
from filesink.ports import Clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What all pipelines of a run of a job have in common.

    Attributes:
        job: unique; not its id, which may be another job's elsewhere.
        directory: of the job's checkpoints and ledgers.
        directories: names below it of vertices that were rolled back; of all others it is the vertex.
        say: prints a line for people.
    """

    job: str
    env: Env
    plugins: Mapping[str, Plugin]
    directory: str
    directories: Mapping[str, str]
    secrets: Secrets
    clock: Clock
    say: Callable[[str], None]

    def run(self, vertex: Vertex, spark: SparkSession) -> Run:
        """What a plugin is told."""
        name = self.directories.get(vertex.id, vertex.id)
        return Run(
            spark=spark,
            job=self.job,
            vertex=vertex.id,
            directory=f"{self.directory}/{name}",
            parallelism=vertex.parallelism,
            env=self.env,
            say=self.say,
            reveal=self.secrets.reveal,
            is_rolled_back=name != vertex.id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Builds them. A source is read anew for each sink."""

    given: Given
    spark: SparkSession
    pipeline: Pipeline

    def written(self, sink: Vertex) -> int | None:
        """Write a batch into a sink; see ``Sink.write``."""
        frames = self.inputs(sink)
        with _placed(sink):
            return self._sink(sink).write(frames, self.run_of(sink))

    def started(self, sinks: Sequence[Vertex]) -> dict[str, Sequence[Started]]:
        """The queries of streams into ``sinks``, by their ids; none is left if one cannot be started."""
        found: dict[str, Sequence[Started]] = {}
        try:
            for sink in sinks:
                found[sink.id] = self._start(sink)
        except BaseException:
            for one in (one for started in found.values() for one in started):
                one.query.stop()
            raise
        return found

    def _start(self, sink: Vertex) -> Sequence[Started]:
        frames = self.inputs(sink)
        try:
            with _placed(sink):
                return self._sink(sink).start(frames, self.run_of(sink))
        except NotImplementedError:
            raise JobError(
                f"{sink.place}: sink {sink.plugin} takes batches only", code="JOB_REFUSED"
            ) from None

    def inputs(self, vertex: Vertex) -> Frames:
        """The tables that a vertex takes, lazy."""
        return self._inputs(vertex, {})

    def frames_of(self, vertex: Vertex) -> Frames:
        """What a vertex makes, or takes if it is a sink; lazy."""
        return self.inputs(vertex) if vertex.kind == "sink" else self._frames(vertex, {})

    def _sink(self, vertex: Vertex) -> Sink:
        plugin = self.given.plugins[vertex.id]
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
            plugin = self.given.plugins[vertex.id]
            run = self.run_of(vertex)
            given = self._inputs(vertex, made)
            with _placed(vertex):
                frames = plugin.read(run) if isinstance(plugin, Source) else _applied(plugin, given, run)
            tasks = plugin.options.parallelism
            made[vertex.id] = {name: _cut(frame, tasks) for name, frame in frames.items()}
        return made[vertex.id]

    def run_of(self, vertex: Vertex) -> Run:
        """What its plugin is told."""
        return self.given.run(vertex, self.spark)


def _applied(plugin: Plugin, given: Frames, run: Run) -> Frames:
    assert isinstance(plugin, Transform)  # noqa: S101 - sinks feed nobody
    return plugin.apply(given, run)


@contextmanager
def _placed(vertex: Vertex) -> Iterator[None]:
    """What a plugin finds wrong with the job is said with its line."""
    try:
        yield
    except JobError as error:
        if error.message.startswith(f"{vertex.place}: "):
            raise
        raise failure(vertex.place, error.message, code=error.code) from error


def _cut(frame: DataFrame, tasks: int | None) -> DataFrame:
    return frame.repartition(tasks) if tasks else frame
