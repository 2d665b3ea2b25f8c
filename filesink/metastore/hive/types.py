"""Hive's names of Arrow's types. Pure."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.types as pt

from filesink.errors import SchemaError
from formats import columns

_SIMPLE = (
    (pt.is_boolean, "boolean"),
    (pt.is_int8, "tinyint"),
    (pt.is_int16, "smallint"),
    (pt.is_int32, "int"),
    (pt.is_int64, "bigint"),
    (pt.is_float32, "float"),
    (pt.is_float64, "double"),
    (pt.is_date, "date"),
    (lambda kind: pt.is_timestamp(kind) and kind.tz is None, "timestamp_ntz"),
    (pt.is_timestamp, "timestamp"),
    (pt.is_string, "string"),
    (pt.is_large_string, "string"),
    (pt.is_binary, "binary"),
    (pt.is_large_binary, "binary"),
)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")  # wider and wider
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXTS = re.compile(r"\b(?:varchar|char)\(\d+\)")
_STRUCT_NAME = re.compile(r"[^,:<>`]+")


def hive_type(column: pa.Field[pa.DataType]) -> str:
    """The type of ``column`` as in ``CREATE TABLE``, such as ``array<decimal(10,2)>``.

    Raises:
        SchemaError: ``HIVE_TYPE``; Hive has no such type.
    """
    for path, field in columns.walk(pa.schema([column])):
        if pt.is_timestamp(field.type) and field.type.tz is None:
            raise SchemaError(
                f"column {path!r} is a timestamp_ntz, for which Hive has no type: its timestamp is a wall "
                "clock to Hive and an instant to Spark; cast it to timestamp",
                code="HIVE_TYPE",
            )
    return table_type(column.type).lower()


def table_type(kind: pa.DataType) -> str:
    """``kind`` as tables have it, names as they are; ``timestamp_ntz`` is a type of Spark's own tables only.

    Raises:
        SchemaError: ``HIVE_TYPE``; neither has such a type.
    """
    if pt.is_dictionary(kind):
        return table_type(kind.value_type)
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_map(kind):
        return f"map<{table_type(kind.key_type)},{table_type(kind.item_type)}>"
    if pt.is_list(kind) or pt.is_large_list(kind):
        return f"array<{table_type(kind.value_type)}>"
    if pt.is_struct(kind):
        return f"struct<{','.join(_member(kind.field(i)) for i in range(kind.num_fields))}>"
    found = next((name for test, name in _SIMPLE if test(kind)), None)
    if found is None:
        raise SchemaError(f"Hive has no type for {kind}; cast the column", code="HIVE_TYPE")
    return found


def _member(field: pa.Field[pa.DataType]) -> str:
    if not _STRUCT_NAME.fullmatch(field.name):
        raise SchemaError(f"Hive cannot name {field.name!r} inside a struct; rename it", code="HIVE_TYPE")
    return f"{field.name}:{table_type(field.type)}"


def is_text_of(key: str, kind: pa.DataType) -> bool:
    """Whether values of ``kind`` in names of directories are those of a partition key of type ``key``.

    Text may be anything; whoever has text says what it means. A whole number that is wider than the key
    may be none of its values.
    """
    wanted = _plain(key)
    if wanted == "string":
        return True
    given = table_type(kind)
    if wanted in _INTEGERS and given in _INTEGERS:
        return _INTEGERS.index(given) <= _INTEGERS.index(wanted)
    return given == "string" or is_same_type(given, key)


def is_same_type(one: str, other: str) -> bool:
    """Whether files of the one type can be read as the other: equal but for blanks, case and lengths."""
    return _plain(one) == _plain(other)


def is_wider(new: str, old: str) -> bool:
    """Whether ``new`` has all values of ``old`` and more, and readers take files of the one for the other."""
    new, old = _plain(new), _plain(old)
    if new in _INTEGERS and old in _INTEGERS:
        return _INTEGERS.index(new) > _INTEGERS.index(old)
    if (after := _DECIMAL.fullmatch(new)) and (before := _DECIMAL.fullmatch(old)):
        digits, scale = int(after[1]) - int(before[1]), int(after[2]) - int(before[2])
        return new != old and digits >= scale >= 0
    return (new, old) == ("double", "float")


def _plain(text: str) -> str:
    return _TEXTS.sub("string", re.sub(r"\s", "", text.lower()))
