"""How many bytes of rows cross to Python at a time.

With ``spark.sql.execution.arrow.maxBytesPerBatch`` below 2147483647 Spark adds up the buffers of all
columns after every row, which takes 30 % of all CPU time where rows have 16 columns. Where values are
short the number of rows bounds a batch well enough, as it did in Spark before 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, UserDefinedType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
_NONE = "2147483647"
_MAY_BE_LONG = (ArrayType, BinaryType, MapType, UserDefinedType)


@contextmanager
def bounded_by_rows(df: DataFrame) -> Iterator[None]:
    """Jobs that this thread runs inside have no limit of bytes, unless the user's session sets one.

    Tasks read the setting from the job's local properties, and what a session sets itself goes
    before them; so nobody else's jobs see a change. Rows with columns that are made for long
    values (binary, arrays, maps, …) keep Spark's limit.
    """
    if may_be_long(df.schema):
        yield
        return
    context = df.sparkSession.sparkContext
    before = context.getLocalProperty(LIMIT)
    context.setLocalProperty(LIMIT, _NONE)
    try:
        yield
    finally:
        context.setLocalProperty(LIMIT, cast("str", before))  # None takes it away


def may_be_long(kind: DataType) -> bool:
    """Whether single values of this type are expected to have many kilobytes."""
    if isinstance(kind, StructType):
        return any(may_be_long(field.dataType) for field in kind.fields)
    return isinstance(kind, _MAY_BE_LONG) or kind.typeName() in {"variant", "geometry", "geography"}
