"""How the records of one schema are laid out in an Avro file: derived from Arrow's types, or given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from formats import reading
from formats.arrow import Column
from formats.avro import schema as avro_schema
from formats.avro import types as avro_types
from formats.avro import values as avro_values
from formats.errors import FormatError
from formats.schemas import evolution

# Records that name the one before them twice are twice as many with each line of the schema.
_MOST_NODES: Final = 200_000  # lists and objects of JSON, every name replaced; a column takes three
_MOST_DEPTH: Final = 256  # of them inside one another, four for a record that may be null


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroLayout:
    """An Avro schema, as it stands in the header and without references, and its form in Arrow."""

    header: Any
    avro: Any
    arrow: pa.Schema

    @staticmethod
    def derived(schema: pa.Schema) -> AvroLayout:
        """The layout of records of ``schema``, as Spark's Avro files have it.

        Raises:
            FormatError: kind ``"schema"``; a name or a type that Avro does not have, with its path.
        """
        avro = avro_schema.avro_schema(schema)
        return AvroLayout(header=avro, avro=avro, arrow=avro_types.arrow_schema(avro))

    @staticmethod
    def given(text: str) -> AvroLayout:
        """The layout of an Avro schema in JSON.

        Raises:
            FormatError: kind ``"option"``, no valid schema; ``"schema"``, a type without a form in Arrow.
        """
        header = json.loads(text)
        avro = resolved(header, kind="option")
        return AvroLayout(header=header, avro=avro, arrow=avro_types.arrow_schema(avro))

    def check(self, schema: pa.Schema) -> None:
        """Raise unless records of ``schema`` can be written; columns that Avro does not name are refused.

        Raises:
            FormatError: kind ``"schema"``; names the column.
        """
        evolution.check_readable_as(schema, self.arrow)
        extra = evolution.missing(schema, self.arrow)
        if extra is not None:
            raise FormatError(f"column {extra!r} is not in the Avro schema: drop it or add a field")

    def records(self, batch: pa.RecordBatch) -> Column:
        """The bytes of every record of ``batch``; see ``avro_values.records``."""
        return avro_values.records(reading.conformed(batch, self.arrow), self.avro)


def resolved(schema: Any, *, kind: str) -> Any:
    """An Avro schema with every name of a type replaced by what it stands for.

    Raises:
        FormatError: of ``kind``, no valid schema, or one that is too large without names; ``"option"``,
            fastavro is not installed.
    """
    fastavro = require_fastavro()
    _check_size(schema, kind=kind)
    try:
        expanded = fastavro.schema.expand_schema(schema)
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise FormatError("this is not a valid Avro schema", kind=kind) from error
    _check_size(expanded, kind=kind)
    return expanded


def _check_size(schema: Any, *, kind: str) -> None:
    """Raise if walking over the schema would take too long, or would nest too many calls.

    A type that is named twice is one object, but counts twice.
    """
    waiting: list[tuple[Any, int]] = [([schema], 0)]
    seen = 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if seen > _MOST_NODES or depth > _MOST_DEPTH:
            raise FormatError("the Avro schema is too large or nested too deeply", kind=kind)
        inner = node.values() if isinstance(node, dict) else node
        waiting.extend((child, depth + 1) for child in inner if isinstance(child, (dict, list)))


def require_fastavro() -> Any:
    """The package that takes Avro apart.

    Raises:
        FormatError: kind ``"option"``; it is not installed.
    """
    try:
        import fastavro.schema
    except ImportError as error:
        raise FormatError(
            "reading Avro, and writing it with a schema of your own, needs the package fastavro: "
            "pip install 'filesink[avro]'",
            kind="option",
        ) from error
    return fastavro
