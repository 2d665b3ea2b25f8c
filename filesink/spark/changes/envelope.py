"""What all envelopes share: a message is parsed once, and becomes as many rows as it has changes.

Rules:
1. A message that is not understood as a whole raises, or is handed on as it is. None is left out but those
   that have no rows by their meaning: a null, which is the tombstone of a compacted topic, those that the
   envelope names, and, if that is asked for, those that change a table: these are counted.
2. A message has to be one JSON object and nothing else: a reader by itself would take the first of several.
3. No value of a message is in an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from filesink.arguments import choice, column_name, data_frame
from filesink.errors import ConfigError, DataError, FilesinkError, SchemaError
from filesink.row_kind import RowKind
from filesink.spark.changes.schema_events import OnSchemaChange, counted, refused
from filesink.spark.changes.values import Rows, any_of
from filesink.spark.input.exploding import exploded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KIND, ORDER, RESCUED = "row_kind", "row_order", "rescued"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad", "allowSingleQuotes": "false"}


class OnMalformed(Enum):
    """What becomes of a message that is not understood."""

    RAISE = "raise"
    RESCUE = "rescue"


class Envelope(Protocol):
    """One kind of envelope."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def rows(self) -> Rows:
        """The rows inside."""
        ...

    @property
    def json_type(self) -> StructType:
        """What Spark's JSON reader is to make of a message."""
        ...

    def steps(self) -> Sequence[Mapping[str, Column]]:
        """Columns to be added one after the other to ``text`` and ``message``, JSON and what was read of it.

        In the end ``found``: an array of what ``change`` makes; null if the message has no rows that make
        sense. And ``is_event``, never null: whether it changes a table. What is used by several expressions
        is a column of its own: else Spark would compute it, and generate code for it, as often.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where messages are and what they become; see ``filesink.changes.debezium``."""

    value: str
    order: Sequence[str | Column]
    on_malformed: str
    on_schema_change: str


def change(kind: RowKind, row: Column) -> Column:
    """One row with its kind."""
    return F.struct(F.lit(kind.value).alias("kind"), row.alias("row"))


def columns_of(schema: StructType | str) -> StructType:
    """The columns that a user has given.

    Raises:
        ConfigError: ``BAD_VALUE``; these are none.
        SchemaError: ``RESERVED_COLUMN``; one has the name of a column of ours.
    """
    given: object = schema
    if isinstance(given, str):
        try:
            given = DataType.fromDDL(given)
        except PySparkException as error:
            raise ConfigError(
                f"schema cannot be read as columns with their types, such as 'id BIGINT, name STRING': "
                f"{_sentence(error)}",
                code="BAD_VALUE",
            ) from error
    if not isinstance(given, StructType) or not given.fields:
        raise ConfigError(
            "schema must be a StructType, or text such as 'id BIGINT, name STRING', with at least a column; "
            f"got {type(schema).__name__}",
            code="BAD_VALUE",
        )
    taken = next((name for name in given.names if name.lower() in {KIND, ORDER, RESCUED}), None)
    if taken is not None:
        raise SchemaError(
            f"column {taken!r} has the name of a column that tells of the change; rename it at the source",
            code="RESERVED_COLUMN",
        )
    return given


def _sentence(error: PySparkException) -> str:
    """What Spark says of a schema: the first line, without its class of errors and what stands behind it."""
    line = (error.getMessage() or "it says no type").strip().splitlines()[0]
    return re.sub(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE:.*$", "", line)


def change_type(rows: Rows) -> StructType:
    """The type of what ``change`` makes."""
    return StructType([StructField("kind", StringType()), StructField("row", rows.json_type)])


def decoded(df: DataFrame, envelope: Envelope, reading: Reading) -> DataFrame:
    """``df`` with a row for each change in its messages."""
    on_malformed = choice(OnMalformed, reading.on_malformed, "on_malformed")
    on_event = choice(OnSchemaChange, reading.on_schema_change, "on_schema_change")
    data_frame(df, envelope.name.lower())
    text = _text(df, column_name(reading.value, name="value"))
    orders = {f"order{number}": one for number, one in enumerate(_orders(df, reading.order))}
    parsed = StructType([StructField("m", ArrayType(envelope.json_type)), StructField("bad", StringType())])
    wrapped = F.concat(F.lit('{"m":['), F.col("text"), F.lit("]}"))
    df = df.select(text.alias("text"), *(one.alias(name) for name, one in orders.items()))
    df = df.withColumn("parsed", F.from_json(wrapped, parsed, _OPTIONS))
    df = df.withColumn("message", F.when(_is_one(), F.col("parsed.m").getItem(0)))
    for step in envelope.steps():
        df = df.withColumns(dict(step))
    if on_event is OnSchemaChange.IGNORE:
        df = counted(df, F.col("is_event"))
    df = df.withColumn("changes", _changes(envelope, on_malformed, on_event))
    df = exploded(df, "changes", "text", *orders, place="place", entry="change")
    rescues = on_malformed is OnMalformed.RESCUE or on_event is OnSchemaChange.RESCUE
    return df.select(*_output(envelope.rows, list(orders)), *([_rescued()] if rescues else []))


def _is_one() -> Column:
    """Whether all of the text is one value of JSON."""
    return F.col("parsed.bad").isNull() & F.is_valid_utf8("text") & (F.size("parsed.m") == 1)


def _text(df: DataFrame, name: str) -> Column:
    kind = next((one.dataType for one in df.schema if one.name.lower() == name.lower()), None)
    if not isinstance(kind, (StringType, BinaryType)):
        raise SchemaError(
            f"the DataFrame has no column {name!r} of type STRING or BINARY; say where the messages are, "
            "with value=",
            code="UNKNOWN_COLUMN",
        )
    return F.col(quoted(name)).cast("string")


def quoted(name: str) -> str:
    """``name`` as it stands in an expression, whatever it is."""
    return "`" + name.replace("`", "``") + "`"


def _orders(df: DataFrame, order: Sequence[str | Column]) -> list[Column]:
    given: object = order
    if isinstance(given, str) or not isinstance(given, Sequence):  # text is a sequence of letters
        raise ConfigError(
            f"order must be a list of names of columns, or of expressions, got {type(given).__name__}",
            code="BAD_VALUE",
        )
    return [_order(df, one) for one in order]


def _order(df: DataFrame, given: str | Column) -> Column:
    """``given`` as a whole number."""
    name = "" if isinstance(given, Column) else column_name(given, name="order")
    column = given if isinstance(given, Column) else F.col(quoted(name))
    try:
        kind = df.select(column).schema[0].dataType
    except AnalysisException as error:
        what = f"column {name!r}" if name else "what one of its expressions needs"
        raise SchemaError(
            f"order names {what}, which the DataFrame does not have; it has {', '.join(df.columns)}",
            code="UNKNOWN_COLUMN",
        ) from error
    if isinstance(kind, TimestampType):
        return F.unix_micros(column)
    if not isinstance(kind, (IntegralType, StringType)):
        raise SchemaError(
            f"order has a column of type {kind.simpleString()}: what orders changes is a whole number, text "
            "that holds one, or a TIMESTAMP",
            code="TYPE",
        )
    return column.try_cast("bigint")


def _changes(envelope: Envelope, on_malformed: OnMalformed, on_event: OnSchemaChange) -> Column:
    """Never null: a generator would leave out the message."""
    found, kind = F.col("found"), ArrayType(change_type(envelope.rows))
    fits = F.forall(found, lambda one: envelope.rows.fits(one.getField("row")))
    rescued, nothing = F.array(F.lit(None).cast(kind.elementType)), F.array().cast(kind)
    malformed = {
        OnMalformed.RAISE: raising(_malformed(envelope.name)).cast(kind),
        OnMalformed.RESCUE: rescued,
    }
    event = {
        OnSchemaChange.RAISE: raising(refused(envelope.name)).cast(kind),
        OnSchemaChange.IGNORE: nothing,
        OnSchemaChange.RESCUE: rescued,
    }
    return (
        F.when(F.col("text").isNull(), nothing)
        .when(F.col("is_event"), event[on_event])
        .when(found.isNotNull() & fits, found)
        .otherwise(malformed[on_malformed])
    )


def _output(rows: Rows, orders: Sequence[str]) -> list[Column]:
    change = F.col("change")
    found = [*rows.typed(change.getField("row")), change.getField("kind").alias(KIND)]
    if orders:
        whole = F.array(*orders, F.col("place").cast("bigint"))
        found.append(F.when(~any_of([F.col(one).isNull() for one in orders]), whole).alias(ORDER))
    return found


def _rescued() -> Column:
    return F.when(F.col("change").isNull(), F.col("text")).alias(RESCUED)


def _malformed(name: str) -> DataError:
    return DataError(
        f"a message is no change of a row from {name}: it is no JSON object, lacks a row, has one with no "
        "column of schema (case counts), has a value that its column cannot have, or changes no row, such as "
        "a truncate. Nothing became visible. Take such messages out before, or use on_malformed='rescue' and "
        "look at the column 'rescued'",
        code="MALFORMED_CHANGE",
    )


def raising(error: FilesinkError) -> Column:
    """An expression that raises in the task; the driver finds ``error`` again in Spark's text."""
    kind = type(error)
    return F.raise_error(F.lit(f"\n{kind.__module__}.{kind.__qualname__}: {error}\n"))


def kinds_of(words: Mapping[str, RowKind], column: Column) -> Column:
    """The kind for the word in ``column``; raises in the task for a word that is none."""
    known = F.create_map(*(F.lit(one) for word, kind in words.items() for one in (word, kind.value)))
    error = DataError(
        "a word, or a null, says what a row does to a table, and is none of "
        f"{', '.join(words)}. Nothing became visible. Correct it, or take the row out",
        code="ROW_KIND",
    )
    return F.coalesce(F.try_element_at(known, column), raising(error).cast("string"))
