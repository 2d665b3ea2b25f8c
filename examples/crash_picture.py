"""Draws what ``crash_demo.py`` has found: two directories, after the kill and after the restart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LINE, GAP, HEAD = 880, 19, 24, 60
GOOD, BAD, FAINT, INK = "#1a7f37", "#c62828", "#8a8f98", "#24292f"


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The names in a directory, and the rows that ``*.parquet`` has."""

    names: tuple[str, ...]
    rows: int


@dataclass(frozen=True, kw_only=True)
class Column:
    """One sink, after the kill and after the restart."""

    title: str
    killed: Listing
    restarted: Listing


def picture(columns: Sequence[Column], *, expected: int) -> str:
    """An SVG that needs no font and no script of anybody's."""
    upper = max(len(column.killed.names) for column in columns)
    lower = max(len(column.restarted.names) for column in columns)
    second = HEAD + (upper + 3) * LINE + GAP
    height = second + (lower + 3) * LINE + GAP // 2
    parts = [_text(GAP, 28, "The fourth of four tasks is killed, and the driver with it", bold=True)]
    for number, column in enumerate(columns):
        x = GAP + number * (WIDTH // 2)
        parts += _listing(x, HEAD, f"{column.title}, after the kill", column.killed, right=(0, expected))
        parts += _listing(x, second, f"{column.title}, started again", column.restarted, right=(expected,))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Directories after a crash and after the restart">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _listing(x: int, y: int, title: str, listing: Listing, *, right: tuple[int, ...]) -> list[str]:
    drawn = [_text(x, y, title, bold=True)]
    for number, name in enumerate(listing.names, 1):
        drawn.append(_text(x, y + number * LINE, _short(name), mono=True, colour=_colour(name)))
    is_right = listing.rows in right
    wanted = "" if is_right else f"; right is {' or '.join(f'{rows:,}' for rows in right)}"
    end = y + (len(listing.names) + 1) * LINE + 4
    verdict = f"*.parquet: {listing.rows:,} rows{wanted}"
    return [*drawn, _text(x, end, verdict, bold=True, colour=GOOD if is_right else BAD)]


def _short(name: str) -> str:
    """A name without the middle of its random parts."""
    name = re.sub(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]*([0-9a-f]{4})", r"\1…\2", name)
    return name + ("/" if name.startswith("_") else "")


def _colour(name: str) -> str:
    return FAINT if name.startswith((".", "_")) else INK


def _text(x: int, y: int, text: str, *, bold: bool = False, mono: bool = False, colour: str = INK) -> str:
    family = "ui-monospace, Menlo, Consolas, monospace" if mono else "system-ui, Helvetica, Arial, sans-serif"
    weight = ' font-weight="600"' if bold else ""
    size = 13 if mono else 15
    return (
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}"{weight} fill="{colour}">'
        f"{escape(text)}</text>"
    )
