"""The tree of a job file, before and after its variables are filled in. Frozen values, no behaviour.

What is *written* may hold references such as ``${x}``, and the same key several times; a *node* holds
neither, except that the plugins of a section stay apart, see ``resolve``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from filesink.jobs.text.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A piece of a value, as it is written; what is quoted is never a number, and holds no reference."""

    text: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """``${name}``, ``${?name}`` or ``${name:default}``."""

    name: str
    place: Place
    is_optional: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One key with what is written behind it."""

    key: str
    value: Written
    place: Place
    appends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """``{ … }``, with fields in their order; a key may be there again."""

    fields: tuple[Field, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenArray:
    """``[ … ]``."""

    items: tuple[Written, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A value: pieces that are joined."""

    pieces: tuple[Text | Reference | WrittenObject | WrittenArray, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A text, number, truth value or null.

    Attributes:
        text: as it was written, for options that are texts.
        variable: the variable of the environment that the whole value is, or ``""``.
    """

    value: str | int | float | bool | None
    text: str
    place: Place
    variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """Values in their order."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key and its value."""

    key: str
    value: Node
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """Entries in their order, of distinct keys."""

    entries: tuple[Entry, ...]
    place: Place

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def get(self, key: str) -> Node | None:
        """The value of ``key``."""
        return next((entry.value for entry in self.entries if entry.key == key), None)


Node = Scalar | Array | Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A plugin as a job file has it: its name and its options."""

    name: str
    options: Object
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """A whole job file."""

    file: str
    env: Object
    source: tuple[Block, ...]
    transform: tuple[Block, ...]
    sink: tuple[Block, ...]


def plain(node: Node) -> Any:
    """The node in Python's own types."""
    match node:
        case Scalar():
            return node.value
        case Array():
            return [plain(item) for item in node.items]
        case Object():
            return {entry.key: plain(entry.value) for entry in node}


def deeper(node: Node, path: tuple[str | int, ...]) -> Node:
    """The node that ``path`` leads to, or the last one on the way that exists."""
    for step in path:
        found: Node | None = None
        if isinstance(node, Object):
            found = node.get(str(step))
        elif isinstance(node, Array) and isinstance(step, int) and step < len(node.items):
            found = node.items[step]
        if found is None:
            return node
        node = found
    return node
