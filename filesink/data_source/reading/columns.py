"""Columns of files as those of a DataFrame, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql.pandas import types

from filesink.errors import SchemaError
from filesink.spark.input.schema import arrow_schema
from formats import columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_WIDER = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20)}
_NEAREST = ((pt.is_float16, pa.float32()), (pt.is_date64, pa.date32()), (pt.is_time32, pa.time64("us")))


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of a DataFrame that holds the records of files with ``schema``. All may be null.

    Raises:
        SchemaError: ``TYPE``; Spark has nothing like a type of theirs. ``DUPLICATE_COLUMN``.
    """
    twin = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twin is not None:
        raise SchemaError(
            f"the files have more than one column {twin!r}: read them with a schema that has it once",
            code="DUPLICATE_COLUMN",
        )
    fields = [columns.nullable(field, _in_spark) for field in schema]
    try:
        return types.from_arrow_schema(pa.schema(fields))
    except PySparkException as error:
        raise SchemaError(
            f"Spark has no type for a column of the files: {error}. Read them with a schema without it",
            code="TYPE",
        ) from error


def batch_schema(schema: StructType) -> pa.Schema:
    """The schema of the batches that Spark takes as rows of ``schema``; see ``arrow_schema``."""
    return arrow_schema(schema).remove_metadata()


def _in_spark(kind: Any) -> Any:
    """The nearest type that Spark has, and holds all values of ``kind``."""
    kind = columns.without_dictionary(kind)
    if pt.is_unsigned_integer(kind):
        return _WIDER[kind.bit_width]
    if pt.is_decimal256(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return next((wider for is_kind, wider in _NEAREST if is_kind(kind)), kind)
