"""Changes of rows: envelopes of Debezium, Canal and Maxwell as rows with a kind, and back.

How it is used:

    from filesink import PostgresSink, PostgresTable, changes

    rows = changes.debezium(kafka, "id BIGINT, name STRING", order=["offset"])
    table = PostgresTable("shop.customers", keys=["id"], row_kind="row_kind", newest_by="row_order")
    PostgresSink("host=db dbname=shop", table, ledger=…).start(rows, checkpoint_location=…)

All of these are transformations of a DataFrame, a stream or not, made of functions of Spark alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from filesink.row_kind import RowKind
from filesink.spark.changes import encoding
from filesink.spark.changes.canal import Canal
from filesink.spark.changes.debezium import Debezium
from filesink.spark.changes.envelope import Reading, columns_of, decoded, kinds_of
from filesink.spark.changes.maxwell import Maxwell
from filesink.spark.changes.values import Rows, Wire

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["canal", "debezium", "maxwell", "row_kind", "to_canal", "to_debezium", "to_maxwell"]

_WORDS = {
    **{kind.value: kind for kind in RowKind},
    **dict.fromkeys(("c", "r", "insert", "INSERT", "bootstrap-insert"), RowKind.INSERT),
    **dict.fromkeys(("u", "update", "UPDATE"), RowKind.UPDATE_AFTER),
    **dict.fromkeys(("d", "delete", "DELETE"), RowKind.DELETE),
}


def debezium(
    df: DataFrame,
    schema: StructType | str,
    *,
    value: str = "value",
    order: Sequence[str | Column] = (),
    on_malformed: Literal["raise", "rescue"] = "raise",
    on_schema_change: Literal["raise", "ignore", "rescue"] = "raise",
) -> DataFrame:
    """The rows in messages of Debezium, as JSON, with and without ``schema`` and ``payload``.

    ``c`` and ``r`` (of a snapshot) become ``+I``, ``d`` becomes ``-D``, ``u`` the pair ``-U`` and ``+U``, or
    ``+U`` alone if there is no ``before``. A null message (a tombstone) has no rows.

    Args:
        df: has a message in each row.
        schema: the columns of the rows, with their types as Debezium has written them. Others are left out.
        value: the column of the messages, STRING or BINARY.
        order: what grows with each message of a key, the most significant first: names of columns, as
            ``["offset"]`` of Kafka, or expressions; whole numbers, texts of such, or TIMESTAMP.
        on_malformed: what becomes of a message that is not understood as a whole: ``"raise"`` fails the task
            with ``DataError`` (``MALFORMED_CHANGE``); ``"rescue"`` makes a row of nulls with the message in
            the column ``rescued``.
        on_schema_change: what becomes of a message that changes a table (DDL), and no row: ``"raise"`` fails
            the task with ``SchemaError`` (``SCHEMA_EVENT``); ``"ignore"`` leaves it out, and Spark counts
            it among the observed metrics of the query, under a name that begins with
            ``filesink_schema_changes``; ``"rescue"`` makes a row of nulls, as above.

    Returns:
        The columns of ``schema``, ``row_kind``, with ``order`` also ``row_order`` (ARRAY<BIGINT>; its last
        element is the place of the row in its message), and with any ``"rescue"`` also ``rescued``.

    Raises:
        ConfigError: ``BAD_VALUE``.
        SchemaError: ``TYPE``, a column of ``schema`` or ``order`` is of a type that cannot be read;
            ``RESERVED_COLUMN``; ``UNKNOWN_COLUMN``, there is no such ``value``.
    """
    rows = Rows(columns=columns_of(schema), wire=Wire.JSON)
    reading = Reading(value=value, order=order, on_malformed=on_malformed, on_schema_change=on_schema_change)
    return decoded(df, Debezium(rows=rows), reading)


def maxwell(
    df: DataFrame,
    schema: StructType | str,
    *,
    value: str = "value",
    order: Sequence[str | Column] = (),
    on_malformed: Literal["raise", "rescue"] = "raise",
    on_schema_change: Literal["raise", "ignore", "rescue"] = "raise",
) -> DataFrame:
    """The rows in messages of Maxwell; arguments, result and errors are those of ``debezium``.

    ``insert`` and ``bootstrap-insert`` become ``+I``, ``delete`` becomes ``-D``, ``update`` the pair ``-U``
    and ``+U``. ``bootstrap-start`` and ``bootstrap-complete`` have no rows. ``table-create``,
    ``table-alter``, ``table-drop``, and the same of ``database``, change tables.
    """
    rows = Rows(columns=columns_of(schema), wire=Wire.JSON)
    reading = Reading(value=value, order=order, on_malformed=on_malformed, on_schema_change=on_schema_change)
    return decoded(df, Maxwell(rows=rows), reading)


def canal(
    df: DataFrame,
    schema: StructType | str,
    *,
    value: str = "value",
    order: Sequence[str | Column] = (),
    on_malformed: Literal["raise", "rescue"] = "raise",
    on_schema_change: Literal["raise", "ignore", "rescue"] = "raise",
) -> DataFrame:
    """The rows in flat messages of Canal; arguments, result and errors are those of ``debezium``.

    ``INSERT`` becomes ``+I``, ``DELETE`` becomes ``-D``, ``UPDATE`` the pair ``-U`` and ``+U``, for each row
    of the message. All values are texts, which are cast to the types of ``schema``. What ``isDdl`` changes
    tables, but for ``TRUNCATE``, which is malformed.
    """
    rows = Rows(columns=columns_of(schema), wire=Wire.TEXT)
    reading = Reading(value=value, order=order, on_malformed=on_malformed, on_schema_change=on_schema_change)
    return decoded(df, Canal(rows=rows), reading)


def row_kind(column: Column) -> Column:
    """The kind for a word of Debezium (``c r u d``), Canal, Maxwell or Flink (``+I -U +U -D``).

    An update is ``+U``, without the row of before. A task raises ``DataError`` (``ROW_KIND``) for any other
    word, and for null.

    Args:
        column: of words, as in ``df.withColumn("row_kind", row_kind(df.op))``.
    """
    return kinds_of(_WORDS, column)


def to_debezium(df: DataFrame, *, kind: str = "row_kind") -> DataFrame:
    """Rows as messages, ``{"before": …, "after": …, "op": …}``, in one column ``value``; no key is added.

    As Flink and SeaTunnel write them: what comes (``+I``, ``+U``) is a ``c``, what goes (``-U``, ``-D``) a
    ``d``.

    Args:
        df: rows with a kind.
        kind: the column that holds it. All others are of the row.

    Raises:
        SchemaError: ``UNKNOWN_COLUMN``; there is no such column, or no other.
    """
    return encoding.encoded(df, kind, encoding.debezium)


def to_canal(df: DataFrame, *, kind: str = "row_kind") -> DataFrame:
    """As ``to_debezium``: ``{"data": [{…}], "type": "INSERT"}``, or ``"DELETE"``."""
    return encoding.encoded(df, kind, encoding.canal)


def to_maxwell(df: DataFrame, *, kind: str = "row_kind") -> DataFrame:
    """As ``to_debezium``: ``{"data": {…}, "type": "insert"}``, or ``"delete"``."""
    return encoding.encoded(df, kind, encoding.maxwell)
