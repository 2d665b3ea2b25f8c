"""``filesink plugins``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from filesink.cli.call import Call
from filesink.cli.jobs import rooms
from filesink.cli.tables import show_table

if TYPE_CHECKING:
    from filesink.jobs import OptionDescription, PluginDescription


def plugins(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show the options of this one.", show_default=False)
    ] = None,
) -> None:
    """The plugins that a job file may name, or the options of one of them."""
    found: list[PluginDescription] = rooms().plugins(name)
    if call.json:
        for one in found:
            call.show(one)
    elif name is None:
        show_table(call, ("kind", "name", "what it is"), ((one.kind, one.name, one.doc) for one in found))
    else:
        for one in found:
            call.line(f"{one.kind} {one.name}: {one.doc}", style="bold")
            show_table(call, ("option", "type", "default", "unit", "meaning"), _rows(one.options))


def _rows(options: tuple[OptionDescription, ...]) -> Iterator[tuple[str, ...]]:
    for one in options:
        yield " or ".join(one.words), one.type, one.default, one.unit, one.doc
