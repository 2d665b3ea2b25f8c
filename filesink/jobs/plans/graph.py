"""Who feeds whom: names of outputs and inputs become edges, edges become pipelines. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from filesink.jobs.plans.values import Edge, Pipeline, Vertex
from filesink.jobs.text.place import failure, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """A vertex and the names of what it takes, as the file has them."""

    vertex: Vertex
    inputs: tuple[str, ...]


def edges(wired: Sequence[Wired]) -> tuple[Edge, ...]:
    """The edges that names mean. Who names no input takes what was made last before it, as in SeaTunnel.

    Raises:
        JobError: ``JOB_GRAPH``: two outputs of one name, an input that nobody makes, or none at all.
    """
    makers = _makers(wired)
    last: Vertex | None = None
    found: list[Edge] = []
    for one in wired:
        vertex = one.vertex
        if vertex.kind != "source":
            found.extend(Edge(source=source.id, target=vertex.id) for source in _feeding(one, makers, last))
        if vertex.kind != "sink":
            last = vertex
    return tuple(found)


def _makers(wired: Sequence[Wired]) -> dict[str, Vertex]:
    makers: dict[str, Vertex] = {}
    for one in wired:
        vertex = one.vertex
        if vertex.kind == "sink":
            continue
        if vertex.output in makers:
            raise failure(
                vertex.place,
                f"two plugins make '{vertex.output}': this one and that of {makers[vertex.output].place}; "
                "give one of them another plugin_output",
                code="JOB_GRAPH",
            )
        makers[vertex.output] = vertex
    return makers


def _feeding(one: Wired, makers: Mapping[str, Vertex], last: Vertex | None) -> list[Vertex]:
    vertex = one.vertex
    if not one.inputs:
        if last is None:
            raise failure(
                vertex.place, f"{vertex.kind} {vertex.plugin} has nothing to take", code="JOB_GRAPH"
            )
        return [last]
    for name in one.inputs:
        if name not in makers:
            raise failure(
                vertex.place,
                f"{vertex.kind} {vertex.plugin} takes '{name}', which nobody makes{nearest(name, makers)}",
                code="JOB_GRAPH",
            )
    return [makers[name] for name in dict.fromkeys(one.inputs)]


def pipelines(wired: Sequence[Wired], found: Sequence[Edge]) -> tuple[Pipeline, ...]:
    """Connected vertices, each pipeline in the order in which its vertices run.

    Raises:
        JobError: ``JOB_GRAPH``; some feed one another in a circle.
    """
    ordered = _in_order([one.vertex for one in wired], found)
    groups = _connected([vertex.id for vertex in ordered], found)
    return tuple(
        Pipeline(
            number=number,
            vertices=tuple(vertex for vertex in ordered if vertex.id in group),
            edges=tuple(edge for edge in found if edge.source in group),
        )
        for number, group in enumerate(groups, start=1)
    )


def _in_order(vertices: Sequence[Vertex], found: Sequence[Edge]) -> list[Vertex]:
    waiting, done = list(vertices), list[Vertex]()
    while waiting:
        open_ids = {vertex.id for vertex in waiting}
        ready = [
            vertex
            for vertex in waiting
            if not any(edge.target == vertex.id and edge.source in open_ids for edge in found)
        ]
        if not ready:
            raise _circle(waiting, found)
        done.append(ready[0])  # one at a time, so that the order of the file is kept wherever it can be
        waiting.remove(ready[0])
    return done


def _circle(waiting: Sequence[Vertex], found: Sequence[Edge]) -> Exception:
    """Walk back from any that waits: whoever comes twice is in the circle."""
    by_id = {vertex.id: vertex for vertex in waiting}
    path = [waiting[0].id]
    while len(set(path)) == len(path):
        path.append(next(edge.source for edge in found if edge.target == path[-1] and edge.source in by_id))
    circle = [by_id[name] for name in reversed(path[path.index(path[-1]) :])]
    names = " -> ".join(f"'{vertex.output}'" for vertex in circle)
    return failure(circle[0].place, f"{names} feed one another in a circle", code="JOB_GRAPH")


def _connected(ids: Sequence[str], found: Sequence[Edge]) -> list[frozenset[str]]:
    groups = {name: {name} for name in ids}
    for edge in found:
        one, other = groups[edge.source], groups[edge.target]
        if one is not other:
            one |= other
            groups.update(dict.fromkeys(other, one))
    return list(dict.fromkeys(frozenset(groups[name]) for name in ids))
