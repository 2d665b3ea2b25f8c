"""Charts of elements and percentages: they are as wide as the window, and print as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from filesink.page.markup import Child, Markup, joined, tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a chart over time: ``value``, before ``behind``, which is larger; and what it says."""

    value: float
    behind: float = 0
    text: str


def columns(found: Sequence[Column], *, label: str, axis: Sequence[str]) -> Markup:
    """Columns beside each other; the highest has the whole height. ``label`` is for who cannot see them."""
    highest = max((max(one.value, one.behind) for one in found), default=0) or 1
    drawn = (
        tag(
            "span",
            tag("i", class_="pale", style=f"height:{_percent(one.behind, highest)}") if one.behind else None,
            tag("i", class_="over", style=f"height:{_percent(one.value, highest)}"),
            title=one.text,
        )
        for one in found
    )
    below = tag("div", *(tag("span", text) for text in axis), class_="axis")
    return joined(tag("div", *drawn, class_="columns", role="img", aria_label=label), below)


def bar(value: float, largest: float, *, is_small: bool = False) -> Markup:
    """A cell of a table with a bar."""
    style = f"width:{_percent(value, largest or 1)}"
    return tag("td", tag("i", class_="small" if is_small else None, style=style), class_="bar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Cells: text, or what ``bar`` has made."""

    cells: Sequence[Child]
    kind: str | None = None


def table(heads: Sequence[str], rows: Iterable[Row]) -> Markup:
    """A table; the name of a column of numbers begins with ``>``."""
    numbers = [head.startswith(">") for head in heads]
    top = tag(
        "tr", *(tag("th", head.lstrip(">"), class_=_kind(n)) for head, n in zip(heads, numbers, strict=True))
    )
    body = (
        tag("tr", *(_cell(one, n) for one, n in zip(row.cells, numbers, strict=True)), class_=row.kind)
        for row in rows
    )
    return tag("div", tag("table", tag("thead", top), tag("tbody", *body)), class_="scroll")


def _cell(child: Child, is_number: bool) -> Child:  # noqa: FBT001 - of this module
    return child if isinstance(child, Markup) else tag("td", child, class_=_kind(is_number))


def _kind(is_number: bool) -> str | None:  # noqa: FBT001 - as well
    return "n" if is_number else None


def _percent(value: float, largest: float) -> str:
    """Something that is there can be seen."""
    return f"{max(100 * value / largest, 1.0 if value else 0):.2f}%"
