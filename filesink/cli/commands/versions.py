"""``filesink diff`` and ``filesink schema``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pyarrow as pa
import typer

from filesink import Epoch, LiveFile, SinkDirectory, Snapshot, StateError
from filesink.cli.call import Call
from filesink.cli.command import PathArgument, whole_number
from filesink.cli.tables import show_table
from filesink.cli.text import clean, count, file_object, time
from formats.sizes import size_text

_Version = Annotated[int, typer.Argument(metavar="VERSION", help="See filesink log; 0 is before the first.")]


def diff(call: Call, path: PathArgument, one: _Version, other: _Version) -> None:
    """Which files and columns are in one version of PATH and not in another."""
    directory = call.open(path)
    before, after = (directory.snapshot(at=whole_number(version, name="VERSION")) for version in (one, other))
    had, has = ({file.path: file for file in snapshot.files} for snapshot in (before, after))
    added = [file for name, file in has.items() if name not in had]
    removed = [file for name, file in had.items() if name not in has]
    columns = list(_changes(_schema(before), _schema(after)))
    if call.json:
        came, went = (list(map(file_object, some)) for some in (added, removed))
        call.show({"from": one, "to": other, "added": came, "removed": went, "columns": columns})
        return
    call.line(
        f"from version {one} to version {other}: {_sum(added, '+')}, {_sum(removed, '-')}", style="bold"
    )
    for column in columns:
        call.line(column)
    show_table(call, ("", ">rows", ">size", "file"), _rows(added, removed))


def _sum(files: list[LiveFile], sign: str) -> str:
    rows = None if any(file.rows is None for file in files) else sum(file.rows or 0 for file in files)
    size = size_text(sum(file.size for file in files))
    return f"{sign}{count(len(files), 'file')} ({count(rows, 'row')}, {size})"


def _rows(added: list[LiveFile], removed: list[LiveFile]) -> Iterator[tuple[str, ...]]:
    marked = sorted([(file.path, "+", file) for file in added] + [(file.path, "-", file) for file in removed])
    for name, sign, file in marked:
        yield sign, count(file.rows), size_text(file.size), name


def _schema(snapshot: Snapshot) -> pa.Schema:
    try:
        return snapshot.schema
    except StateError as error:  # of a version without files nobody knows any columns
        if error.code != "NO_SCHEMA":
            raise
        return pa.schema([])


def _changes(before: pa.Schema, after: pa.Schema) -> Iterator[str]:
    had, has = ({field.name: str(field.type) for field in schema} for schema in (before, after))
    for name, kind in has.items():
        if name not in had:
            yield f"+ {name}: {kind}"
        elif had[name] != kind:
            yield f"~ {name}: {had[name]} -> {kind}"
    for name, kind in had.items():
        if name not in has:
            yield f"- {name}: {kind}"


def schema(
    call: Call,
    path: PathArgument,
    history: Annotated[
        bool, typer.Option("--history", help="All that are remembered, and what has changed.")
    ] = False,
) -> None:
    """The columns of the newest data of PATH, with those that its directories show."""
    directory = call.open(path)
    if history:
        _print_history(call, directory)
        return
    found = directory.schema()
    if call.json:
        call.show({"columns": _columns(found)})
        return
    show_table(call, ("column", "type", "null"), ((one.name, str(one.type), _null(one)) for one in found))


def _columns(found: pa.Schema) -> list[dict[str, object]]:
    return [{"name": one.name, "type": str(one.type), "nullable": one.nullable} for one in found]


def _null(field: pa.Field[pa.DataType]) -> str:
    return "" if field.nullable else "no"


def _print_history(call: Call, directory: SinkDirectory) -> None:
    schemas = directory.schemas()
    first: dict[str, Epoch] = {}
    for epoch in directory.epochs():
        if epoch.schema and epoch.schema not in first:
            first[epoch.schema] = epoch
    before = pa.schema([])
    for name, found in schemas.items():
        begun = first.get(name)
        changes = list(_changes(before, found))
        if call.json:
            version = None if begun is None else begun.version
            call.show({"id": name, "since": version, "columns": _columns(found), "changes": changes})
        else:
            since = "" if begun is None else f"since version {begun.version}, {time(begun.visible)} "
            call.line(f"{since}({clean(name)})", style="bold")
            for change in changes:
                call.line(f"  {change}")
        before = found
