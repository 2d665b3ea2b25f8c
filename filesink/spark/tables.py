"""Many DataFrames, each with the rows of one table, as one DataFrame with a column that names the table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink.arguments import column_name, data_frame
from filesink.errors import ConfigError, SchemaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Tables:
    """DataFrames by the names of their tables, for a sink with ``BucketAssigner.table_bucket_assigner``.

    All are batches or all are streams. A column may be in several, with one type. Columns are matched as
    Spark does, regardless of case.

    Args:
        frames: one for each table.
        column: the column that is to name the table; none of them has it.

    Raises:
        ConfigError: ``BAD_VALUE``.
        SchemaError: ``TABLE_COLUMNS``; two tables have a column of one name and of two types.
    """

    def __init__(self, frames: Mapping[str, DataFrame], *, column: str = "table_name") -> None:
        self.column = column_name(column, name="column")
        given: object = frames
        if not isinstance(given, Mapping) or not given or not all(isinstance(one, str) for one in given):
            raise ConfigError(
                "Tables takes DataFrames by the names of their tables, as in {'shop.orders': orders}",
                code="BAD_VALUE",
            )
        self._frames = {name: data_frame(df, "Tables") for name, df in frames.items()}
        self._check()

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns of each table; for the argument of the same name of the bucket assigner."""
        return {name: list(df.columns) for name, df in self._frames.items()}

    @property
    def df(self) -> DataFrame:
        """The rows of all, with ``column``; null in columns that the table of a row does not have."""
        named = [df.withColumn(self.column, F.lit(name)) for name, df in self._frames.items()]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), named)

    def _check(self) -> None:
        known: dict[str, tuple[str, str]] = {}
        for name, df in self._frames.items():
            for field in df.schema:
                kind = field.dataType.simpleString()
                first, of_first = known.setdefault(field.name.lower(), (name, kind))
                if kind != of_first:
                    raise SchemaError(
                        f"column {field.name!r} is {of_first} in table {first!r} and {kind} in {name!r}, and "
                        "one pass has one type for it: cast or rename it",
                        code="TABLE_COLUMNS",
                    )
        if self.column.lower() in known:
            raise ConfigError(
                f"table {known[self.column.lower()][0]!r} has a column {self.column!r}, which is to name the "
                "table: give column= another name",
                code="BAD_VALUE",
            )
