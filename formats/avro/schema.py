"""Arrow schemas as Avro schemas and back; ``docs/formats.md`` has the table.

The types are those of Spark's own Avro files, so that ``spark-avro`` reads what we write as it was:
an interval is a long with Spark's name for it, a timestamp without zone a local one.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.errors import FormatError
from formats.schemas import spark_only_types

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SPARK_TYPE: Final = "spark.sql.catalyst.type"
INTERVAL: Final = "interval day to second"
Json = Any


def avro_schema(schema: pa.Schema, *, name: str = "topLevelRecord", namespace: str = "") -> dict[str, Json]:
    """The Avro schema of records of ``schema``; every value may be null, and is by default.

    Raises:
        FormatError: kind ``"schema"``; a name or a type that Avro does not have, with its path.
    """
    spark_only_types.refuse(schema)
    top = _record(list(schema), name=name, path="")
    return {**top, "namespace": namespace} if namespace else top


def _record(fields: list[Any], *, name: str, path: str) -> dict[str, Json]:
    converted = []
    for field in fields:
        inner = f"{path}.{field.name}" if path else field.name
        if not _NAME.fullmatch(field.name):
            raise FormatError(
                f"column {inner!r} has a name that Avro does not allow: rename it to letters, digits and '_'"
            )
        converted.append({"name": field.name, "type": _union(field.type, path=inner), "default": None})
    return {"type": "record", "name": name, "fields": converted}


def _union(kind: Any, *, path: str) -> Json:
    return "null" if pt.is_null(kind) else ["null", _type(kind, path=path)]


def _type(kind: Any, *, path: str) -> Json:
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_struct(kind) and kind.num_fields:
        inner = [kind.field(index) for index in range(kind.num_fields)]
        return _record(inner, name=_unique(path), path=path)
    if pt.is_map(kind):
        if not columns.is_text(kind.key_type):
            raise FormatError(f"column {path!r} has keys of type {kind.key_type}, and Avro's are strings")
        return {"type": "map", "values": _union(kind.item_type, path=f"{path}.value")}
    if columns.is_list(kind):
        return {"type": "array", "items": _union(kind.value_type, path=f"{path}[]")}
    found = _scalar(kind)
    if found is None:
        raise FormatError(f"column {path!r} of type {kind} cannot be written to Avro: cast or drop it")
    return found


def _unique(path: str) -> str:
    """A name of its own for each record: its path, as distinct paths have distinct escapes."""
    return "r_" + re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", path)


def _scalar(kind: Any) -> Json | None:
    if pt.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if pt.is_decimal(kind):
        if kind.scale < 0:
            return None
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    for is_kind, found in _SCALARS:
        if is_kind(kind):
            return found
    return None


_SCALARS: Final[tuple[tuple[Any, Json], ...]] = (
    (pt.is_boolean, "boolean"),
    (pt.is_uint64, None),
    (lambda kind: pt.is_int64(kind) or pt.is_uint32(kind), "long"),
    (pt.is_integer, "int"),
    (pt.is_float64, "double"),
    (pt.is_floating, "float"),
    (pt.is_date, {"type": "int", "logicalType": "date"}),
    (pt.is_time, {"type": "long", "logicalType": "time-micros"}),
    (pt.is_duration, {"type": "long", SPARK_TYPE: INTERVAL}),
    (columns.is_text, "string"),
    (columns.is_binary, "bytes"),
)
