"""A written tree to nodes: keys are merged, variables filled in.

Rules:
1. Of one key written twice, objects are merged and anything else is replaced, as HOCON says. The plugins in
   ``source``, ``transform`` and ``sink`` are never merged: two blocks ``FakeSource`` are two sources.
2. ``${name}`` is a variable that was given, a key of the file by its whole path, or a variable of the
   environment, in this order; one that is none of them is an error, unless it is ``${?name}``.
3. A reference to a secret, such as ``${env:TOKEN}``, stays a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from filesink.jobs.text.hocon import SECRETS
from filesink.jobs.text.place import Place, failure, nearest
from filesink.jobs.text.tree import (
    Array,
    Block,
    Entry,
    Field,
    Node,
    Object,
    Reference,
    Scalar,
    Sections,
    Text,
    Written,
    WrittenArray,
    WrittenObject,
)
from filesink.jobs.text.variables import Variables

PLUGINS = ("source", "transform", "sink")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def resolve(root: WrittenObject, variables: Variables) -> Sections:
    """The sections of a job file.

    Raises:
        JobError: ``JOB_SYNTAX``, ``JOB_VARIABLE``, ``JOB_SECTION``.
    """
    values = _Values(root, variables)
    known = ("env", *PLUGINS)
    for field in root.fields:
        if field.key not in known and not _is_referred(field.key, root):
            raise failure(
                field.place,
                f"'{field.key}' is no section of a job{nearest(field.key, known)}",
                code="JOB_SECTION",
            )
    blocks = {section: tuple(_blocks(root, section, values)) for section in PLUGINS}
    env = values.at(("env",), root.place)
    if env is not None and not isinstance(env, Object):
        raise failure(env.place, "env takes options in braces, env { … }", code="JOB_SECTION")
    file = root.place.file
    return Sections(file=file, env=env or Object(entries=(), place=root.place), **blocks)


def resolve_value(written: Written, variables: Variables) -> Node | None:
    """One value, in which no key of a file is known."""
    values = _Values(WrittenObject(fields=(), place=written.place), variables)
    return values.joined(written, (), None)


def _is_referred(key: str, root: WrittenObject) -> bool:
    """Whether a key beside the sections is there for references to it: then it is a variable of the file."""
    return any(name.split(".", 1)[0] == key for name in _references(root))


def _references(written: object) -> Iterator[str]:
    match written:
        case Reference(name=name):
            yield name
        case WrittenObject(fields=fields):
            for field in fields:
                yield from _references(field.value)
        case WrittenArray(items=items):
            for item in items:
                yield from _references(item)
        case Written(pieces=pieces):
            for piece in pieces:
                yield from _references(piece)


def _blocks(root: WrittenObject, section: str, values: _Values) -> Iterator[Block]:
    for field in root.fields:
        if field.key == section:
            for piece in field.value.pieces:
                yield from _blocks_of(section, piece, field.place, values)


def _blocks_of(section: str, piece: object, place: Place, values: _Values) -> Iterator[Block]:
    """Of ``{ Name { … } }``, or of the form ``[{ plugin_name = Name, … }]``, which YAML likes."""
    match piece:
        case WrittenObject(fields=fields):
            for field in fields:
                yield _block(field.key, values.joined(field.value, (section, field.key), None), field.place)
        case WrittenArray(items=items):
            for item in items:
                yield from _listed(section, item, values)
        case Text(text=text) if not text.strip():
            return
        case _:
            raise failure(
                place,
                f"{section} takes plugins in braces, {section} {{ Name {{ … }} }}; a section begins a line",
                code="JOB_SECTION",
            )


def _listed(section: str, item: Written, values: _Values) -> Iterator[Block]:
    found = values.joined(item, (section,), None)
    if not isinstance(found, Object):
        raise failure(item.place, f"a plugin of {section} takes options in braces", code="JOB_SECTION")
    name = found.get("plugin_name")
    if isinstance(name, Scalar):
        rest = tuple(entry for entry in found if entry.key != "plugin_name")
        yield Block(name=name.text, options=Object(entries=rest, place=found.place), place=found.place)
        return
    for entry in found:
        yield _block(entry.key, entry.value, entry.place)


def _block(name: str, value: Node | None, place: Place) -> Block:
    if value is None or (isinstance(value, Scalar) and value.value is None):  # ``Console:`` in YAML
        return Block(name=name, options=Object(entries=(), place=place), place=place)
    if not isinstance(value, Object):
        raise failure(place, f"the plugin '{name}' takes options in braces", code="JOB_SECTION")
    return Block(name=name, options=value, place=place)


class _Values:
    """Finds what a path of the file stands for, each value where it is asked for."""

    def __init__(self, root: WrittenObject, variables: Variables) -> None:
        self._root = root
        self._variables = variables
        self._open: list[tuple[str, ...]] = []

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
            layers = [inner for layer in layers for inner in _fields_of(layer.value, key)]
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
        keys = dict.fromkeys(field.key for field in written.fields)
        entries = []
        for key in keys:
            layers = [field for field in written.fields if field.key == key]
            value = self._folded(layers, (*path, key))
            if value is not None:
                entries.append(Entry(key=key, value=value, place=layers[-1].place))
        return Object(entries=tuple(entries), place=written.place)

    def _stands_for(self, asked: Reference, path: tuple[str, ...], before: Node | None) -> Node | None:
        name, place = asked.name, asked.place
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
        known = [*self._variables.given, *(field.key for field in self._root.fields)]
        raise failure(
            place,
            f"nobody says what ${{{name}}} is{nearest(name, set(known) - {'env', *PLUGINS})}; pass -i "
            f"{name}=VALUE, or set it in the environment",
            code="JOB_VARIABLE",
        )


def _fields_of(written: Written, key: str) -> Iterator[Field]:
    for piece in written.pieces:
        if isinstance(piece, WrittenObject):
            yield from (field for field in piece.fields if field.key == key)


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
