"""Write the tables of docs/ that the sources know, each between its comment and ``<!-- end -->``.

python docs/site/tables.py
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import format_table
import postgres_table
import type_table
import typer.main

import filesink
from filesink.api.events import SinkEvent
from filesink.cli.app import app
from filesink.data_source.option_table import WRITING, Option
from filesink.data_source.reading.option_table import READING
from filesink.telemetry.logs import LogListener
from filesink.telemetry.openlineage import OpenLineageListener
from filesink.telemetry.opentelemetry import OpenTelemetryListener
from filesink.telemetry.progress import ProgressLine
from filesink.telemetry.prometheus import PrometheusListener
from property_tests.simulation.world.invariants import INVARIANTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_PACKAGE = Path(str(filesink.__file__)).parent
_TABLE = re.compile(
    r"(<!-- made by docs/site/tables\.py: (?P<name>[a-z ]+) -->\n).*?(?=<!-- end -->)", re.DOTALL
)

_RECEIVERS = (
    *("WebhookNotification", "SqsNotification", "SnsNotification", "KafkaNotification"),
    "FunctionNotification",
)
_EXPORTS = ("DeltaExport", "IcebergExport", "SparkMetadataExport", "ManifestExport")
#: Options that every command has, or that its table is about.
_COMMON = frozenset({"--yes", "--json", "--storage-option", "--storage-options", "--debug"})
#: Where a page says more of a command.
_MORE = {
    "fsck": "#what-fsck-finds",
    "recover": "recovery.md",
    "sweep": "recovery.md#what-is-left-over",
    "compact": "compaction.md#files-that-are-visible-already",
    "adopt": "inventory.md",
    "publish": "publishing.md",
    "retain": "#retention",
    "rollback": "#rollback",
    "erase": "erasure.md",
    "copy": "#copies",
    "export": "tables.md",
    "torture": "#torture",
}
_OF_JOBS = frozenset(
    {"plan", "plugins", "run", "jobs", "job", "logs", "retry", "stop", "restore", "cancel"}  # docs/jobs.md
)


def page(text: str) -> str:
    """The text of a page, with its tables made anew."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{''.join(TABLES[found['name']]())}\n", text)


def names(text: str) -> list[str]:
    """Of the tables of a page."""
    return [found["name"] for found in _TABLE.finditer(text)]


def _rows(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = list(head)
    yield f"| {' | '.join(head)} |\n{'|---' * len(head)}|\n"
    for cells in rows:
        yield f"| {' | '.join(cells)} |\n"


def _options(options: Iterable[Option]) -> Iterator[str]:
    cells = ((f"`{one.name}`", one.takes, one.default, one.meaning) for one in options)
    return _rows(("option", "takes", "default", "meaning"), cells)


def _commands(wanted: Callable[[Any], bool]) -> Iterator[str]:
    commands: Mapping[str, Any] = vars(typer.main.get_command(app))["commands"]
    cells = (_command(name, one) for name, one in commands.items() if name not in _OF_JOBS and wanted(one))
    return _rows(("command", "does", "options"), cells)


def _command(name: str, command: Any) -> tuple[str, str, str]:
    given = [one for one in command.params if one.param_type_name == "argument"]
    typed = " ".join([name, *(_argument(one) for one in given)])
    cell = f"[`{typed}`]({_MORE[name]})" if name in _MORE else f"`{typed}`"
    options = (one for one in command.params if one not in given and one.opts[0] not in _COMMON)
    return cell, _first_line(command.help), ", ".join(f"`{one.opts[0]}`" for one in options)


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).upper().strip("[].")
    return name if parameter.required else f"[{name}]"


def _changes(command: Any) -> bool:
    return command.name == "torture" or any("--yes" in one.opts for one in command.params)


def _events() -> Iterator[str]:
    public = (getattr(filesink, name) for name in filesink.__all__)
    events = {one for one in public if isinstance(one, type) and issubclass(one, SinkEvent)} - {SinkEvent}
    ordered = sorted(events, key=lambda one: inspect.getsourcelines(one)[1])  # as epochs go on
    return _rows(("event", "means"), ((f"`{one.__name__}`", _first_line(one.__doc__)) for one in ordered))


def _first_line(docstring: str | None) -> str:
    return " ".join((docstring or "").partition("\n\n")[0].split()).replace("``", "`")


def _rooms() -> Iterator[tuple[str, str, str]]:
    """From the upper ones to the lower ones: name, what lives there, and those beside it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["id"] == "rooms")
    for layer in layers:
        inits = {room: _PACKAGE / room / "__init__.py" for room in layer.split(" | ")}
        rooms = {room: file for room, file in inits.items() if file.is_file()}
        for room, file in rooms.items():
            beside = ", ".join(f"`{other}`" for other in rooms if other != room)
            yield (
                f"[`{room}`](../filesink/{room})",
                _first_line(ast.get_docstring(ast.parse(file.read_text()))),
                beside,
            )


def _stations() -> Iterator[str]:
    """What the modules say of themselves that the drawing of the same page has."""
    drawn = re.findall(r'\["(\d+) (\S+)"\]', (DOCS / "architecture.md").read_text())
    for number, path in drawn:
        module = ast.parse((_PACKAGE.parent / path).read_text())
        yield f"{number}. [{path}](../{path}): {_first_line(ast.get_docstring(module))}\n"


def _listeners() -> Iterator[str]:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    kinds = (LogListener, ProgressLine, PrometheusListener, OpenTelemetryListener, OpenLineageListener)
    modules = [kind.__module__.rpartition(".")[2] for kind in kinds]
    needed = [f"`{module}`" if module in extras else "" for module in modules]
    cells = zip(kinds, modules, needed, strict=True)
    return _rows(
        ("in `filesink.telemetry`", "extra", "does"),
        ((f"`{module}.{kind.__name__}`", extra, _first_line(kind.__doc__)) for kind, module, extra in cells),
    )


def _described(head: str, *names: str) -> Iterator[str]:
    """Public names with the first sentences of what they say of themselves."""
    return _rows((head, ""), ((f"`{name}`", _first_line(getattr(filesink, name).__doc__)) for name in names))


TABLES: dict[str, Callable[[], Iterable[str]]] = {
    "options of writing": lambda: _options(WRITING),
    "options of reading": lambda: _options(READING),
    "commands that look": lambda: _commands(lambda command: not _changes(command)),
    "commands that change": lambda: _commands(_changes),
    "events": _events,
    "listeners": _listeners,
    "receivers": lambda: _described("receiver", *_RECEIVERS),
    "exports": lambda: _described("export", *_EXPORTS),
    "stations": _stations,
    "rooms": lambda: _rows(("room", "what lives there", "beside"), _rooms()),
    "formats": lambda: map("{}\n".format, format_table.lines()),
    "types": lambda: map("{}\n".format, type_table.lines()),
    "invariants": lambda: _rows(("", "invariant"), INVARIANTS.items()),
    "types of postgres": lambda: map("{}\n".format, postgres_table.lines()),
}

if __name__ == "__main__":
    for file in sorted(DOCS.glob("*.md")):
        file.write_text(page(file.read_text()))
