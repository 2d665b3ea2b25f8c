"""Decimals of at most 18 digits cross to Python as whole numbers; whoever looks sees decimals.

Spark holds such a decimal as a ``bigint``, but makes a ``BigDecimal`` of it for Arrow, value by value, which
takes a third of all CPU time where rows have a few of them. Its *unscaled value* costs nothing, and Arrow's
128 bits are that number with its sign in front.

SQL has no name for the unscaled value, so the expression is made in Java. A Spark without these classes sends
decimals as they are: the same values, only later. Longer decimals and those inside of other values do so
always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import Column
from pyspark.sql.types import DataType, DecimalType, StructField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_MOST_DIGITS = 18  # that Spark holds in a bigint
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_NULL_IF_TOO_LONG = True
_BETWEEN = "org.apache.spark.sql.classic.ExpressionUtils"  # from columns to expressions and back


def as_numbers(df: DataFrame, function: Batches) -> tuple[DataFrame, Batches]:
    """``df`` with numbers for its short decimals, and ``function`` for its batches, which sees the decimals.

    Both are what they were where there are none. Names must be such as PySpark finds, see ``by_place``.
    """
    short = {place: field for place, field in enumerate(df.schema.fields) if _is_short(field.dataType)}
    if not short:
        return df, function
    try:
        numbers = {field.name: _unscaled(df, field) for field in short.values()}
    except (TypeError, Py4JError):  # py4j's, for a class or a constructor that this Spark has not
        return df, function
    return df.withColumns(numbers), _with_decimals(function, short)


def _is_short(kind: DataType) -> bool:
    return isinstance(kind, DecimalType) and kind.precision <= _MOST_DIGITS


def _unscaled(df: DataFrame, field: StructField) -> Column:
    """A column's unscaled value, which is null where Spark would send a null. What is noted of it stays."""
    jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001 - see the head of this file
    between = getattr(jvm, _BETWEEN)
    value = between.expression(df[field.name]._jc)  # noqa: SLF001
    # An expression may give a decimal of another scale. As when Spark writes a row, it is brought to its own.
    exact = getattr(jvm, f"{_EXPRESSIONS}.CheckOverflow")(value, value.dataType(), _NULL_IF_TOO_LONG)
    number = Column(between.column(getattr(jvm, f"{_EXPRESSIONS}.UnscaledValue")(exact)))
    return number.alias(field.name, metadata=field.metadata) if field.metadata else number


def _with_decimals(function: Batches, short: Mapping[int, StructField]) -> Batches:
    fields = {
        place: (pa.decimal128(field.dataType.precision, field.dataType.scale), field.nullable)
        for place, field in short.items()
        if isinstance(field.dataType, DecimalType)
    }

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(_restored(batch, fields) for batch in batches)

    return run


def _restored(batch: pa.RecordBatch, fields: Mapping[int, tuple[pa.DataType, bool]]) -> pa.RecordBatch:
    schema, columns = batch.schema, batch.columns
    for place, (kind, nullable) in fields.items():
        schema = schema.set(place, schema.field(place).with_type(kind).with_nullable(nullable))
        columns[place] = decimals(columns[place], kind)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def decimals(numbers: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The decimals with these unscaled values, of type ``int64``; a null stays one."""
    if not len(numbers):
        return pa.array([], kind)
    valid, data = numbers.buffers()
    low = np.frombuffer(memoryview(data), np.int64, numbers.offset + len(numbers))  # type: ignore[arg-type]
    halves = np.empty((len(low), 2), np.int64)  # of each decimal, the lower one first
    halves[:, 0] = low
    np.right_shift(low, 63, out=halves[:, 1])  # the sign, 64 times
    buffers = [valid, pa.py_buffer(halves)]  # type: ignore[arg-type] # an array has a buffer
    return pa.Array.from_buffers(kind, len(numbers), buffers, numbers.null_count, numbers.offset)
