"""HTML that is escaped because there is no other way to make it. Pure.

Rules:
1. ``tag`` escapes every text and every value that it is given. Only what ``tag`` has made stays as it is.
2. Names of tags and attributes, and ``raw``, are for literals of this room alone.
"""

from __future__ import annotations

import unicodedata
from html import escape

_LONGEST = 300  # characters of a name that are shown
_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # among them what turns the direction of a line
_VOID = frozenset({"meta", "br"})


class Markup(str):
    """HTML as it is."""

    __slots__ = ()


Child = str | None


def tag(name: str, /, *children: Child, **attributes: str | None) -> Markup:
    """An element; ``class_`` is the attribute ``class``, and ``None`` is left out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """One after the other."""
    return Markup("".join(_inside(child) for child in children if child is not None))


def raw(literal: str) -> Markup:
    """A literal of this room."""
    return Markup(literal)


def visible(text: str) -> str:
    """``text`` without what is not seen, and not longer than anybody reads."""
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if short.isprintable():
        return short
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one) in _NOT_SHOWN else one for one in short
    )


def _inside(child: str) -> str:
    return str(child) if isinstance(child, Markup) else escape(visible(child))
