"""A job against its real sources, up to its sinks: which columns come, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filesink.errors import FilesinkError, JobError
from filesink.jobs.life.secrets import Secrets, process_environment
from filesink.jobs.life.session import sentence, session
from filesink.jobs.life.wiring import Given, Wiring
from filesink.jobs.plans.planned import Job
from filesink.jobs.plans.values import Vertex
from filesink.jobs.plugins.api import Sink
from filesink.jobs.plugins.sources.spark import settings_of
from filesink.system import SystemClock, SystemIds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTable:
    """A table as it would be.

    Attributes:
        vertex: the id of what makes it, or, for a sink, of what takes it.
        table: its name; ``""`` where there is only one.
        columns: names and Spark's types, in their order.
        shuffles: how often rows change places on the way to a sink; ``None`` for streams, and for what is
            no sink.
    """

    vertex: str
    table: str
    columns: tuple[tuple[str, str], ...]
    shuffles: int | None


def checked(job: Job, *, master: str | None = None) -> list[CheckedTable]:
    """The tables of all vertices. Sources are opened; no row is written, and few are read.

    Raises:
        JobError: ``JOB_DRY_RUN``; a source is not there, or a column is not, with file and line.
    """
    environment = process_environment()
    settings = settings_of(job.env.spark, Secrets(environment=environment).reveal)
    spark = session(settings, name=job.plan.name, master=master)
    given = Given(
        job="dry-run",
        env=job.env,
        plugins=job.plugins,
        directory=f"/filesink-dry-run-{SystemIds().uuid()}",  # streams are not started, so it is never made
        directories={},
        secrets=Secrets(environment=environment, spark=spark),
        clock=SystemClock(),
        say=lambda _: None,
    )
    found: list[CheckedTable] = []
    for pipeline in job.plan.pipelines:
        wiring = Wiring(given=given, spark=spark.newSession(), pipeline=pipeline)
        for vertex in pipeline.vertices:
            found += _checked(wiring, vertex, job.plugins[vertex.id])
    return found


def _checked(wiring: Wiring, vertex: Vertex, plugin: Any) -> Iterator[CheckedTable]:
    try:
        frames: Mapping[str, DataFrame] = wiring.frames_of(vertex)
        if isinstance(plugin, Sink):
            plugin.check(frames, wiring.run_of(vertex))
        for name, frame in frames.items():
            columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
            is_counted = isinstance(plugin, Sink) and not frame.isStreaming
            yield CheckedTable(
                vertex=vertex.id,
                table=name,
                columns=columns,
                shuffles=_shuffles(frame) if is_counted else None,
            )
    except Exception as error:  # whatever a plugin raises is said with its line, and ends the dry run
        text, _ = sentence(error)
        if isinstance(error, FilesinkError) and text.startswith(str(vertex.place)):
            raise
        raise JobError(
            f"{vertex.place}: {vertex.kind} {vertex.plugin}: {text}", code="JOB_DRY_RUN"
        ) from error


def _shuffles(frame: DataFrame) -> int:
    plan: Any = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - Spark has no other word for it
    lines = str(plan.toString()).splitlines()
    return sum(line.lstrip(" :+-*()0123456789").startswith("Exchange ") for line in lines)
