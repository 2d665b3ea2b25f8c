"""What has happened to a job, and where it is: events, and the state that they add up to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from filesink.errors import StateCorruptError
from filesink.jobs.life.states import JOB, PIPELINE, State, step
from filesink.jobs.life.watching import Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step.

    Attributes:
        at_ms: milliseconds since 1970 UTC.
        by: the supervisor that wrote it.
        pipeline: its number; 0 for the job itself.
        state: where it has gone; ``None`` if it stays.
        sink: the id of a sink of a batch that is done.
        rows: that it has written; ``None`` if nobody knows.
        error: why, as it may be shown.
        directory: of the sink from now on, below ``run``; it was rolled back.
    """

    at_ms: int
    by: str
    pipeline: int = 0
    state: State | None = None
    sink: str = ""
    rows: int | None = None
    error: str = ""
    directory: str = ""

    def plain(self) -> dict[str, Any]:
        """Values of JSON."""
        return {
            "at_ms": self.at_ms,
            "by": self.by,
            "pipeline": self.pipeline,
            "state": None if self.state is None else self.state.value,
            "sink": self.sink,
            "rows": self.rows,
            "error": self.error,
            "directory": self.directory,
        }

    def __str__(self) -> str:
        """As a log has it."""
        of = f"pipeline {self.pipeline}: " if self.pipeline else ""
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        what = (
            f"{self.sink} was rolled back"
            if self.directory
            else f"{self.sink} is done{rows}"
            if self.sink
            else str(self.state)
        )
        return f"{of}{what}{f': {self.error}' if self.error else ''}"

    @staticmethod
    def of(value: Mapping[str, Any]) -> Event:
        """The event that ``plain`` has given.

        Raises:
            StateCorruptError: it is none.
        """
        try:
            state = value["state"]
            return Event(**{**value, "state": None if state is None else State(state)})
        except (KeyError, TypeError, ValueError):
            raise StateCorruptError("a record in the store of jobs is no event", code="JSON") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInfo:
    """How far a pipeline is.

    Attributes:
        starts: how often it was started.
        done: ids of the sinks of a batch that are done, with their rows.
        error: of its last failure, ``""`` for none.
        directories: of sinks that were rolled back, below ``run``, by their ids.
        figures: of its streams, while they run and after; ``None`` for batches.
    """

    number: int
    state: State = State.CREATED
    starts: int = 0
    done: Mapping[str, int | None] = field(default_factory=dict)
    error: str = ""
    directories: Mapping[str, str] = field(default_factory=dict)
    figures: Figures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """How far a job is.

    Attributes:
        holder: the host whose supervisor runs it, ``""`` if nobody does.
        events: how many there are.
        submitted_ms, changed_ms: milliseconds since 1970 UTC.
    """

    id: str
    name: str
    file: str
    mode: str
    state: State = State.CREATED
    pipelines: tuple[PipelineInfo, ...] = ()
    error: str = ""
    holder: str = ""
    events: int = 0
    submitted_ms: int = 0
    changed_ms: int = 0

    @property
    def directories(self) -> dict[str, str]:
        """Of all pipelines."""
        return {sink: name for one in self.pipelines for sink, name in one.directories.items()}


def after(info: JobInfo, events: Iterable[Event]) -> JobInfo:
    """``info`` once ``events`` have happened."""
    for event in events:
        info = _after(info, event)
    return info


def _after(info: JobInfo, event: Event) -> JobInfo:
    info = replace(info, events=info.events + 1, changed_ms=event.at_ms)
    if event.pipeline == 0:
        if event.state is None:
            return info
        state = step(JOB, info.state, event.state, f"job '{info.id}'")
        return replace(info, state=state, error=event.error)
    pipelines = tuple(
        _pipeline_after(one, event) if one.number == event.pipeline else one for one in info.pipelines
    )
    return replace(info, pipelines=pipelines)


def _pipeline_after(info: PipelineInfo, event: Event) -> PipelineInfo:
    if event.directory:
        return replace(info, directories={**info.directories, event.sink: event.directory})
    if event.sink:
        return replace(info, done={**info.done, event.sink: event.rows})
    if event.state is None:
        return info
    state = step(PIPELINE, info.state, event.state, f"pipeline {info.number}")
    starts = info.starts + (state is State.INITIALIZING)
    return replace(info, state=state, starts=starts, error=event.error or info.error)
