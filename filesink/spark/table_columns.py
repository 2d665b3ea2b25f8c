"""A DataFrame in the columns of a table: by name, in the table's order and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import CharType, DataType, StringType, VarcharType

from filesink.errors import SchemaError
from filesink.metastore.api import Column, Table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def in_table_order(df: DataFrame, table: Table, on_new_columns: Literal["refuse", "add"]) -> DataFrame:
    """The columns of ``table`` in their order, its partition keys last; columns that it lacks behind.

    Columns that ``df`` lacks are null. Types may be widened without loss, as Spark does on ``INSERT``.

    Raises:
        SchemaError: ``EXTRA_COLUMN``, ``COLUMN_TYPE``, ``PARTITION_COLUMN``, ``DUPLICATE_COLUMN``.
    """
    given = _by_name(df)
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
    return df.select(*selected, *(F.col(_quoted(name)) for name in extra))


def _by_name(df: DataFrame) -> dict[str, str]:
    found = {name.lower(): name for name in df.columns}
    if len(found) != len(df.columns):
        raise SchemaError(
            "two columns differ only in case, which a table cannot hold; rename one", code="DUPLICATE_COLUMN"
        )
    return found


def _check_keys(keys: Sequence[Column], given: dict[str, str], table: Table) -> None:
    for key in keys:
        if key.name.lower() not in given:
            raise SchemaError(
                f"the DataFrame has no column {key.name!r}, a partition key of {table.name}; add it, with "
                "lit(…) if it is the same for all records",
                code="PARTITION_COLUMN",
            )


def _column(df: DataFrame, wanted: Column, name: str | None, table: Table) -> SparkColumn:
    target = _plain(DataType.fromDDL(wanted.type))
    if name is None:
        return F.lit(None).cast(target).alias(wanted.name)
    source = df.schema[name].dataType
    column = F.col(_quoted(name))
    if source.simpleString().lower() == target.simpleString().lower():
        return column.alias(wanted.name)
    if not _can_widen(df, source, target):
        raise SchemaError(
            f"column {name!r} is {source.simpleString()} and table {table.name} has {wanted.type}; cast it "
            "yourself if nothing gets lost",
            code="COLUMN_TYPE",
        )
    return column.cast(target).alias(wanted.name)


def _can_widen(df: DataFrame, source: DataType, target: DataType) -> bool:
    """Spark's own rule. It takes anything for a string, which is no widening between columns."""
    if isinstance(target, StringType):
        return False
    session: Any = df.sparkSession
    parse = session._jsparkSession.parseDataType  # noqa: SLF001 - Python has no other way to the rule
    cast = session._jvm.org.apache.spark.sql.catalyst.expressions.Cast  # noqa: SLF001
    return bool(cast.canUpCast(parse(source.json()), parse(target.json())))


def _plain(kind: DataType) -> DataType:
    """Text of limited length is text; Spark itself has such types for columns of tables only."""
    return StringType() if isinstance(kind, CharType | VarcharType) else kind


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
