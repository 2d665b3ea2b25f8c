"""What a path of a job file stands for: its pieces are joined, and references followed.

Of one key written twice, objects are merged and anything else is replaced, as HOCON says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from filesink.jobs.text.hocon import SECRETS
from filesink.jobs.text.place import Place, failure, nearest
from filesink.jobs.text.tree import (
    Array,
    Entry,
    Field,
    Node,
    Object,
    Reference,
    Scalar,
    Text,
    Written,
    WrittenArray,
    WrittenObject,
)
from filesink.jobs.text.variables import Variables

PLUGINS = ("source", "transform", "sink")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_MOST_REFERENCES = 10_000


class Values:
    """Finds what a path of the file stands for, each value where it is asked for."""

    def __init__(self, root: WrittenObject, variables: Variables) -> None:
        self._root = root
        self._variables = variables
        self._open: list[tuple[str, ...]] = []
        self._followed = 0
        self._by_key: dict[int, dict[str, list[Field]]] = {}

    def at(self, path: tuple[str, ...], asked: Place) -> Node | None:
        """The value of a path, or ``None``."""
        if path in self._open:
            raise failure(asked, f"${{{'.'.join(path)}}} stands for itself", code="JOB_VARIABLE")
        layers: list[Field] = [
            Field(
                key="",
                value=Written(pieces=(self._root,), place=self._root.place),
                place=self._root.place,
            )
        ]
        for key in path:
            layers = [inner for layer in layers for inner in self._fields_of(layer.value, key)]
        self._open.append(path)
        try:
            return self._folded(layers, path)
        finally:
            self._open.pop()

    def _folded(self, layers: Iterable[Field], path: tuple[str, ...]) -> Node | None:
        found: Node | None = None
        for layer in layers:
            value = self.joined(layer.value, path, found)
            if value is None:
                continue
            found = _appended(found, value, layer.place) if layer.appends else _merged(found, value)
        return found

    def joined(self, written: Written, path: tuple[str, ...], before: Node | None) -> Node | None:
        """The value of joined pieces; ``before`` is what the same key had until here."""
        pieces = [piece for piece in written.pieces if not _is_blank(piece)]
        if len(pieces) == 1:
            return self._alone(pieces[0], path, before, written.place)
        found = [(piece, self._alone(piece, path, before, written.place)) for piece in written.pieces]
        values = [value for piece, value in found if value is not None and not _is_blank(piece)]
        if all(isinstance(value, Object) for value in values) and values:
            merged: Node | None = None
            for value in values:
                merged = _merged(merged, value)
            return merged
        if all(isinstance(value, Array) for value in values) and values:
            items = tuple(item for value in values if isinstance(value, Array) for item in value.items)
            return Array(items=items, place=written.place)
        return self._text([value for _, value in found if value is not None], written.place)

    def _text(self, values: list[Node], place: Place) -> Scalar | None:
        if not all(isinstance(value, Scalar) for value in values):
            raise failure(
                place, "a text cannot be joined with braces or brackets; quote it", code="JOB_SYNTAX"
            )
        if not values:
            return None
        text = "".join(value.text for value in values if isinstance(value, Scalar)).strip()
        if any(_is_secret(value.text) for value in values if isinstance(value, Scalar)):
            raise failure(
                place,
                "a reference to a secret has to be a whole value, with nothing beside it",
                code="JOB_SECRET",
            )
        return Scalar(value=text, text=text, place=place)

    def _alone(self, piece: object, path: tuple[str, ...], before: Node | None, place: Place) -> Node | None:
        match piece:
            case Text(text=text, is_quoted=True):
                return Scalar(value=text, text=text, place=place)
            case Text(text=text):
                return Scalar(value=bare(text), text=text, place=place)
            case Reference():
                return self._stands_for(piece, path, before)
            case WrittenArray(items=items):
                found = [self.joined(item, (*path, ""), None) for item in items]
                return Array(items=tuple(one for one in found if one is not None), place=piece.place)
            case WrittenObject():
                return self._object(piece, path)
            case _:  # pragma: no cover - there are no others
                raise TypeError(type(piece).__name__)

    def _object(self, written: WrittenObject, path: tuple[str, ...]) -> Object:
        entries = []
        for key, layers in self._keyed(written).items():
            value = self._folded(layers, (*path, key))
            if value is not None:
                entries.append(Entry(key=key, value=value, place=layers[-1].place))
        return Object(entries=tuple(entries), place=written.place)

    def _keyed(self, written: WrittenObject) -> dict[str, list[Field]]:
        """The fields of an object by their keys; looked at once, however many references there are."""
        found = self._by_key.get(id(written))
        if found is None:
            found = self._by_key[id(written)] = {}
            for field in written.fields:
                found.setdefault(field.key, []).append(field)
        return found

    def _fields_of(self, written: Written, key: str) -> Iterator[Field]:
        for piece in written.pieces:
            if isinstance(piece, WrittenObject):
                yield from self._keyed(piece).get(key, ())

    def _stands_for(self, asked: Reference, path: tuple[str, ...], before: Node | None) -> Node | None:
        name, place = asked.name, asked.place
        self._followed += 1
        if self._followed > _MOST_REFERENCES:  # a few lines can stand for gigabytes
            raise failure(
                place, f"more than {_MOST_REFERENCES:,} references are followed", code="JOB_VARIABLE"
            )
        if name.partition(":")[0] in SECRETS and ":" in name:
            return Scalar(value=f"${{{name}}}", text=f"${{{name}}}", place=place)
        if name in self._variables.given:
            text = self._variables.given[name]
            return Scalar(value=text, text=text, place=place)
        own = tuple(name.split("."))
        found = before if own == path else self.at(own, place)
        if found is not None:
            return found
        if name in self._variables.environment:
            text = self._variables.environment[name]
            return Scalar(value=text, text=text, place=place, variable=name)
        if asked.default is not None:
            return Scalar(value=bare(asked.default), text=asked.default, place=place)
        if asked.is_optional:
            return None
        raise self._unknown(asked)

    def _unknown(self, asked: Reference) -> Exception:
        name, known = asked.name, [*self._variables.given, *(field.key for field in self._root.fields)]
        return failure(
            asked.place,
            f"nobody says what ${{{name}}} is{nearest(name, set(known) - {'env', *PLUGINS})}; pass -i "
            f"{name}=VALUE, or set it in the environment",
            code="JOB_VARIABLE",
        )


_MOST_REFERENCES = 10_000


def _is_blank(piece: object) -> bool:
    return isinstance(piece, Text) and not piece.is_quoted and not piece.text.strip()


def _is_secret(text: str) -> bool:
    return text.startswith("${") and text[2:].partition(":")[0] in SECRETS


def _merged(before: Node | None, after: Node) -> Node:
    if not (isinstance(before, Object) and isinstance(after, Object)):
        return after
    found = {entry.key: entry for entry in before}
    for entry in after:
        older = found.get(entry.key)
        value = entry.value if older is None else _merged(older.value, entry.value)
        found[entry.key] = Entry(key=entry.key, value=value, place=entry.place)
    return Object(entries=tuple(found.values()), place=before.place)


def _appended(before: Node | None, value: Node, place: Place) -> Array:
    if before is None:
        return Array(items=(value,), place=place)
    if not isinstance(before, Array):
        raise failure(place, "+= adds to a list, and before it there is none", code="JOB_SYNTAX")
    return Array(items=(*before.items, value), place=before.place)


def bare(text: str) -> str | int | float | bool | None:
    """What a text without quotes is: a number, a truth value, null, or a text."""
    if text in _WORDS:
        return _WORDS[text]
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > 40:
        return text
    return float(text) if found[1] else int(text)


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)?")  # JSON's
