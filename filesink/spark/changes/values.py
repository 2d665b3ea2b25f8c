"""Values of a row inside an envelope: how JSON is to hold them, and what becomes of them.

Rules: what Spark's JSON reader takes as it is meant is read with its own type: whole numbers, FLOAT, DOUBLE
and booleans. It would take a number for a time in seconds, so times and bytes are read as text, and cast by
us. It would round a decimal, and pass over commas in it: these are read as VARIANT, which keeps all digits. A
cast that makes null of a text is told, never passed over; so is one that would leave out digits.
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
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from filesink.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import Column

_WITH_YEAR = r"^\s*[+-]?[0-9]{4,}-"
_WITH_TIME = r"[0-9][T ][0-9:.]*[1-9]"  # and not midnight
_BELOW_MICROS = r"\.[0-9]{6}[0-9]*[1-9]"
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
            self._read(row, one).isNotNull() & self._cast(row, one).isNull()
            for one, read in zip(self.columns, self.json_type, strict=True)
            if one.dataType != read.dataType
        ]
        return ~any_of(lost)

    def is_blank(self, row: Column) -> Column:
        """Whether no column of the row has a value: they may be null, or not be there at all."""
        return ~any_of([row.getField(name).isNotNull() for name in self.columns.names])

    def has_any(self, names: Column) -> Column:
        """Whether any column of the row is among ``names``, those of what has been read."""
        return F.arrays_overlap(names, F.array(*map(F.lit, self.columns.names)))

    def made(self, value: Callable[[str], Column]) -> Column:
        """A row as it is read, of a value for each column."""
        return F.struct(*(value(one.name).alias(one.name) for one in self.columns))

    def _json_type(self, kind: DataType) -> DataType:
        if self.wire is Wire.TEXT or isinstance(kind, (BinaryType, *_TIMES)):
            return StringType()
        return VariantType() if isinstance(kind, DecimalType) else kind

    def _read(self, row: Column, field: StructField) -> Column:
        """A value of a row that has been read, as text if it has to be cast."""
        value = row.getField(field.name)
        is_variant = isinstance(self._json_type(field.dataType), VariantType)
        return F.try_variant_get(value, "$", "string") if is_variant else value

    def _cast(self, row: Column, field: StructField) -> Column:
        value, kind = self._read(row, field), field.dataType
        if isinstance(kind, BinaryType):
            return F.try_to_binary(value, F.lit("base64"))
        if self._json_type(kind) == kind:
            return value
        if isinstance(kind, _TIMES):
            # A number alone would be a year to Spark, and is a count of days at the source.
            left_out = _WITH_TIME if isinstance(kind, DateType) else _BELOW_MICROS
            value = F.when(value.rlike(_WITH_YEAR) & ~value.rlike(left_out), value)
        if isinstance(kind, DecimalType):
            value = F.when(_has_places(value, kind.scale), value)
        return value.try_cast(kind)


def _has_places(text: Column, scale: int) -> Column:
    """Whether a number in a text has no more than so many decimal places, but for zeros."""
    plain = text.rlike(rf"^\s*[+-]?[0-9]*(\.[0-9]{{0,{scale}}}0*)?\s*$")
    whole, fraction, exponent = (
        F.regexp_extract(text, r"^\s*[+-]?([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]+)\s*$", group)
        for group in (1, 2, 3)
    )
    digits = F.concat(whole, fraction)
    zeros = F.length(digits) - F.length(F.regexp_replace(digits, "0+$", ""))
    places = F.length(fraction) - zeros - exponent.try_cast("int")
    return plain | (places <= scale) | digits.rlike("^0+$")


def any_of(conditions: list[Column]) -> Column:
    """Whether one of them holds."""
    return reduce(lambda one, other: one | other, conditions, F.lit(False))  # noqa: FBT003 - a value


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, (ArrayType, MapType, StructType))
