"""Rows with a kind as messages, in the shapes that Flink and SeaTunnel write.

These formats know of no pair of rows: what an update takes away is a delete there, what it brings an insert.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink.arguments import column_name, data_frame
from filesink.errors import SchemaError
from filesink.row_kind import RowKind
from filesink.spark.changes.envelope import kinds_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_GOES = [RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value]


def encoded(df: DataFrame, kind: str, message: Callable[[Column, Column], Column]) -> DataFrame:
    """``df`` with one column ``value``, of what ``message`` makes of a row and of whether it goes.

    Raises:
        SchemaError: ``UNKNOWN_COLUMN``; there is no column ``kind``, or no other.
    """
    data_frame(df, "changes")
    wanted = column_name(kind, name="kind").lower()
    names = [name for name in df.columns if name.lower() != wanted]
    if len(names) == len(df.columns) or not names:
        raise SchemaError(
            f"the DataFrame has no column {kind!r} beside others: it says what each row does, and is no part "
            "of the row",
            code="UNKNOWN_COLUMN",
        )
    row = F.struct(*(F.col(quoted(name)).alias(name) for name in names))
    known = kinds_of({one.value: one for one in RowKind}, F.col(quoted(kind)))
    found = message(row, known.isin(_GOES))
    return df.select(F.to_json(found, {"ignoreNullFields": "false"}).alias("value"))


def debezium(row: Column, goes: Column) -> Column:
    """One of ``c`` and ``d``."""
    return F.struct(
        F.when(goes, row).alias("before"),
        F.when(~goes, row).alias("after"),
        F.when(goes, "d").otherwise("c").alias("op"),
    )


def canal(row: Column, goes: Column) -> Column:
    """One of ``INSERT`` and ``DELETE``, with one row."""
    return F.struct(F.array(row).alias("data"), F.when(goes, "DELETE").otherwise("INSERT").alias("type"))


def maxwell(row: Column, goes: Column) -> Column:
    """One of ``insert`` and ``delete``."""
    return F.struct(row.alias("data"), F.when(goes, "delete").otherwise("insert").alias("type"))
