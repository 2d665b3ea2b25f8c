"""The pages of the reference: public names by room, the command line from its own help, findings of fsck."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import typer.main
from typer.cli import get_docs_for_click

import compaction
import filesink
from filesink.cli.app import app
from filesink.operations.fsck.kinds import KINDS

#: Where a public name is explained, by the room or the module that defines it; all others are with the sink.
ROOMS = {
    "sink": "The file sink",
    "file_sink": "Reports",
    "buckets": "Buckets",
    "parts": "Part files and rolling",
    "formats": "Formats",
    "compaction": "Compaction",
    "metastore": "Publishing",
    "exports": "Exports and notifications",
    "source": "Reading",
    "file_source": "Reading",
    "operations": "Operating",
    "sink_directory": "Looking into a path",
    "sinks": "Other sinks",
    "api": "Events",
    "errors": "Errors",
}
_OTHERS = "The file sink"
_FIRST = {"FileSink", "FileSinkBuilder", "FileSource", "FileSourceBuilder"}


@cache
def python_pages() -> dict[str, str]:
    """Pages of the Python reference by their names, in the order of ``ROOMS``."""
    names: dict[str, list[str]] = defaultdict(list)
    for package in (filesink, compaction):
        for name in package.__all__:
            names[_title(getattr(package, name))].append(f"{package.__name__}.{name}")
    titles = dict.fromkeys(ROOMS.values())
    return {
        f"{_file(title)}.md": _page(title, sorted(names[title], key=_place))
        for title in titles
        if names[title]
    }


def command_line() -> str:
    """All commands with their options, as ``--help`` tells them."""
    text = get_docs_for_click(obj=typer.main.get_command(app), ctx=_context(), name="filesink")
    intro = "From the commands' own help. What they are for is in [operations](../operations.md).\n"
    return text.replace("# `filesink`", f"# Command line\n\n{intro}", 1)


def findings() -> str:
    """All that ``fsck`` can find, by code, each with an anchor."""
    rows = (
        f'| <a id="{code}"></a>`{code}` | {kind.severity.value} | {kind.meaning} | {kind.mend} |\n'
        for code, kind in KINDS.items()
    )
    intro = "`fsck` prints the same with each finding. See [operations](../operations.md#what-fsck-finds).\n"
    head = "| code | severity | means | mended by |\n|---|---|---|---|\n"
    return f"# Findings of fsck\n\n{intro}\n{head}{''.join(rows)}"


def source(path: Path) -> bytes:
    """What a link to a source shows: its text, or the names in a directory."""
    if path.is_dir():
        names = (each.name for each in sorted(path.iterdir()) if each.name != "__pycache__")
        return "".join(f"{name}\n" for name in names).encode()
    return path.read_bytes()


def _title(thing: object) -> str:
    module = getattr(thing, "__module__", "filesink.api.events")  # an alias of a type has none
    package, _, rest = module.partition(".")
    return ROOMS.get(rest.partition(".")[0] if package == "filesink" else package, _OTHERS)


def _place(name: str) -> bool:
    """What a program begins with comes before the rest of its page."""
    return name.rpartition(".")[2] not in _FIRST


def _file(title: str) -> str:
    return title.lower().replace(" ", "-")


def _page(title: str, names: list[str]) -> str:
    listed = ", ".join(f"[`{name.rpartition('.')[2]}`][{name}]" for name in names)
    return f"# {title}\n\n{listed}\n\n" + "".join(f"::: {name}\n{_options(name)}\n" for name in names)


def _options(name: str) -> str:
    """How a name is shown: what a program begins with has all that it inherits, but for "build first"."""
    package, _, own = name.rpartition(".")
    if own not in _FIRST:
        return ""
    methods = vars(getattr(import_module(package), own)).items()
    hidden = [each for each, method in methods if (method.__doc__ or "").startswith("Call ``build()`` first")]
    filters = json.dumps(["!^_", *(f"!^{each}$" for each in hidden)])
    return f"    options:\n      inherited_members: true\n      filters: {filters}\n"


def _context() -> typer.Context:
    return typer.Context(typer.main.get_command(app), info_name="filesink")
