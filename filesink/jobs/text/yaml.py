"""YAML to the written tree that HOCON gives, so that variables and merging are the same.

Rules:
1. As in HOCON, what is in quotes holds no reference.
2. Anchors and aliases are refused: a short file of them can stand for gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from filesink.jobs.text.hocon import reference
from filesink.jobs.text.place import Place, failure
from filesink.jobs.text.tree import Field, Reference, Text, Written, WrittenArray, WrittenObject

_REFERENCE = re.compile(r"\$\{(\??)([^}\n]+)\}")
_TEXT, _MAP, _LIST = (f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq"))
_BARE = {f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "null", "timestamp")}
_TRUTH = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_DEPTH = 64


def read_yaml(text: str, file: str) -> WrittenObject:
    """The fields of a file.

    Raises:
        JobError: ``JOB_SYNTAX``.
    """
    try:
        _refuse_aliases(text, file)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise failure(Place(file, line), f"this is no YAML: {error.problem}", code="JOB_SYNTAX") from None
    except yaml.YAMLError:
        raise failure(
            Place(file, 1), "this is no YAML: it has characters that YAML forbids", code="JOB_SYNTAX"
        ) from None
    if not isinstance(root, yaml.MappingNode):
        raise failure(Place(file, 1), "a job has sections: env, source, transform, sink", code="JOB_SYNTAX")
    return _object(root, file)


def _refuse_aliases(text: str, file: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > _DEPTH:
            what = "aliases (*name) are not read" if depth <= _DEPTH else f"it is more than {_DEPTH} deep"
            raise failure(Place(file, event.start_mark.line + 1), f"{what}; write it out", code="JOB_SYNTAX")


def _object(node: yaml.MappingNode, file: str) -> WrittenObject:
    return WrittenObject(fields=tuple(_fields(node, file)), place=_place(node, file))


def _fields(node: yaml.MappingNode, file: str) -> Iterator[Field]:
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise failure(_place(key, file), "the name of an option is a text", code="JOB_SYNTAX")
        yield Field(key=key.value, value=_value(value, file), place=_place(key, file))


def _value(node: yaml.Node, file: str) -> Written:
    place = _place(node, file)
    match node:
        case yaml.MappingNode(tag=tag) if tag == _MAP:
            return Written(pieces=(_object(node, file),), place=place)
        case yaml.SequenceNode(tag=tag) if tag == _LIST:
            items = tuple(_value(item, file) for item in node.value)
            return Written(pieces=(WrittenArray(items=items, place=place),), place=place)
        case yaml.ScalarNode(tag=tag) if tag in _BARE:
            text = "null" if tag.endswith("null") else _TRUTH.get(node.value.lower(), node.value)
            return Written(pieces=(Text(text=text),), place=place)
        case yaml.ScalarNode(tag=tag) if tag == _TEXT:
            return Written(pieces=tuple(_pieces(node, place)), place=place)
        case _:
            raise failure(place, f"values of the kind {node.tag} are not read", code="JOB_SYNTAX")


def _pieces(node: yaml.ScalarNode, place: Place) -> Iterator[Text | Reference]:
    """Text and references; text of YAML is text, also if it looks like a number behind a reference."""
    if node.style in {"'", '"'}:
        yield Text(text=node.value, is_quoted=True)
        return
    at = 0
    for found in _REFERENCE.finditer(node.value):
        if node.value[at : found.start()]:
            yield Text(text=node.value[at : found.start()], is_quoted=True)
        yield reference(found[2], place, optional=found[1])
        at = found.end()
    if node.value[at:] or at == 0:
        yield Text(text=node.value[at:], is_quoted=True)


def _place(node: yaml.Node, file: str) -> Place:
    return Place(file, node.start_mark.line + 1)
