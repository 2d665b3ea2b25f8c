"""The table of types in docs/sinks.md: which columns of PostgreSQL take which types of Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from type_table import TYPES

from filesink.errors import SchemaError
from filesink.sinks.postgres.copy.types import SqlType, new_type, to_field

#: These go as another type that is shown, or not at all.
_NOT_SHOWN = frozenset({"DECIMAL(38,18)", "MAP<INT,INT>", "VARIANT", "GEOMETRY", "GEOGRAPHY"})
#: As SQL has them, by their names in the server's catalog.
_COLUMNS = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision", "numeric": "numeric", "text": "text", "varchar": "varchar",
    "bpchar": "char", "citext": "citext", "enum": "enums", "json": "json", "jsonb": "jsonb", "xml": "xml",
    "uuid": "uuid",
    "bytea": "bytea", "date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamptz",
    "interval": "interval",
}  # fmt: skip


def lines() -> Iterator[str]:
    """The lines of the table."""
    yield "| Spark | a new column | also taken by |"
    yield "|---|---|---|"
    for name, kind in TYPES.items():
        if name in _NOT_SHOWN:
            continue
        try:
            made = new_type(pa.field("c", kind))
        except SchemaError:
            made = "refused"
        others = [text for base, text in _COLUMNS.items() if _takes(kind, base) and text != made]
        yield f"| `{name}` | {made} | {', '.join(others)} |"


def _takes(kind: pa.DataType, base: str) -> bool:
    return to_field(kind, SqlType(text=_COLUMNS[base], base=base)) is not None
