"""Which types of PostgreSQL take which of Spark's, and what a column gets that is created. Pure.

Rules: a column of the table takes what has a value in it for every value of Spark's, and nothing is
rounded, cut or parsed on the way. What only some values fit, a cast in the DataFrame decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a

from filesink.errors import SchemaError
from filesink.sinks.postgres.copy import fields
from filesink.sinks.postgres.copy.fields import ToField

_NO_MODIFIER = -1
_MOST_DIGITS = 38  # of Spark's decimals
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}  # of the greatest number
_INTEGERS = ((2, pa.int8(), pa.int16()), (4, pa.int32()), (8, pa.int64()))
#: What a column of a new table gets, by the name of its type in Arrow.
_NEW = {
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "large_string": "text",
    "binary": "bytea",
    "large_binary": "bytea",
    "date32[day]": "date",
}
#: By the word that SQL begins a type with: its name in ``pg_catalog``, and its number, which never changes.
_CATALOG = {
    "boolean": ("bool", 16), "bytea": ("bytea", 17), "bigint": ("int8", 20), "smallint": ("int2", 21),
    "integer": ("int4", 23), "text": ("text", 25), "real": ("float4", 700),
    "double precision": ("float8", 701), "date": ("date", 1082), "time": ("time", 1083),
    "timestamp": ("timestamp", 1114), "timestamptz": ("timestamptz", 1184), "interval": ("interval", 1186),
    "numeric": ("numeric", 1700),
}  # fmt: skip
#: What has every value of another type, whole numbers in ``numeric`` apart.
_WIDER: Mapping[str, frozenset[str]] = {
    "int2": frozenset({"int4", "int8", "float4", "float8"}),
    "int4": frozenset({"int8", "float8"}),
    "float4": frozenset({"float8"}),
    "date": frozenset({"timestamp"}),
}
_DIGITS_OF = {"int2": 5, "int4": 10, "int8": 19}
#: How Spark calls types that have another name here, in messages.
_OF_SPARK = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "large_string": "STRING",
    "binary": "BINARY", "large_binary": "BINARY", "date32[day]": "DATE", "null": "VOID",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """The type of a column, as the server's catalog has it.

    Attributes:
        text: as SQL writes it; from the server, which has quoted what needs it.
        base: its name in ``pg_catalog``, or ``enum`` or ``citext``; that of the type below a domain; of
            the elements, if it is an array.
        modifier: length, or precision and scale, as in ``pg_attribute.atttypmod``.
        element: number of the elements' type; 0 if it is no array.
    """

    text: str
    base: str
    modifier: int = _NO_MODIFIER
    element: int = 0


def to_field(kind: pa.DataType, wanted: SqlType) -> ToField | None:
    """How values of ``kind`` get into a column of the type ``wanted``; ``None`` if it does not take them."""
    if not wanted.element:
        return _scalar(kind, wanted)
    if not (is_a.is_list(kind) or is_a.is_large_list(kind)):
        return None
    element = _scalar(kind.value_type, wanted)
    return None if element is None else fields.array_of(element, wanted.element)


def new_type(column: pa.Field[pa.DataType]) -> str:
    """The SQL type of a new column.

    Raises:
        SchemaError: ``TYPE``; PostgreSQL has none that keeps all of it.
    """
    kind: Any = column.type
    if is_a.is_list(kind) and not is_a.is_list(kind.value_type):
        return new_type(kind.value_field.with_name(column.name)) + "[]"
    found = _NEW.get(str(kind)) or _new_with_unit(kind)
    if found is None:
        raise SchemaError(
            f"column {column.name!r} of type {spark_name(kind)} has no type in PostgreSQL; {advice(kind)}",
            code="TYPE",
        )
    return found


def new_sql_type(column: pa.Field[pa.DataType]) -> SqlType:
    """``new_type`` as the server's catalog will have it.

    Raises:
        SchemaError: ``TYPE``, as ``new_type``.
    """
    text = new_type(column)
    base, number = _CATALOG[_word(text)]
    kind: Any = column.type.value_type if text.endswith("[]") else column.type  # type: ignore[attr-defined]
    modifier = (kind.precision << 16 | kind.scale) + 4 if base == "numeric" else _NO_MODIFIER
    return SqlType(text=text, base=base, modifier=modifier, element=number if text.endswith("[]") else 0)


def is_wider(new: SqlType, old: SqlType) -> bool:
    """Whether a column of type ``old`` may become ``new`` with every value that it can have."""
    if bool(new.element) != bool(old.element) or _word(old.text) not in _CATALOG:  # a domain has more to say
        return False
    if new.base != "numeric":
        return new.base in _WIDER.get(old.base, ())
    before, after = _digits(new.modifier)
    if old.base == "numeric":
        old_before, old_after = _digits(old.modifier)
        return old.modifier != _NO_MODIFIER and old_before <= before and old_after <= after
    return old.base in _DIGITS_OF and _DIGITS_OF[old.base] <= before


def advice(kind: pa.DataType) -> str:
    """What to do with a column of ``kind`` that a column of the table does not take."""
    if is_a.is_nested(kind) and not is_a.is_list(kind):
        return "use to_json(…) and a column of type jsonb"
    return "cast it in the DataFrame, or change the table"


def spark_name(kind: pa.DataType) -> str:
    """How Spark calls the type, for messages."""
    if is_a.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if is_a.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    if is_a.is_list(kind):
        return f"ARRAY<{spark_name(kind.value_type)}>"
    names: Mapping[str, Callable[[Any], bool]] = {
        "MAP": is_a.is_map, "STRUCT": is_a.is_struct, "TIME": is_a.is_time, "INTERVAL": is_a.is_duration,
    }  # fmt: skip
    found = next((name for name, holds in names.items() if holds(kind)), None)
    return found or _OF_SPARK.get(str(kind), str(kind))


def _new_with_unit(kind: pa.DataType) -> str | None:
    if is_a.is_decimal128(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if is_a.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if is_a.is_time(kind):
        return "time"
    return "interval" if is_a.is_duration(kind) else None


def _scalar(kind: pa.DataType, wanted: SqlType) -> ToField | None:
    maker = _MAKERS.get(wanted.base)
    return None if maker is None else maker(kind, wanted.modifier)


def _only(holds: Callable[[Any], bool], field: ToField) -> Callable[[pa.DataType, int], ToField | None]:
    return lambda kind, _: field if holds(kind) else None


def _integer(width: int, kind: pa.DataType, _: int) -> ToField | None:
    narrower = [one for size, *kinds in _INTEGERS if size <= width for one in kinds]
    own = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[width]
    return fields.number(f">i{width}", own) if kind in narrower else None


def _float(width: int, kind: pa.DataType, _: int) -> ToField | None:
    own = pa.float32() if width == 4 else pa.float64()
    return fields.number(f">f{width}", own) if kind in {pa.float32(), own} else None


def _numeric(kind: pa.DataType, modifier: int) -> ToField | None:
    """Every value fits: the column has as many digits before the point, and as many after it."""
    if is_a.is_decimal128(kind):
        before, after, field = kind.precision - kind.scale, kind.scale, fields.numeric
    elif kind in _DIGITS:
        before, after, field = _DIGITS[kind], 0, fields.whole_numeric
    else:
        return None
    if modifier == _NO_MODIFIER:
        return field
    has_before, has_after = _digits(modifier)
    return field if has_after >= after and has_before >= before else None


def _digits(modifier: int) -> tuple[int, int]:
    """How many a ``numeric`` has before and after the point."""
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    return precision - scale, scale


def _word(text: str) -> str:
    """A type as SQL writes it without what is in brackets behind it."""
    return text.removesuffix("[]").partition("(")[0]


def _is_zoned(kind: pa.DataType) -> bool:
    return is_a.is_timestamp(kind) and kind.tz is not None


def _is_local(kind: pa.DataType) -> bool:
    return is_a.is_timestamp(kind) and kind.tz is None


def _is_text(kind: pa.DataType) -> bool:
    return is_a.is_string(kind) or is_a.is_large_string(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return is_a.is_binary(kind) or is_a.is_large_binary(kind)


_TEXT = _only(_is_text, fields.text)
_MAKERS: Mapping[str, Callable[[pa.DataType, int], ToField | None]] = {
    "bool": _only(is_a.is_boolean, fields.boolean),
    "int2": partial(_integer, 2),
    "int4": partial(_integer, 4),
    "int8": partial(_integer, 8),
    "float4": partial(_float, 4),
    "float8": partial(_float, 8),
    "numeric": _numeric,
    **dict.fromkeys(("text", "varchar", "bpchar", "json", "xml", "enum", "citext"), _TEXT),
    "jsonb": _only(_is_text, fields.jsonb),
    "uuid": _only(_is_text, fields.uuid),
    "bytea": _only(_is_binary, fields.binary),
    "date": _only(is_a.is_date32, fields.date),
    "time": _only(is_a.is_time, fields.time),
    "timestamp": _only(_is_local, fields.timestamp),
    "timestamptz": _only(_is_zoned, fields.timestamp),
    "interval": _only(is_a.is_duration, fields.interval),
}
