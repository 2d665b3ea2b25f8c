"""Columns of a table and of what is written to it, compared by name. Pure."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from filesink.errors import MetastoreConflictError, SchemaError
from filesink.metastore.api import Column, Table, TableKind, TableName
from filesink.metastore.hive.types import hive_type, is_same_type, is_text_of, is_wider, table_type
from filesink.metastore.locations import bucket_location
from filesink.metastore.policies import Site
from filesink.metastore.tables.formats import HIVE_FORMATS, spark_provider


def table_for(name: TableName, kind: TableKind, site: Site, schema: pa.Schema) -> Table:
    """A table for records of ``schema``, where and as the sink writes them.

    Raises:
        SchemaError: ``HIVE_TYPE``, or ``NO_HIVE_FORMAT``.
    """
    if site.hive_format is None:
        raise SchemaError(
            f"Hive has no name for the format of the files, so table {name} cannot be created; create it "
            "yourself, with a serde that reads them",
            code="NO_HIVE_FORMAT",
        )
    keys = site.partition_columns or ()
    types = {field.name.lower(): hive_type(field) for field in schema}
    return Table(
        name=name,
        columns=tuple(
            Column(name=field.name.lower(), type=hive_type(field))
            for field in schema
            if field.name.lower() not in {key.lower() for key in keys}
        ),
        partition_keys=tuple(Column(name=key.lower(), type=types[key.lower()]) for key in keys),
        location=bucket_location(site.base_path, site.base_path, ""),
        format=HIVE_FORMATS[site.hive_format],
        kind=kind,
    )


def new_columns(table: Table, site: Site, schema: pa.Schema) -> tuple[Column, ...]:
    """Columns of ``schema`` that the table does not have, neither as such nor as partition keys."""
    known = {name.lower() for name in table.column_names()}
    keys = {key.lower() for key in site.partition_columns or ()}
    return tuple(
        Column(name=field.name.lower(), type=hive_type(field))
        for field in schema
        if field.name.lower() not in known | keys
    )


def wider_types(table: Table, schema: pa.Schema) -> dict[str, str]:
    """Types of ``schema`` that have every value of the table's and more, by the names of their columns."""
    types = {column.name.lower(): column.type for column in table.columns}
    given = {field.name.lower(): table_type(field.type) for field in schema if field.name.lower() in types}
    return {name: kind for name, kind in given.items() if is_wider(kind, types[name])}


def check_table(table: Table, site: Site, schema: pa.Schema) -> None:
    """Raise unless readers of the table will find every column of ``schema``, as it is.

    Raises:
        MetastoreConflictError: ``PARTITION_KEYS``.
        SchemaError: ``EXTRA_COLUMN``, ``COLUMN_TYPE``.
    """
    keys = {key.name.lower() for key in table.partition_keys}
    if site.partition_columns is not None and {name.lower() for name in site.partition_columns} != keys:
        raise MetastoreConflictError(
            f"{table.name} is partitioned by ({', '.join(sorted(keys))}) and the sink by "
            f"({', '.join(site.partition_columns)}). Use the table's keys as partition columns",
            code="PARTITION_KEYS",
        )
    extra = new_columns(table, site, schema)
    if extra:
        raise SchemaError(
            f"table {table.name} has no column {extra[0].name!r}, so readers would not see it. Drop it, or "
            "let the sink add it with on_new_columns='add'",
            code="EXTRA_COLUMN",
        )
    types = {column.name.lower(): column.type for column in table.columns}
    types_of_keys = {key.name.lower(): key.type for key in table.partition_keys}
    for field in schema:
        name = field.name.lower()
        wanted, key = types.get(name), types_of_keys.get(name)
        if wanted is not None and not is_same_type(wanted, table_type(field.type)):
            raise _other_type(field, table, wanted)
        if key is not None and not is_text_of(key, field.type):
            raise _other_type(field, table, key)


def _other_type(field: pa.Field[Any], table: Table, wanted: str) -> SchemaError:
    given = table_type(field.type)
    way_out = (
        ", or let the sink change the table with on_wider_types='alter'" if is_wider(given, wanted) else ""
    )
    return SchemaError(
        f"column {field.name!r} is {given} and table {table.name} has {wanted}; cast it{way_out}",
        code="COLUMN_TYPE",
    )


def check_evolvable(table: Table) -> None:
    """Raise unless columns can be added or changed by a client that is not Spark."""
    if spark_provider(table) is not None:
        raise MetastoreConflictError(
            f"{table.name} was made by Spark and has its columns in Spark's own form; change them with ALTER "
            "TABLE in Spark",
            code="SPARK_TABLE",
        )
