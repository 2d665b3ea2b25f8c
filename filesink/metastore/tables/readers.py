"""What readers of a table would take for something else than was written. Pure.

Tables of Hive are read by Hive, and by Spark with Hive's classes; those that Spark made with ``USING`` by
Spark's own readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from filesink.errors import MetastoreConflictError, SchemaError
from filesink.metastore.api import Table
from filesink.metastore.hive.types import table_type
from filesink.metastore.policies import Site
from filesink.metastore.tables.formats import (
    HIVE_FORMATS,
    hive_format_of,
    is_csv,
    names_of_spark,
    spark_provider,
)
from filesink.metastore.tables.kinds import check_kind
from formats import columns

_FINER_THAN_HIVE = ("timestamp-micros", "timestamp-nanos")
_BINARY = frozenset({"parquet", "orc", "avro"})
_MEMBER = re.compile(r"([^,:<>`\s]+)`?\s*:")


def check_readers(table: Table, site: Site, schema: pa.Schema) -> None:
    """Raise if readers of the table would not find the files, or take a column for something else.

    Raises:
        MetastoreConflictError: those of ``check_kind``; ``TABLE_FORMAT``.
        SchemaError: ``COLUMN_TYPE``, ``COLUMN_NAME``, ``COLUMN_ORDER``.
    """
    check_kind(table)
    _check_format(table, site)
    keys = {key.name.lower() for key in table.partition_keys}
    in_files = pa.schema([field for field in schema if field.name.lower() not in keys])
    if is_csv(table.format) or spark_provider(table) == "csv" or hive_format_of(table.format) == "textfile":
        _check_order(table, in_files)
    if spark_provider(table) is None and site.hive_format == "avro":
        _check_times_of_avro(table, site, in_files)
        _check_names_of_avro(table, in_files)
    if spark_provider(table) is None and site.hive_format == hive_format_of(table.format) == "json":
        _check_json(table, in_files)
    if spark_provider(table) is not None and site.hive_format == "orc":
        _check_times_of_orc(table, in_files)


def _check_format(table: Table, site: Site) -> None:
    """Only where both are known, and readers of one cannot make anything of the other."""
    ours, theirs = site.hive_format, spark_provider(table) or hive_format_of(table.format)
    if theirs is None and table.format.serde in {known.serde for known in HIVE_FORMATS.values()}:
        theirs = table.format.input_format.rpartition(".")[2]  # links, Hudi: other files behind a known serde
    if None not in {ours, theirs} and ours != theirs and {ours, theirs} & _BINARY:
        raise MetastoreConflictError(
            f"table {table.name} has files of {theirs} and the sink writes {ours}: its readers could not "
            "read them. Nothing was written. Use FileSink.for_hive_table, which takes the table's format",
            code="TABLE_FORMAT",
        )


def _check_order(table: Table, schema: pa.Schema) -> None:
    """Lines of CSV are read by position. Columns that the table has behind those written are null."""
    names = [field.name.lower() for field in schema]
    known = [column.name.lower() for column in table.columns]
    new = [name for name in names if name not in known]  # added behind all others, or refused for that
    if names != [*known, *new][: len(names)]:
        raise SchemaError(
            f"readers of table {table.name} know its columns by their order, ({', '.join(known)}), but the "
            f"DataFrame has ({', '.join(names)}): values would appear under other names. Select them in the "
            "table's order",
            code="COLUMN_ORDER",
        )


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


def _check_json(table: Table, schema: pa.Schema) -> None:
    path, what = next(_not_read_from_json(schema), (None, ""))
    if path is not None:
        raise SchemaError(
            f"column {path!r} is {what}: Hive's JsonSerDe fails at the text that Spark has for it, so table "
            f"{table.name} could not be read. Use a table of Parquet or ORC, or a column of string",
            code="COLUMN_TYPE",
        )


def _not_read_from_json(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Timestamps are written with ``T`` and zone, bytes as base64, dates that are keys as numbers."""
    for path, field in columns.walk(schema):
        kind = columns.without_dictionary(field.type)
        if pt.is_timestamp(kind):
            yield path, "a timestamp"
        elif columns.is_binary(kind):
            yield path, "binary"
        elif pt.is_map(kind) and pt.is_date(kind.key_type):
            yield f"{path}.key", "a date as the key of a map"


def _check_names_of_avro(table: Table, schema: pa.Schema) -> None:
    """Other formats are read by names in any case, Avro by those of the table."""
    known = {column.name.lower(): column for column in table.columns}
    spelled = names_of_spark(table)
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
