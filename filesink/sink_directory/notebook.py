"""A path as a notebook shows it. Names are text, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from filesink.errors import FilesinkError
from filesink.sink_directory.status import PathStatus
from formats.sizes import size_text

_SHOWN = 20  # sinks, and sentences about damage


def shown(path: str, look: Callable[[], PathStatus]) -> str:
    """HTML of what ``look`` finds now, or of the sentence that it raises: a notebook shows no traceback."""
    try:
        status = look()
    except FilesinkError as error:  # told in its place
        return f"<p><b>{escape(path)}</b>: {escape(error.message)}</p>"
    rows = "?" if status.rows is None else f"{status.rows:,}"
    version = "no version" if status.version is None else f"version {status.version:,}"
    hidden = sum(part.rows for part in status.held)
    return (
        f"<p><b>{escape(path)}</b>, {version}: {rows} rows in {status.files:,} files, "
        f"{size_text(status.bytes)}; {hidden:,} rows wait</p>{_damage(status)}{_sinks(status)}"
    )


def _damage(status: PathStatus) -> str:
    return "".join(f"<p>damaged: {escape(sentence)}</p>" for sentence in status.damage[:_SHOWN])


def _sinks(status: PathStatus) -> str:
    lines = "".join(
        f"<tr><td>{escape(state.id)}</td><td>{state.slot}</td><td>{'yes' if state.complete else 'no'}</td>"
        f"<td>{state.open_rows + state.waiting_rows:,}</td></tr>"
        for state in status.sinks[:_SHOWN]
    )
    more = f"<p>and {len(status.sinks) - _SHOWN:,} more</p>" if len(status.sinks) > _SHOWN else ""
    heads = "<tr><th>sink</th><th>epoch</th><th>complete</th><th>rows that wait</th></tr>"
    return f"<table>{heads}{lines}</table>{more}"
