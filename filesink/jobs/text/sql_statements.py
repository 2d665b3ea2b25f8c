"""SQL, cut at its semicolons. Comments go, and quotes are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from filesink.jobs.text.place import Place, failure

#: A text in quotes, a comment, or a semicolon, whichever begins first; a comment may lack its end.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<open>'|"|`|/\*)|(?P<end>;)""", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement, without its semicolon."""

    text: str
    place: Place


def statements(text: str, file: str) -> Iterator[Statement]:
    """All that hold more than comments.

    Raises:
        JobError: ``JOB_SYNTAX``; a text or a comment has no end.
    """
    text = re.sub(_TOKEN, lambda found: _blank(found, text, file), text)
    begin = 0
    for found in _TOKEN.finditer(text):
        if found["end"]:
            yield from _statement(text, begin, found.start(), file)
            begin = found.end()
    yield from _statement(text, begin, len(text), file)


def _blank(found: re.Match[str], text: str, file: str) -> str:
    """Comments become as many lines, so that those behind them keep their numbers."""
    if found["open"]:
        line = text.count("\n", 0, found.start()) + 1
        raise failure(Place(file, line), f"what begins with {found['open']} has no end", code="JOB_SYNTAX")
    if found[0].startswith(("--", "/*")):
        return " " + "\n" * found[0].count("\n")
    return found[0]


def _statement(text: str, begin: int, end: int, file: str) -> Iterator[Statement]:
    whole = text[begin:end]
    kept = whole.strip()
    if kept:
        start = begin + whole.index(kept[0])
        yield Statement(text=kept, place=Place(file, text.count("\n", 0, start) + 1))
