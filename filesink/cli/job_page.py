"""Jobs and plans for people who look at them: a plan as SVG, and the jobs of a path as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from filesink.cli.text import count
from filesink.jobs import JobInfo, Jobs, Pipeline, PipelineInfo, Plan, Savepoint, State, Vertex
from filesink.page.charts import Row, table
from filesink.page.document import plain_page
from filesink.page.graph import Box, graph
from filesink.page.markup import Markup, tag

_SHOWN = 20  # jobs with all that is known of them
_LINES = 12  # of a log
_TOLD = ("path", "table", "topic", "url", "query", "table_name", "bootstrap.servers", "file_format_type")
_KINDS = {State.FAILED: "bad", State.FAILING: "bad", State.FINISHED: "good", State.RUNNING: "good"}


def svg(plan: Plan) -> Markup:
    """All pipelines of a plan as one picture."""
    vertices = [vertex for one in plan.pipelines for vertex in one.vertices]
    edges = [(edge.source, edge.target) for one in plan.pipelines for edge in one.edges]
    return graph([_box(one, "") for one in vertices], edges, label=f"the plan of {plan.name}")


def page(jobs: Jobs, path: str, now: datetime) -> str:
    """All jobs of a path; the newest ones with plan, pipelines, figures, savepoints and log."""
    found = sorted(jobs.list(), key=lambda info: info.changed_ms, reverse=True)
    parts = [part for info in found[:_SHOWN] for part in _job(jobs, info)]
    looked = f"{count(len(found), 'job')}, looked at {now:%Y-%m-%d %H:%M:%S} UTC by filesink"
    return plain_page(path, tag("p", looked), tag("div", *_tiles(found), class_="tiles"), _all(found), *parts)


def _tiles(found: Sequence[JobInfo]) -> Iterator[Markup]:
    for state in (State.RUNNING, State.FAILED, State.SAVEPOINT_DONE, State.CANCELED, State.FINISHED):
        number = sum(info.state is state for info in found)
        kind = _KINDS.get(state) if number else None
        yield tag("div", tag("b", f"{number:,}", class_=kind), tag("span", state.value), class_="tile")


def _all(found: Sequence[JobInfo]) -> Markup:
    heads = ("job", "state", "mode", ">pipelines", "changed (UTC)", "runs on")
    rows = (
        Row(
            cells=(
                tag(
                    "td",
                    tag("a", info.id, href=f"#job-{info.id}"),
                    " ",
                    tag("span", info.name, class_="note"),
                    class_="wide",
                ),
                _state(info.state),
                info.mode,
                f"{len(info.pipelines):,}",
                _moment(info.changed_ms),
                info.holder,
            )
        )
        for info in found
    )
    return table(heads, rows)


def _job(jobs: Jobs, info: JobInfo) -> Iterator[Markup]:
    yield tag("h2", f"{info.id}: {info.state.value}", id=f"job-{info.id}")
    yield tag("p", f"{info.name}, {info.file}, submitted {_moment(info.submitted_ms)}")
    if info.error:
        yield tag("p", info.error, class_="bad")
    plan = jobs.plan_of(info.id)
    by_number = {one.number: one for one in info.pipelines}
    for pipeline in plan.pipelines:
        yield _graph(pipeline, by_number[pipeline.number])
    heads = (
        ">pipeline",
        "state",
        ">starts",
        ">epochs",
        ">rows",
        ">rows/s",
        ">behind",
        "newest epoch",
        "last error",
    )
    yield table(heads, (_pipeline(one) for one in info.pipelines))
    yield from _savepoints(jobs.savepoints(info.id))
    lines = jobs.logs(info.id)[-_LINES:]
    yield tag("ul", *(tag("li", f"{_moment(at_ms)} {text}") for at_ms, text in lines), class_="note")


def _graph(pipeline: Pipeline, info: PipelineInfo) -> Markup:
    note = "bad" if info.state in {State.FAILED, State.FAILING} else ""
    boxes = [_box(vertex, note if vertex.kind == "sink" else "") for vertex in pipeline.vertices]
    edges = [(edge.source, edge.target) for edge in pipeline.edges]
    drawn = graph(boxes, edges, label=f"pipeline {pipeline.number}, {info.state.value}")
    return tag("div", drawn, class_="scroll")


def _box(vertex: Vertex, kind: str) -> Box:
    options: Mapping[str, str] = dict(vertex.options)
    note = next((" ".join(options[name].split()) for name in _TOLD if name in options), "")
    tasks = f" x{vertex.parallelism}" if vertex.kind == "source" else ""
    return Box(id=vertex.id, title=f"{vertex.plugin}{tasks}", note=note, kind=kind or vertex.kind)


def _pipeline(one: PipelineInfo) -> Row:
    figures = one.figures
    done = [rows for rows in one.done.values() if rows is not None]
    rows = f"{sum(done):,}" if done else "" if figures is None else f"{figures.rows:,}"
    streams = (
        ("", rows, "", "", "")
        if figures is None
        else (
            f"{figures.epochs:,}",
            rows,
            f"{figures.rows_per_second:,.0f}",
            "" if figures.behind is None else f"{figures.behind:,}",
            figures.newest,
        )
    )
    return Row(cells=(str(one.number), _state(one.state), str(one.starts), *streams, one.error))


def _savepoints(found: Sequence[Savepoint]) -> Iterator[Markup]:
    for one in found[-_LINES:]:
        versions = ", ".join(f"{part.sink} at version {part.version}" for part in one.streams)
        yield tag("p", f"savepoint {one.number} of {_moment(one.at_ms)}: {versions}")


def _state(state: State) -> Markup:
    return tag("td", state.value, class_=_KINDS.get(state))


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
