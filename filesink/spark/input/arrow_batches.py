"""How many bytes of rows cross to Python at a time.

A batch ends after ``maxRecordsPerBatch`` rows, or when its buffers have ``maxBytesPerBatch``: for that
Spark adds up the buffers of all columns after every row, which takes 30 % of all CPU time where rows have
16 columns. And 10,000 rows of 60 KiB, in one batch, are more than a JVM of Spark's default size can hold.
So a long row *counts for several*: empty rows follow it, which are dropped again in Python. Where rows are
short, and most are, there are none, and nothing is added up. But the plan gets longer by it: 20 ms for each
micro-batch, in which Spark adds up 50,000 rows.

What is inside of other values, arrays above all, cannot be measured so cheaply; there Spark adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    UserDefinedType,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: Bytes of values that a batch may have; then comes one more row, however long it is.
MOST = 16 << 20
_NO_LIMIT = "2147483647"
_USUAL_ROWS = 10_000  # of a session that has not chosen
_INSIDE = (ArrayType, MapType, UserDefinedType)
_FIXED = 16  # bytes; of the widest value that has a fixed length
_FILLER = "__filesink_filler"
_FEW = 2  # values in a row; to add up what they take costs less than to measure them
_FEW_ROWS = 50_000  # to add up 16 columns of so many takes as long as to plan the measuring


@dataclass(frozen=True, slots=True)
class Crossing:
    """How the rows of one job cross.

    Attributes:
        rows: the session's limit for a batch; 0 or less for none.
        values: how many values of fixed length a row has.
        few: whether rows are likely to be so few that a longer plan costs more than it saves.
        adds_up: whether Spark adds up bytes; if not, long rows count for several.
    """

    rows: int
    values: int
    few: bool
    adds_up: bool

    @classmethod
    def of(cls, df: DataFrame, *, rows_before: int | None = None) -> Crossing:
        """``rows_before``: of the micro-batch before, as this one is likely to have; ``None`` if not known.

        Spark adds up where a session has chosen more rows, or any number; where rows have few values; and
        where a micro-batch has few rows, as to plan the other way takes Spark longer than to add them up.
        """
        rows, values = int(str(df.sparkSession.conf.get(ROWS))), _values(df.schema)
        few = rows_before is not None and rows_before <= _FEW_ROWS
        has_long = any(_sizes(df.schema, ""))
        is_cheap = values <= _FEW or few
        adds_up = (is_cheap and has_long) or _has_inside(df.schema) or not 0 < rows <= _USUAL_ROWS
        return cls(rows=rows, values=values, few=few, adds_up=adds_up)

    def limits(self) -> dict[str, str]:
        """The properties of a job whose batches are for these rows.

        Tasks read the settings from the job's local properties, and what a session sets itself goes
        before them; so nobody else's jobs see a change.
        """
        limits = {BYTES: str(MOST) if self.adds_up else _NO_LIMIT}
        rows = max(1, MOST // (_FIXED * self.values))
        if rows < self.rows:
            limits[ROWS] = str(rows)
        return limits

    def weighed(self, df: DataFrame, function: Batches) -> tuple[DataFrame, Batches]:
        """``df`` with empty rows behind the long ones, and ``function`` for its batches, which sees none.

        Both are what they were where no value is text or binary, and where Spark adds up.
        """
        sizes = [size for field in df.schema for size in _sizes(field.dataType, _quoted(field.name))]
        if not sizes or self.adds_up:
            return df, function
        size = " + ".join(f"coalesce(bigint(octet_length({value})), 0L)" for value in sizes)
        short = MOST // self.rows
        weight = f"int(least(({size}) div {short}, {self.rows}))"
        fillers = f"if({size} < {short}, null, concat(array(false), array_repeat(true, {weight})))"
        columns = [_emptied(field.dataType, _quoted(field.name)) for field in df.schema]
        weighed = df.selectExpr("*", f"explode_outer({fillers}) AS {_FILLER}").selectExpr(*columns, _FILLER)
        return weighed, _without_fillers(function, [field.nullable for field in df.schema])


def _has_inside(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_inside(field.dataType) for field in kind.fields)
    return isinstance(kind, _INSIDE) or kind.typeName() in {"variant", "geometry", "geography"}


def _values(kind: DataType) -> int:
    """How many values of fixed length there are in one of this type."""
    return sum(_values(field.dataType) for field in kind.fields) or 1 if isinstance(kind, StructType) else 1


def _sizes(kind: DataType, value: str) -> Iterator[str]:
    """The texts and binaries in ``value``, as SQL expressions."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _sizes(field.dataType, f"{value}.{_quoted(field.name)}")
    elif isinstance(kind, StringType | BinaryType):
        yield value


def _emptied(kind: DataType, column: str) -> str:
    """A column that is null in a filler if it has what may be long."""
    return f"if({_FILLER}, null, {column}) AS {column}" if any(_sizes(kind, column)) else column


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _without_fillers(function: Batches, nullable: Sequence[bool]) -> Batches:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(_true_rows(batch, nullable) for batch in batches)

    return run


def _true_rows(batch: pa.RecordBatch, nullable: Sequence[bool]) -> pa.RecordBatch:
    fillers = batch.column(len(nullable))
    fields = [batch.schema.field(place).with_nullable(may) for place, may in enumerate(nullable)]
    schema = pa.schema(fields).with_metadata(batch.schema.metadata)
    rows = pa.RecordBatch.from_arrays(batch.columns[:-1], schema=schema)
    if fillers.null_count == len(fillers):
        return rows
    is_filler: pa.BooleanArray = pc.fill_null(fillers, False)  # type: ignore[assignment,type-var] # noqa: FBT003
    return rows.filter(pc.invert(is_filler))
