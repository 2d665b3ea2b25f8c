"""A written tree to nodes: keys are merged, variables filled in.

Rules:
1. Of one key written twice, objects are merged and anything else is replaced, as HOCON says. The plugins in
   ``source``, ``transform`` and ``sink`` are never merged: two blocks ``FakeSource`` are two sources.
2. ``${name}`` is a variable that was given, a key of the file by its whole path, or a variable of the
   environment, in this order; one that is none of them is an error, unless it is ``${?name}``.
3. A reference to a secret, such as ``${env:TOKEN}``, stays a reference.
4. A variable that was given is used: one that is not is mistyped, or stands in quotes, where HOCON fills in
   nothing, and the path of every day would be the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from filesink.errors import JobError
from filesink.jobs.text.place import Place, failure, nearest
from filesink.jobs.text.tree import (
    Block,
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
from filesink.jobs.text.values import PLUGINS, Values
from filesink.jobs.text.variables import Variables


def resolve(root: WrittenObject, variables: Variables) -> Sections:
    """The sections of a job file.

    Raises:
        JobError: ``JOB_SYNTAX``, ``JOB_VARIABLE``, ``JOB_SECTION``.
    """
    values = Values(root, variables)
    known = ("env", *PLUGINS)
    leaves = list(_leaves(root, root.place))
    names = {leaf.name for leaf, _ in leaves if isinstance(leaf, Reference)}
    quoted = [(leaf.text, place) for leaf, place in leaves if isinstance(leaf, Text) and leaf.is_quoted]
    _check_given(variables, names, quoted, root.place.file)
    referred = {name.split(".", 1)[0] for name in names}  # a key that is used is a variable
    for field in root.fields:
        if field.key not in known and field.key not in referred:
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


def _check_given(
    variables: Variables, names: Collection[str], quoted: Sequence[tuple[str, Place]], file: str
) -> None:
    for name in variables.given:
        place = next((place for text, place in quoted if f"${{{name}}}" in text), None)
        if place is not None:
            raise failure(
                place,
                f"${{{name}}} stands in quotes, where nothing is filled in; end the quotes before it and "
                f'begin others behind it, as in "/data/"${{{name}}}"/in"',
                code="JOB_VARIABLE",
            )
        if name not in names:
            raise JobError(
                f"{file} has no ${{{name}}}, and a value for it was given{nearest(name, names)}",
                code="JOB_VARIABLE",
            )


def resolve_value(written: Written, variables: Variables) -> Node | None:
    """One value, in which no key of a file is known."""
    values = Values(WrittenObject(fields=(), place=written.place), variables)
    return values.joined(written, (), None)


def _leaves(written: object, place: Place) -> Iterator[tuple[Text | Reference, Place]]:
    """All texts and references, each with the place of the value that it is a piece of."""
    match written:
        case Text() | Reference():
            yield written, place
        case WrittenObject(fields=fields):
            for field in fields:
                yield from _leaves(field.value, place)
        case WrittenArray(items=items):
            for item in items:
                yield from _leaves(item, place)
        case Written(pieces=pieces, place=place):
            for piece in pieces:
                yield from _leaves(piece, place)


def _blocks(root: WrittenObject, section: str, values: Values) -> Iterator[Block]:
    for field in root.fields:
        if field.key == section:
            for piece in field.value.pieces:
                yield from _blocks_of(section, piece, field.place, values)


def _blocks_of(section: str, piece: object, place: Place, values: Values) -> Iterator[Block]:
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


def _listed(section: str, item: Written, values: Values) -> Iterator[Block]:
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
