"""Plans as frozen values that can be printed and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from filesink.jobs.text.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """A plugin of a job.

    Attributes:
        id: such as ``sink-2``; counts by section.
        kind: ``source``, ``transform`` or ``sink``.
        options: names and values as they may be shown, without secrets; only those that the file has.
        output: the name of what it makes; that of the vertex where the file has none.
        place: in the job file; two plans are equal wherever their lines stand.
    """

    id: str
    kind: str
    plugin: str
    options: tuple[tuple[str, str], ...]
    output: str
    parallelism: int
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One vertex feeds another."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Vertices that are connected, in an order in which each comes behind those that feed it.

    It has checkpoints, restarts and a fate of its own.
    """

    number: int
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]

    def inputs_of(self, vertex: str) -> tuple[str, ...]:
        """The ids of what feeds a vertex, in the order of the file."""
        return tuple(edge.source for edge in self.edges if edge.target == vertex)

    def outputs_of(self, vertex: str) -> tuple[str, ...]:
        """The ids of what a vertex feeds."""
        return tuple(edge.target for edge in self.edges if edge.source == vertex)

    def of_kind(self, kind: str) -> tuple[Vertex, ...]:
        """The vertices of one kind."""
        return tuple(vertex for vertex in self.vertices if vertex.kind == kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All pipelines of a job.

    Attributes:
        notes: what a reader should know; not compared.
    """

    name: str
    mode: str
    pipelines: tuple[Pipeline, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """Those of all pipelines."""
        return tuple(vertex for pipeline in self.pipelines for vertex in pipeline.vertices)


def differences(before: Plan, after: Plan) -> Iterator[str]:
    """What another plan has changed, each a sentence; nothing if they are equal."""
    if before.mode != after.mode:
        yield f"the mode was {before.mode} and is {after.mode}"
    old = {vertex.id: vertex for vertex in before.vertices}
    new = {vertex.id: vertex for vertex in after.vertices}
    for name in sorted(old.keys() - new.keys()):
        yield f"{name} ({old[name].plugin}) is gone"
    for name in sorted(new.keys() - old.keys()):
        yield f"{name} ({new[name].plugin}) is new"
    for name in sorted(old.keys() & new.keys()):
        yield from _changes(old[name], new[name])
    if {edge for one in before.pipelines for edge in one.edges} != {
        edge for one in after.pipelines for edge in one.edges
    }:
        yield "who feeds whom has changed"


def _changes(before: Vertex, after: Vertex) -> Iterator[str]:
    if before.plugin != after.plugin:
        yield f"{before.id} was {before.plugin} and is {after.plugin}"
        return
    old, new = dict(before.options), dict(after.options)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"the option '{name}' of {before.id} ({before.plugin}) has changed"
    if before.parallelism != after.parallelism:
        yield f"the parallelism of {before.id} ({before.plugin}) has changed"
