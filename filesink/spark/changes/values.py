"""Values of a row inside an envelope: how JSON is to hold them, and what becomes of them.

Rules: what Spark's JSON reader takes as it is meant is read with its own type: numbers, in all digits,
and booleans. It would take a number for a time in seconds, so times and bytes are read as text, and cast by
us. A cast that makes null of a text is told, never passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from filesink.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import Column

_WITH_YEAR = r"^\s*[+-]?[0-9]{4,}-"
_TIMES = (DateType, TimestampType, TimestampNTZType)


class Wire(Enum):
    """How an envelope writes values: as JSON has them, or all of them as text."""

    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows inside of an envelope.

    Attributes:
        columns: names and types that users get.
        wire: how the envelope writes values.
    """

    columns: StructType
    wire: Wire

    def __post_init__(self) -> None:
        taken = (NumericType, BooleanType, StringType, BinaryType, *_TIMES)
        for field in self.columns:
            if not isinstance(field.dataType, taken):
                inside = ", and from_json(…) afterwards" if _is_nested(field.dataType) else ", and cast it"
                raise SchemaError(
                    f"column {field.name!r} is {field.dataType.simpleString()}, which the rows of change "
                    f"events cannot be read as: say STRING{inside}",
                    code="TYPE",
                )

    @property
    def json_type(self) -> StructType:
        """What Spark's JSON reader is to make of a row."""
        return StructType([StructField(one.name, self._json_type(one.dataType)) for one in self.columns])

    @property
    def texts(self) -> list[str]:
        """Columns that are read as text."""
        return [one.name for one in self.json_type if isinstance(one.dataType, StringType)]

    def typed(self, row: Column) -> list[Column]:
        """The columns of a row that has been read."""
        return [self._cast(row, one).alias(one.name) for one in self.columns]

    def fits(self, row: Column) -> Column:
        """Whether no value of the row is lost by ``typed``."""
        lost = [
            row.getField(one.name).isNotNull() & self._cast(row, one).isNull()
            for one, read in zip(self.columns, self.json_type, strict=True)
            if one.dataType != read.dataType
        ]
        return ~any_of(lost)

    def made(self, value: Callable[[str], Column]) -> Column:
        """A row as it is read, of a value for each column."""
        return F.struct(*(value(one.name).alias(one.name) for one in self.columns))

    def _json_type(self, kind: DataType) -> DataType:
        as_text = self.wire is Wire.TEXT or isinstance(kind, (BinaryType, *_TIMES))
        return StringType() if as_text else kind

    def _cast(self, row: Column, field: StructField) -> Column:
        value = row.getField(field.name)
        if isinstance(field.dataType, BinaryType):
            return F.try_to_binary(value, F.lit("base64"))
        if self._json_type(field.dataType) == field.dataType:
            return value
        if isinstance(field.dataType, _TIMES):
            # A number alone would be a year to Spark, and is a count of days at the source.
            value = F.when(value.rlike(_WITH_YEAR), value)
        return value.try_cast(field.dataType)


def any_of(conditions: list[Column]) -> Column:
    """Whether one of them holds."""
    return reduce(lambda one, other: one | other, conditions, F.lit(False))  # noqa: FBT003 - a value


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, (ArrayType, MapType, StructType))
