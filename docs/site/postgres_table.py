"""The table of types in docs/sinks.md: which columns of PostgreSQL take which types of Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from filesink.errors import SchemaError
from filesink.sinks.postgres.copy.types import SqlType, new_type, to_field

_TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIME": pa.time64("ns"),
    "INTERVAL DAY TO SECOND": pa.duration("us"),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "STRUCT<a:INT>": pa.struct([("a", pa.int32())]),
    "MAP<STRING,INT>": pa.map_(pa.string(), pa.int32()),
    "VOID": pa.null(),
}
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
    for name, kind in _TYPES.items():
        try:
            made = new_type(pa.field("c", kind))
        except SchemaError:
            made = "refused"
        others = [text for base, text in _COLUMNS.items() if _takes(kind, base) and text != made]
        yield f"| `{name}` | {made} | {', '.join(others)} |"


def _takes(kind: pa.DataType, base: str) -> bool:
    return to_field(kind, SqlType(text=_COLUMNS[base], base=base)) is not None
