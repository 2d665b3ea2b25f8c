"""The Arrow schema that batches of a DataFrame will have; differs a little between versions of Spark."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.pandas import types

from filesink.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType, *, time_zone: str = "UTC") -> pa.Schema:
    """Schema of the record batches in which Spark hands rows of ``schema`` to a task.

    Raises:
        SchemaError: ``TYPE``; Spark cannot send a column to Python.
    """
    convert: Any = types.to_arrow_schema
    # 4.3 takes the session's zone; before, every timestamp was given UTC.
    zone = {"timezone": time_zone} if "timezone" in inspect.signature(convert).parameters else {}
    try:
        converted: pa.Schema = convert(schema, **zone)
    except PySparkException as error:
        raise SchemaError(
            f"Spark cannot hand this DataFrame to Python: {error}. Cast or drop the column", code="TYPE"
        ) from error
    return converted
