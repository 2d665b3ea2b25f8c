"""Graphs as SVG: boxes from left to right, each behind those that feed it, and lines between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from filesink.page.markup import Markup, tag

_WIDTH: Final = 190  # pixels of a box
_HEIGHT: Final = 52
_GAP: Final = 56  # between columns
_ROW: Final = 16  # between boxes of a column
_LONGEST: Final = 26  # characters of a line in a box
#: Colours that the style of the page has; in a file of its own they are those of a light page.
_STYLE: Final = (
    ".graph rect{fill:var(--field,#f5f6f8);stroke:var(--line,#dfe3e8)}"
    ".graph .source rect,.graph .sink rect{stroke:var(--bar,#3565b0)}"
    ".graph .bad rect{stroke:var(--bad,#b3261e)}"
    ".graph path{fill:none;stroke:var(--soft,#5b6570)}"
    ".graph text{font:600 13px system-ui,sans-serif;fill:var(--ink,#1c2024)}"
    ".graph text.note{font:12px system-ui,sans-serif;fill:var(--soft,#5b6570)}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A vertex.

    Attributes:
        id: no two have the same.
        title, note: its two lines; longer ones are cut.
        kind: a class of the style, such as ``source``.
    """

    id: str
    title: str
    note: str
    kind: str


def graph(boxes: Sequence[Box], edges: Sequence[tuple[str, str]], *, label: str) -> Markup:
    """An element ``svg``.

    Args:
        boxes: each behind those that feed it.
        edges: pairs of ids: who feeds, and who is fed.
        label: for who cannot see it.
    """
    columns = _columns(boxes, edges)
    places = _places(boxes, columns)
    width = (_WIDTH + _GAP) * (max(columns.values(), default=0) + 1) - _GAP + 2
    height = max((y for _, y in places.values()), default=0) + _HEIGHT + 2
    drawn = [_line(places[source], places[target]) for source, target in edges]
    drawn += [_box(box, places[box.id]) for box in boxes]
    return tag(
        "svg",
        tag("style", Markup(_STYLE)),
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=str(width),
        height=str(height),
        class_="graph",
        role="img",
        aria_label=label,
    )


def _columns(boxes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many boxes stand before each, on the longest way to it."""
    found: dict[str, int] = {}
    for box in boxes:
        found[box.id] = max((found[source] + 1 for source, target in edges if target == box.id), default=0)
    return found


def _places(boxes: Sequence[Box], columns: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    filled: dict[int, int] = {}
    found: dict[str, tuple[int, int]] = {}
    for box in boxes:
        column = columns[box.id]
        row = filled.get(column, 0)
        filled[column] = row + 1
        found[box.id] = (1 + column * (_WIDTH + _GAP), 1 + row * (_HEIGHT + _ROW))
    return found


def _line(begin: tuple[int, int], end: tuple[int, int]) -> Markup:
    x, y = begin[0] + _WIDTH, begin[1] + _HEIGHT // 2
    to_x, to_y = end[0], end[1] + _HEIGHT // 2
    middle = to_x - _GAP // 2
    return tag("path", d=f"M{x} {y}H{middle - 8}C{middle} {y} {middle} {to_y} {middle + 8} {to_y}H{to_x}")


def _box(box: Box, place: tuple[int, int]) -> Markup:
    x, y = place
    return tag(
        "g",
        tag("title", f"{box.title} {box.note}".strip()),
        tag("rect", x=str(x), y=str(y), width=str(_WIDTH), height=str(_HEIGHT), rx="6"),
        tag("text", _cut(box.title), x=str(x + 10), y=str(y + 22)),
        tag("text", _cut(box.note), x=str(x + 10), y=str(y + 40), class_="note"),
        class_=box.kind,
    )


def _cut(text: str) -> str:
    """At most a line; of paths and addresses the end says more."""
    if len(text) <= _LONGEST:
        return text
    return f"…{text[1 - _LONGEST :]}" if "/" in text else f"{text[: _LONGEST - 1]}…"
