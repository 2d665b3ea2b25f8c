"""What readers of a table would take for something else than was written. Pure.

Tables of Hive are read by Hive, and by Spark with Hive's classes; those that Spark made with ``USING`` by
Spark's own readers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from filesink.errors import SchemaError
from filesink.metastore.api import Table
from filesink.metastore.hive_types import table_type
from filesink.metastore.policies import Site
from filesink.metastore.table_formats import spark_provider
from filesink.metastore.table_kinds import check_kind
from formats import columns

_FINER_THAN_HIVE = ("timestamp-micros", "timestamp-nanos")
_SCHEMA_OF_SPARK = "spark.sql.sources.schema"
_MEMBER = re.compile(r"([^,:<>`\s]+)`?\s*:")


def check_readers(table: Table, site: Site, schema: pa.Schema) -> None:
    """Raise if readers of the table would not find the files, or take a column for something else.

    Raises:
        MetastoreConflictError: those of ``check_kind``.
        SchemaError: ``COLUMN_TYPE``, ``COLUMN_NAME``.
    """
    check_kind(table)
    keys = {key.name.lower() for key in table.partition_keys}
    in_files = pa.schema([field for field in schema if field.name.lower() not in keys])
    if spark_provider(table) is None and site.hive_format == "avro":
        _check_times_of_avro(table, site, in_files)
        _check_names_of_avro(table, in_files)
    if spark_provider(table) is not None and site.hive_format == "orc":
        _check_times_of_orc(table, in_files)


def _check_times_of_avro(table: Table, site: Site, schema: pa.Schema) -> None:
    given = site.avro_schema
    if given is not None and not any(word in given for word in _FINER_THAN_HIVE):
        return
    path = next((path for path, _ in _times(schema)), None)
    if path is not None:
        raise SchemaError(
            f"column {path!r} is a timestamp: Hive takes Avro's microseconds for milliseconds, and table "
            f"{table.name} would show the year 56000 for today. Use a table of Parquet or ORC, cast the "
            "column to string, or give the Avro format a schema with timestamp-millis",
            code="COLUMN_TYPE",
        )


def _check_times_of_orc(table: Table, schema: pa.Schema) -> None:
    for path, kind in _times(schema):
        if kind.tz is None:
            raise SchemaError(
                f"column {path!r} is a timestamp_ntz, which Spark knows in ORC files by a mark of its own: "
                f"it could not read table {table.name}. Use a table of Parquet, or a column of timestamp",
                code="COLUMN_TYPE",
            )


def _check_names_of_avro(table: Table, schema: pa.Schema) -> None:
    """Other formats are read by names in any case, Avro by those of the table."""
    known = {column.name.lower(): column for column in table.columns}
    spelled = {name.lower(): name for name in _names_of_spark(table)}
    for field in schema:
        lower = field.name.lower()
        column = known.get(lower)
        wanted = lower if column is None else column.name
        kind = table_type(field.type)
        if field.name != wanted or _differ_in_case(kind, kind.lower() if column is None else column.type):
            raise SchemaError(
                f"column {field.name!r} would be null in table {table.name}: names in Avro files, also those "
                f"inside of structs, must be the very names of the table, such as {wanted!r}. Rename it",
                code="COLUMN_NAME",
            )
        if spelled.get(lower, wanted) != wanted:
            raise SchemaError(
                f"column {wanted!r} of table {table.name} is {spelled[lower]!r} for Spark, which would read "
                "null: names in Avro files must be the very names of the table. Use SparkCatalog()",
                code="COLUMN_NAME",
            )


def _times(schema: pa.Schema) -> Iterator[tuple[str, Any]]:
    return ((path, field.type) for path, field in columns.walk(schema) if pt.is_timestamp(field.type))


def _differ_in_case(one: str, other: str) -> bool:
    """Whether members of structs in two types have the same names, but not to the letter."""
    names = [_MEMBER.findall(text) for text in (one, other)]
    lower = [[name.lower() for name in found] for found in names]
    return lower[0] == lower[1] and names[0] != names[1]


def _names_of_spark(table: Table) -> list[str]:
    """Names as Spark has them, which writes its schema beside that of Hive; whole, or in parts if long."""
    parameters = table.parameters
    parts = range(int(parameters.get(f"{_SCHEMA_OF_SPARK}.numParts", "0")))
    text = "".join(parameters.get(f"{_SCHEMA_OF_SPARK}.part.{i}", "") for i in parts)
    schema = json.loads(parameters.get(_SCHEMA_OF_SPARK) or text or '{"fields": []}')
    return [field["name"] for field in schema["fields"]]
