"""Decimals that cross to Python as whole numbers, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DecimalType, StructField, StructType

from filesink import BucketAssigner, FileSink
from filesink.spark.input.short_decimals import as_numbers, decimals
from formats import ParquetWriterFactory


@given(st.data())
def test_numbers_become_the_decimals_they_stand_for(data: st.DataObject) -> None:
    """At any precision, scale and sign, with nulls, and in a slice: as Arrow makes them of decimals."""
    precision = data.draw(st.integers(1, 18))
    scale = data.draw(st.integers(0, precision))
    most = 10**precision - 1
    values = data.draw(st.lists(st.none() | st.integers(-most, most)))
    start = data.draw(st.integers(0, len(values)))
    kind = pa.decimal128(precision, scale)
    made = decimals(pa.array(values, pa.int64())[start:], kind)
    made.validate(full=True)
    wanted = [None if value is None else Decimal(value).scaleb(-scale) for value in values[start:]]
    assert made.equals(pa.array(wanted, kind))
    assert made.null_count == wanted.count(None)


def _seen(df: DataFrame, *, crossing: bool) -> tuple[pa.Schema, list[dict[str, Any]], list[str]]:
    """The schema and the rows that a task gets, and the types that cross."""

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            yield pa.RecordBatch.from_pydict({"table": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    df, function = as_numbers(df, keep) if crossing else (df, keep)
    rows = df.coalesce(1).mapInArrow(function, "table binary").collect()
    tables = [pa.ipc.open_stream(row[0]).read_all() for row in rows]
    return tables[0].schema, pa.concat_tables(tables).to_pylist(), [kind for _, kind in df.dtypes]


def _edges(kind: DecimalType) -> list[Decimal | None]:
    most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
    least = Decimal(1).scaleb(-kind.scale)
    return [most, -most, Decimal(0), least, -least, None]


@pytest.mark.spark
def test_a_task_sees_what_it_would_see_without_it(spark: SparkSession) -> None:
    """Every precision, at its least and largest scale and between; others, and nested ones, as they are."""
    kinds = [DecimalType(digits, scale) for digits in range(1, 21) for scale in {0, digits // 2, digits}]
    fields = [StructField(f"d{place}", kind, metadata={"comment": "x"}) for place, kind in enumerate(kinds)]
    rows = list(zip(*map(_edges, kinds), strict=True))
    df = spark.createDataFrame(rows, StructType(fields)).selectExpr(
        "*", "1.5BD AS never_null", "named_struct('a', d3, 'b', array(d4)) AS nested", "'x' AS text"
    )
    schema, seen, crossed = _seen(df, crossing=True)
    usual, rows_as_usual, _ = _seen(df, crossing=False)
    assert schema.equals(usual, check_metadata=True)
    assert seen == rows_as_usual
    short = [place for place, kind in enumerate(kinds) if kind.precision <= 18]
    assert {crossed[place] for place in short} == {"bigint"}  # in each supported version of Spark
    assert crossed[len(short) : len(kinds)] == [kind.simpleString() for kind in kinds[len(short) :]]


@pytest.mark.spark
def test_a_decimal_of_another_scale_than_its_column_is_not_taken_by_its_digits(spark: SparkSession) -> None:
    """Spark brings it to the scale of its column when it makes a row, or makes it null; so does this."""
    jvm: Any = spark.sparkContext._jvm
    expressions, types = "org.apache.spark.sql.catalyst.expressions", "org.apache.spark.sql.types"

    def literal(digits: str, precision: int, scale: int) -> Column:
        kind = getattr(jvm, f"{types}.DecimalType")(precision, scale)
        value = getattr(jvm, f"{types}.Decimal").apply(digits)
        made = getattr(jvm, f"{expressions}.Literal")(value, kind)
        return Column(getattr(jvm, "org.apache.spark.sql.classic.ExpressionUtils").column(made))

    df = spark.range(1).select(literal("1.5", 10, 4).alias("fine"), literal("12345", 6, 2).alias("too_long"))
    _, seen, crossed = _seen(df, crossing=True)
    assert seen == [{"fine": Decimal("1.5000"), "too_long": None}]
    assert crossed == ["bigint", "bigint"]


@pytest.mark.spark
def test_rows_without_decimals_cross_as_they_did(spark: SparkSession) -> None:
    """The plan gets no longer for them."""
    df = spark.range(1).selectExpr("id", "CAST(1 AS DECIMAL(19, 2)) AS long", "array(1.5BD) AS inside")
    assert as_numbers(df, iter) == (df, iter)


@pytest.mark.spark
def test_files_and_buckets_have_the_decimals(spark: SparkSession, tmp_path: Path) -> None:
    """A bucket by a decimal has its name, a name with a dot stays, and what is read is what was written."""
    df = spark.range(2000).selectExpr(
        "id", "CAST(id % 3 - 1 AS DECIMAL(5, 2)) AS part", "CAST(-id / 7 AS DECIMAL(18, 6)) AS `a.b`"
    )
    by_part = BucketAssigner.partition_bucket_assigner("part")
    builder = FileSink.for_bulk_format(str(tmp_path), ParquetWriterFactory()).with_bucket_assigner(by_part)
    builder.build().write(df)
    found = pa.concat_tables(pq.read_table(file, partitioning=None) for file in tmp_path.glob("**/*.parquet"))
    assert sorted(path.name for path in tmp_path.glob("part=*")) == ["part=-1.00", "part=0.00", "part=1.00"]
    wanted = df.drop("part").toArrow()
    assert found.field("a.b").type == pa.decimal128(18, 6)
    assert found.sort_by("id").to_pylist() == wanted.sort_by("id").to_pylist()
    assert found.schema.names == wanted.schema.names
