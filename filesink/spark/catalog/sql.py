"""Names, literals and lists of columns as Spark SQL has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from filesink.buckets.partition_paths import DEFAULT_PARTITION
from filesink.metastore.api import Column, Table, TableKind, TableName, Values


def create_table(table: Table, stored_as: str) -> str:
    """The statement that makes ``table`` if there is none; ``stored_as`` is Hive's word for its format."""
    external = "EXTERNAL " if table.kind is TableKind.EXTERNAL else ""
    keys = f" PARTITIONED BY ({columns(table.partition_keys)})" if table.partition_keys else ""
    as_format = (
        f"ROW FORMAT SERDE {text(table.format.serde)}" if stored_as == "json" else f"STORED AS {stored_as}"
    )
    return (
        f"CREATE {external}TABLE IF NOT EXISTS {quoted(table.name)} ({columns(table.columns)}){keys} "
        f"{as_format} LOCATION {text(table.location)}{properties(' TBLPROPERTIES', table.parameters)}"
    )


def quoted(name: TableName) -> str:
    """A table's name; both parts are letters, digits and ``_``."""
    return f"`{name.database}`.`{name.table}`"


def text(value: str) -> str:
    """A literal of Spark SQL, under its default settings.

    Spark replaces ``${env:NAME}`` and the like in a statement before it parses it, literals included.
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def columns(of: Sequence[Column]) -> str:
    """Names and types, as ``CREATE TABLE`` has them between brackets."""
    names = (column.name.replace("`", "``") for column in of)
    return ", ".join(f"`{name}` {column.type}" for name, column in zip(names, of, strict=True))


def properties(word: str, values: Mapping[str, str]) -> str:
    """``word`` and the list of ``values``; nothing if there are none."""
    pairs = ", ".join(f"{text(name)}={text(value)}" for name, value in sorted(values.items()))
    return f"{word} ({pairs})" if pairs else ""


def spec(table: Table, values: Values) -> str:
    """A partition's keys and values, as they follow ``PARTITION`` between brackets."""
    pairs = zip(table.partition_keys, values, strict=True)
    return ", ".join(
        f"`{key.name}`={'NULL' if value == DEFAULT_PARTITION else text(value)}" for key, value in pairs
    )
