"""A DataFrame in the columns of a table: by name, in the table's order and types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import DataType, StringType

from filesink.errors import SchemaError
from filesink.metastore.api import Column, Table
from filesink.metastore.tables.formats import is_csv
from filesink.spark.arguments import check_frame
from filesink.spark.catalog.casts import Place, by_name, fitted, in_lower_case, without_limits

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

# The word for a type, and neither a name in quotes nor that of a member.
_TIMESTAMP = re.compile(r"`(?:[^`]|``)*`|\btimestamp\b(?!\s*:)", re.IGNORECASE)
_LOCAL: Mapping[str, str] = MappingProxyType({"timestamp": "timestamp_ltz"})


def in_table_order(df: DataFrame, table: Table, on_new_columns: Literal["refuse", "add"]) -> DataFrame:
    """The columns of ``table`` in their order, its partition keys last; columns that it lacks behind.

    Columns that ``df`` lacks are null. Types are widened as Spark does on ``INSERT``, which loses nothing
    but the last digits of whole numbers that become ``float`` or ``double``; see ``fitted``.

    Raises:
        SchemaError: ``EXTRA_COLUMN``, ``COLUMN_TYPE``, ``PARTITION_COLUMN``, ``DUPLICATE_COLUMN``.
    """
    check_frame(df)
    given = by_name(df.columns, "columns")
    wanted = [*table.columns, *table.partition_keys]
    names = {column.name.lower() for column in wanted}
    extra = [name for lower, name in given.items() if lower not in names]
    if extra and on_new_columns == "refuse":
        raise SchemaError(
            f"table {table.name} has no column {extra[0]!r}; drop it, or add it with on_new_columns='add'",
            code="EXTRA_COLUMN",
        )
    _check_keys(table.partition_keys, given, table)
    selected = [_column(df, column, given.get(column.name.lower()), table) for column in wanted]
    added = [_added(df, name, table) for name in extra]
    ordered = df.select(*selected, *added)
    return _in_lines(ordered, table) if is_csv(table.format) else ordered


def _check_keys(keys: Sequence[Column], given: dict[str, str], table: Table) -> None:
    for key in keys:
        if key.name.lower() not in given:
            raise SchemaError(
                f"the DataFrame has no column {key.name!r}, a partition key of {table.name}; add it, with "
                "lit(…) if it is the same for all records",
                code="PARTITION_COLUMN",
            )


def _column(df: DataFrame, wanted: Column, name: str | None, table: Table) -> SparkColumn:
    target = _parsed(wanted.type)
    if name is None:
        return F.lit(None).cast(without_limits(target)).alias(wanted.name)
    place = Place(path=name, table=table.name, session=df.sparkSession)
    return fitted(F.col(_quoted(name)), df.schema[name].dataType, target, place).alias(wanted.name)


def _added(df: DataFrame, name: str, table: Table) -> SparkColumn:
    """A new column as the table will have it: metastores keep names in lower case, inside of structs too."""
    source = df.schema[name].dataType
    target = in_lower_case(source)
    place = Place(path=name, table=table.name, session=df.sparkSession)
    return fitted(F.col(_quoted(name)), source, target, place).alias(name.lower())


def _parsed(text: str) -> DataType:
    """A type as Hive and catalogs write it, whatever the session takes ``TIMESTAMP`` for."""
    return DataType.fromDDL(_TIMESTAMP.sub(lambda found: _LOCAL.get(found[0].lower(), found[0]), text))


def _in_lines(df: DataFrame, table: Table) -> DataFrame:
    """``df``, whose job fails at a line break: readers of the table take one for the end of a record."""
    keys = {key.name.lower() for key in table.partition_keys}
    columns = []
    for field in df.schema:
        text = F.col(_quoted(field.name))
        if isinstance(field.dataType, StringType) and field.name.lower() not in keys:
            broken = F.raise_error(
                F.lit(
                    f"column '{field.name}' has a line break, which readers of table {table.name} take for "
                    "the end of a record; nothing was written. Replace it, or use a table of another format"
                )
            )
            text = F.when(text.rlike("[\\r\\n]"), broken).otherwise(text).alias(field.name)
        columns.append(text)
    return df.select(*columns)


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
