"""The Arrow form of Avro's types, for files of any writer."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from formats.avro_schema import INTERVAL, SPARK_TYPE, Json
from formats.errors import FormatError

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
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


def arrow_schema(schema: Json) -> pa.Schema:
    """The Arrow schema of the records of an Avro file.

    Args:
        schema: with all names of types replaced by what they stand for.

    Raises:
        FormatError: kind ``"schema"``; the top is no record, or a type has no form in Arrow, as a union
            of two types or a record inside itself has none. Names the column with its path.
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
    return [
        pa.field(field["name"], _arrow(field["type"], path=f"{path}{field['name']}"))
        for field in record["fields"]
    ]


def _arrow(kind: Json, *, path: str) -> Any:
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        if len(branches) > 1:
            raise FormatError(
                f"column {path!r} is a union of {len(branches)} types, which Arrow has no form for"
            )
        kind = branches[0] if branches else "null"
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
    logical = kind.get("logicalType")
    if logical == "decimal":
        precision, scale = kind["precision"], kind.get("scale", 0)
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if logical in _TIMES:
        return _TIMES[logical]
    if kind.get(SPARK_TYPE) == INTERVAL:
        return pa.duration("us")
    return pa.binary(kind["size"]) if kind["type"] == "fixed" else _plain(kind["type"], path=path)


def _plain(name: str, *, path: str) -> Any:
    if name not in _PLAIN:
        raise FormatError(f"column {path!r} is of Avro type {name!r}, inside itself or unknown")
    return _PLAIN[name]
