"""``filesink plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from rich.tree import Tree

from filesink.cli.call import Call
from filesink.cli.jobs import FileArgument, InlineOption, VariablesOption, given, rooms
from filesink.cli.text import clean, count

if TYPE_CHECKING:
    from filesink.jobs import Pipeline, Plan, Vertex

_SHOWN = 6  # options of a plugin
_LONGEST = 60  # characters of one


def plan(
    call: Call,
    job_file: FileArgument,
    variables: VariablesOption = None,
    inline_secrets: InlineOption = False,
) -> None:
    """What FILE would run: its pipelines, and who feeds whom. Nothing is opened or written.

    A word that is unknown, has no counterpart, or cannot be understood is an error with its line.
    """
    found: Plan = rooms().plan(job_file, variables=given(variables), inline_secrets=inline_secrets)
    if call.json:
        call.show(found)
        return
    call.line(f"{found.name}: {found.mode}, {count(len(found.pipelines), 'pipeline')}", style="bold")
    for pipeline in found.pipelines:
        call.out.print(_tree(pipeline))
    for note in found.notes:
        call.note(f"note: {note}")


def _tree(pipeline: Pipeline) -> Tree:
    root = Tree(Text(f"pipeline {pipeline.number}"))
    shown: set[str] = set()
    for source in pipeline.of_kind("source"):
        _grow(root, source, pipeline, shown)
    return root


def _grow(above: Tree, vertex: Vertex, pipeline: Pipeline, shown: set[str]) -> None:
    if vertex.id in shown:  # it takes several; its own branch is above
        above.add(Text(f"{vertex.id} {vertex.plugin}, as above", style="dim"))
        return
    shown.add(vertex.id)
    branch = above.add(Text(clean(_label(vertex))))
    by_id = {one.id: one for one in pipeline.vertices}
    for name in pipeline.outputs_of(vertex.id):
        _grow(branch, by_id[name], pipeline, shown)


def _label(vertex: Vertex) -> str:
    options = [f"{name} = {_short(value)}" for name, value in vertex.options if name != "schema"]
    more = f", {len(options) - _SHOWN} more" if len(options) > _SHOWN else ""
    tasks = f" x{vertex.parallelism}" if vertex.kind == "source" else ""
    output = f" -> {vertex.output}" if vertex.kind != "sink" and vertex.output != vertex.id else ""
    return f"{vertex.id} {vertex.plugin}{tasks}{output}: {', '.join(options[:_SHOWN])}{more}".rstrip(": ")


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
