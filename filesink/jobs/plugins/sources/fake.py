"""``FakeSource``: rows that are made up, or written into the job file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from filesink.jobs.model.column_types import ddl, quoted
from filesink.jobs.model.options import Options, option
from filesink.jobs.model.schema import Schema
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Source
from filesink.jobs.plugins.sources.fake_columns import Made

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Row(Options):
    """A row as the file has it."""

    kind: Annotated[
        Literal["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"],
        BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given),
    ] = option("INSERT", doc="Rows of every kind are rows: sinks here append.")
    fields: Any = option(doc="Values in the order of the columns, or by name.")


def _check_rows(schema: Schema, rows: Sequence[Row]) -> None:
    width = len(schema.arrow)
    for number, row in enumerate(rows, start=1):
        if isinstance(row.fields, list) and len(row.fields) != width:
            raise PydanticCustomError(
                "row",
                "row {number} has {values} values, and the schema {width} columns",
                {"number": number, "values": len(row.fields), "width": width},
            )


class FakeTable(Options):
    """One table of made-up rows."""

    without_effect = {
        "split.num": "Spark cuts the rows by parallelism",
        "split.read-interval": "a batch is made at once, a stream by checkpoint.interval",
    }

    schema_: Schema = option(doc="Its columns.", words=("schema",))
    rows_number: int = option(
        5, doc="How many rows; of a stream, in each micro-batch.", unit="rows", words=("row.num",), ge=0
    )
    rows: tuple[Row, ...] = option((), doc="These rows, in place of made-up ones.")
    string_length: int = option(
        5, doc="Of texts.", unit="characters", words=("string.length",), ge=0, le=10_000
    )
    bytes_length: int = option(
        5, doc="Of binary values.", unit="bytes", words=("bytes.length",), ge=0, le=10_000
    )
    array_size: int = option(5, doc="Of lists.", unit="elements", words=("array.size",), ge=0, le=10_000)
    map_size: int = option(5, doc="Of maps.", unit="elements", words=("map.size",), ge=0, le=10_000)

    @model_validator(mode="after")
    def _as_many_values_as_columns(self) -> FakeTable:
        _check_rows(self.schema_, self.rows)
        return self


class FakeOptions(PluginOptions, FakeTable):
    """One table, or several by ``tables_configs``."""

    schema_: Schema | None = option(None, doc="Its columns.", words=("schema",))  # type: ignore[assignment] # tables have it
    tables: tuple[FakeTable, ...] = option((), doc="Several tables.", words=("tables_configs",))

    @model_validator(mode="after")
    def _as_many_values_as_columns(self) -> FakeOptions:
        if (self.schema_ is None or not self.schema_.has_columns) == (not self.tables):
            raise PydanticCustomError("schema", "needs 'schema' or 'tables_configs', and not both")
        if self.schema_ is not None:
            _check_rows(self.schema_, self.rows)
        return self


class FakeSource(Source):
    """Rows for tests."""

    name = "FakeSource"
    options_type = FakeOptions
    options: FakeOptions

    def read(self, run: Run) -> Frames:
        """See ``Source.read``."""
        tables: tuple[FakeTable, ...] = self.options.tables or (self.options,)
        names = [
            table.schema_.table or (f"fake-{number}" if self.options.tables else "")
            for number, table in enumerate(tables, 1)
        ]
        return {name: _frame(table, run) for name, table in zip(names, tables, strict=True)}


def _frame(table: FakeTable, run: Run) -> DataFrame:
    if table.rows:
        return _written(table, run)
    made = Made(
        text_length=table.string_length,
        bytes_length=table.bytes_length,
        array_size=table.array_size,
        map_size=table.map_size,
    )
    if run.env.is_stream:
        rate = run.spark.readStream.format("rate-micro-batch").option(
            "rowsPerBatch", max(table.rows_number, 1)
        )
        numbers = rate.option("numPartitions", run.parallelism).load().selectExpr("value AS id")
    else:
        numbers = run.spark.range(0, table.rows_number, 1, run.parallelism)
    return numbers.selectExpr(*made.columns(table.schema_.arrow))


def _written(table: FakeTable, run: Run) -> DataFrame:
    """Rows of the file, by Spark's own reader of JSON: texts become times and numbers as its casts say."""
    schema = table.schema_.arrow
    objects = [
        row.fields if isinstance(row.fields, Mapping) else dict(zip(schema.names, row.fields, strict=True))
        for row in table.rows
    ]
    kind = ", ".join(f"{quoted(field.name)}: {ddl(field.type)}" for field in schema)
    text = json.dumps(objects, ensure_ascii=True)
    return run.spark.sql(f"SELECT inline(from_json(:rows, 'array<struct<{kind}>>'))", {"rows": text})
