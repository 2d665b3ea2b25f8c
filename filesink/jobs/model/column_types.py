"""The types of columns in a job file, SeaTunnel's words and Spark's, as Arrow types. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from filesink.jobs.text.place import nearest

_SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "varchar": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.string(),  # Spark's own TIME is a preview that is switched off
    "null": pa.string(),  # there is nothing but null in it, and every format writes texts
}
_KNOWN = ("decimal(precision, scale)", "array<…>", "map<…, …>", *_SIMPLE)
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)
_NESTED = re.compile(r"(array|map)\s*<(.*)>", re.IGNORECASE | re.DOTALL)


def column_type(written: Any) -> pa.DataType:
    """The type that a text, or an object of columns, means.

    Raises:
        ValueError: it means none; the message says what is near.
    """
    if isinstance(written, Mapping):
        return pa.struct([pa.field(name, column_type(inner)) for name, inner in written.items()])
    text = str("null" if written is None else written).strip()
    if found := _DECIMAL.fullmatch(text):
        return _decimal(int(found[1]), int(found[2] or 0))
    if found := _NESTED.fullmatch(text):
        inner = [column_type(one) for one in _split(found[2])]
        if found[1].lower() == "array" and len(inner) == 1:
            return pa.list_(inner[0])
        if found[1].lower() == "map" and len(inner) == 2:
            return pa.map_(*inner)
    if text.lower() not in _SIMPLE:
        raise ValueError(f"'{text[:60]}' is no type of a column{nearest(text, _KNOWN)}")
    return _SIMPLE[text.lower()]


def _decimal(precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= 38 or scale > precision:
        raise ValueError("a decimal has 1 to 38 digits, and at most as many of them behind the point")
    return pa.decimal128(precision, scale)


def _split(text: str) -> list[str]:
    """At the commas that lie in no brackets."""
    depth, found = 0, [""]
    for one in text:
        depth += (one in "<(") - (one in ">)")
        if one == "," and depth == 0:
            found.append("")
        else:
            found[-1] += one
    return found


def ddl(kind: pa.DataType) -> str:
    """Spark's word for the type."""
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {ddl(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{ddl(kind.key_type)}, {ddl(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _DDL[kind]


_DDL: dict[pa.DataType, str] = {
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}


def quoted(name: str) -> str:
    """A name of a column in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    """A literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
