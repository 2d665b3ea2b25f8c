"""Jobs and plans for people who look at them: a plan as SVG, and the jobs of a path as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from filesink.cli.jobs import PIPELINE_COLUMNS, pipeline_row, savepoint_line, time_of
from filesink.cli.text import count, time
from filesink.jobs import JobInfo, Jobs, Pipeline, PipelineInfo, Plan, State, Vertex
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
    looked = f"{count(len(found), 'job')}, looked at {time(now)} UTC by filesink"
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
                time_of(info.changed_ms),
                info.holder,
            )
        )
        for info in found
    )
    return table(heads, rows)


def _job(jobs: Jobs, info: JobInfo) -> Iterator[Markup]:
    yield tag("h2", f"{info.id}: {info.state.value}", id=f"job-{info.id}")
    yield tag("p", f"{info.name}, {info.file}, submitted {time_of(info.submitted_ms)}")
    if info.error:
        yield tag("p", info.error, class_="bad")
    plan = jobs.plan_of(info.id)
    by_number = {one.number: one for one in info.pipelines}
    for pipeline in plan.pipelines:
        yield _graph(pipeline, by_number[pipeline.number])
    yield table(PIPELINE_COLUMNS, (_pipeline(one) for one in info.pipelines))
    for savepoint in jobs.savepoints(info.id)[-_LINES:]:
        yield tag("p", savepoint_line(savepoint))
    lines = jobs.logs(info.id)[-_LINES:]
    yield tag("ul", *(tag("li", f"{time_of(at_ms)} {text}") for at_ms, text in lines), class_="note")


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
    number, _, *others = pipeline_row(one)
    return Row(cells=(number, _state(one.state), *others))


def _state(state: State) -> Markup:
    return tag("td", state.value, class_=_KINDS.get(state))
