"""``filesink plan``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from filesink.cli.call import Call
from filesink.cli.jobs import FileArgument, InlineOption, MasterOption, VariablesOption, given, rooms
from filesink.cli.text import clean, count
from filesink.errors import StorageError

if TYPE_CHECKING:
    from filesink.jobs import CheckedTable, Pipeline, Plan, Vertex

_SHOWN = 6  # options of a plugin
_LONGEST = 60  # characters of one


def plan(
    call: Call,
    job_file: FileArgument,
    variables: VariablesOption = None,
    inline_secrets: InlineOption = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw it into this file; replaced if there.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Open the sources, and check columns up to the sinks, by Spark.")
    ] = False,
    master: MasterOption = None,
) -> None:
    """What FILE would run: its pipelines, and who feeds whom. Nothing is written, nor opened without --check.

    A word that is unknown, has no counterpart, or cannot be understood is an error with its line.
    """
    found: Plan = rooms().plan(job_file, variables=given(variables), inline_secrets=inline_secrets)
    if svg is not None:
        _draw(found, svg)
    tables: list[CheckedTable] = []
    if check:
        tables = rooms().dry_run(
            job_file, variables=given(variables), inline_secrets=inline_secrets, master=master
        )
    if call.json:
        call.show(found)
        for one in tables:
            call.show(one)
        return
    call.line(f"{found.name}: {found.mode}, {count(len(found.pipelines), 'pipeline')}", style="bold")
    for pipeline in found.pipelines:
        call.out.print(_tree(pipeline))
    for one in tables:
        call.line(_columns(one))
    for note in found.notes:
        call.note(f"note: {note}")


def _draw(found: Plan, svg: Path) -> None:
    from filesink.cli.job_page import svg as drawn

    try:
        svg.write_text(f"{drawn(found)}\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"'{svg}' cannot be written: {error.strerror}; name another place",
            code="NOT_WRITTEN",
        ) from error


def _columns(one: CheckedTable) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in one.columns)
    table = f" '{one.table}'" if one.table else ""
    shuffles = "" if one.shuffles is None else f"; {count(one.shuffles, 'shuffle')} on the way"
    return f"{one.vertex}{table}: {columns or 'no columns'}{shuffles}"


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
