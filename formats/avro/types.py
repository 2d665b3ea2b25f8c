"""The Arrow form of Avro's types, for files of any writer."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from formats.avro.schema import INTERVAL, SPARK_TYPE, Json
from formats.errors import FormatError

_MOST_DIGITS: Final = 76  # of a decimal, in Arrow
_MOST_BYTES: Final = 2**31 - 1  # of a value of fixed size, in Arrow
_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_TIMES: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


def arrow_schema(schema: Json) -> pa.Schema:
    """The Arrow schema of the records of an Avro file.

    Args:
        schema: with all names of types replaced by what they stand for.

    Raises:
        FormatError: kind ``"schema"``; the top is not a record, or a type has no form in Arrow, such as a
            union of two types, a record inside itself or a decimal of 77 digits. Names the column
            with its path.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise FormatError("this Avro file does not hold records")
    return pa.schema(_fields(schema, path=""))


def without_times(schema: Json) -> Json:
    """The same bytes described without times, which Arrow takes as numbers; decimals stay."""
    if isinstance(schema, list):
        return [without_times(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "logicalType" or value == "decimal"}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = without_times(kept[key])
    if "fields" in kept:
        kept["fields"] = [{**field, "type": without_times(field["type"])} for field in kept["fields"]]
    return kept


def _fields(record: Json, *, path: str) -> list[Any]:
    fields = []
    for field in record["fields"]:
        name: object = field["name"]
        if not isinstance(name, str):
            raise FormatError("the Avro schema has a column whose name is not text")
        fields.append(pa.field(name, _arrow(field["type"], path=f"{path}{name}")))
    return fields


def _arrow(kind: Json, *, path: str) -> Any:
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        if len(branches) > 1:
            raise FormatError(
                f"column {path!r} is a union of {len(branches)} types, which Arrow has no form for"
            )
        kind = branches[0] if branches else "null"
        if isinstance(kind, list):
            raise FormatError(f"column {path!r} is a union inside a union, which Avro does not have")
    if isinstance(kind, str):
        return _plain(kind, path=path)
    match kind["type"]:
        case "record":
            return pa.struct(_fields(kind, path=f"{path}."))
        case "array":
            return pa.list_(_arrow(kind["items"], path=f"{path}[]"))
        case "map":
            return pa.map_(pa.string(), _arrow(kind["values"], path=f"{path}.value"))
        case dict() | list() as inner:
            return _arrow(inner, path=path)
        case _:
            return _annotated(kind, path=path)


def _annotated(kind: Json, *, path: str) -> Any:
    """A type with annotations. An annotation that does not fit the type is ignored, as Avro demands."""
    name, logical = kind["type"], str(kind.get("logicalType"))
    if logical == "decimal" and name in {"bytes", "fixed"}:
        precision = _number(kind, "precision", least=1, most=_MOST_DIGITS, path=path)
        scale = _number({"scale": 0, **kind}, "scale", least=0, most=precision, path=path)
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if (name, logical) in _TIMES:
        return _TIMES[name, logical]
    if kind.get(SPARK_TYPE) == INTERVAL:
        return pa.duration("us")
    if name == "fixed":
        return pa.binary(_number(kind, "size", least=0, most=_MOST_BYTES, path=path))
    return _plain(name, path=path)


def _number(kind: Json, key: str, *, least: int, most: int, path: str) -> int:
    value: object = kind.get(key)
    if not isinstance(value, int) or not least <= value <= most:
        raise FormatError(
            f"column {path!r} has a {key} in the Avro schema that is not a number from {least} to {most}"
        )
    return value


def _plain(name: str, *, path: str) -> Any:
    if name not in _PLAIN:
        raise FormatError(f"column {path!r} is of Avro type {name!r}, inside itself or unknown")
    return _PLAIN[name]
