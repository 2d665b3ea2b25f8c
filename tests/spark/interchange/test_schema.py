"""What Spark's columns are to Arrow, and what of them Arrow loses; without a JVM."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructType,
    YearMonthIntervalType,
)

from filesink.api import SHORT_INTERVAL
from filesink.data_source.source import FileSinkDataSource
from filesink.errors import SchemaError
from filesink.parts.file_format import BulkFormat, RowFormat, check_crossing, check_schema
from filesink.spark.input.schema import arrow_schema, check_twins
from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    ExcelWriterFactory,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    RowEncoder,
    XmlWriterFactory,
)
from formats.per_row import PerRowEncoder

DAYS = DayTimeIntervalType(DayTimeIntervalType.DAY)
TO_SECOND = DayTimeIntervalType()


class Bytes(RowEncoder):
    """A user's format, for which an interval is a timedelta."""

    def encode(self, row):
        """Not called."""
        raise NotImplementedError


def of(kind: DataType) -> StructType:
    """Two columns, of which the second is of ``kind``."""
    return StructType().add("id", IntegerType()).add("d", kind)


def noted(kind: DataType) -> str | None:
    """What Arrow is told of the column beside its type."""
    found = (arrow_schema(of(kind)).field("d").metadata or {}).get(SHORT_INTERVAL)
    return None if found is None else found.decode()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (TO_SECOND, None),
        (StringType(), None),
        (DAYS, "'d' of type INTERVAL DAY"),
        (DayTimeIntervalType(1, 3), "'d' of type INTERVAL HOUR TO SECOND"),
        (ArrayType(DAYS), "'d[]' of type INTERVAL DAY"),
        (MapType(DAYS, IntegerType()), None),  # a key is microseconds, whatever its type
        (MapType(StringType(), of(DAYS)), "'d.value.d' of type INTERVAL DAY"),
    ],
    ids=str,
)
def test_intervals_keep_what_arrow_loses_of_them(kind: DataType, said: str | None) -> None:
    """All of them are one type there."""
    assert noted(kind) == said


@pytest.mark.parametrize(
    "form",
    [
        RowFormat(Encoder.json_lines()),
        RowFormat(Encoder.csv()),
        RowFormat(Encoder.simple_string_encoder()),
        BulkFormat(CompressWriterFactory(encoder=Encoder.csv())),
        BulkFormat(XmlWriterFactory()),
        BulkFormat(ExcelWriterFactory()),
    ],
    ids=lambda form: str(form)[:60],
)
def test_text_of_intervals_that_spark_reads_as_null_is_not_written(form: RowFormat | BulkFormat) -> None:
    """``INTERVAL '3' DAY`` would become ``INTERVAL '3 00:00:00' DAY TO SECOND``."""
    check_crossing(form, arrow_schema(of(TO_SECOND)))
    with pytest.raises(SchemaError, match="column 'd' of type INTERVAL DAY would be written as") as error:
        check_crossing(form, arrow_schema(of(DAYS)))
    assert error.value.code == "TYPE"


@pytest.mark.parametrize(
    "form",
    [
        BulkFormat(ParquetWriterFactory()),
        RowFormat(Encoder.avro()),
        RowFormat(PerRowEncoder(Bytes())),
        BulkFormat(CompressWriterFactory(encoder=Encoder.avro())),
    ],
    ids=lambda form: str(form)[:60],
)
def test_intervals_that_stay_numbers_are_written(form: RowFormat | BulkFormat) -> None:
    """They mean what they did."""
    check_crossing(form, arrow_schema(of(DAYS)))


def test_the_data_source_refuses_them(tmp_path: Path) -> None:
    """Every column of it crosses to Python; nothing is made."""
    options = {"path": str(tmp_path / "out"), "format": "json", "timeZone": "UTC"}
    with pytest.raises(SchemaError, match="column 'd' of type INTERVAL DAY"):
        FileSinkDataSource(options).writer(of(DAYS), overwrite=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ArrayType(NullType(), containsNull=False), "type array<void> holds VOID that is never null"),
        (MapType(NullType(), NullType()), "type map<void,void> holds VOID that is never null"),
        (YearMonthIntervalType(), "type interval year to month to Python: cast or drop it"),
    ],
    ids=str,
)
def test_what_arrow_has_no_type_for_names_its_column(kind: DataType, said: str) -> None:
    """An error of ours, whoever raised it."""
    with pytest.raises(SchemaError, match=said) as error:
        arrow_schema(of(kind))
    assert "column 'd' of type" in error.value.message
    assert error.value.code == "TYPE"


INNER = StructType().add("a", IntegerType()).add("A", IntegerType())


def frame(kind: DataType, *, case_sensitive: str = "false") -> Any:
    """A DataFrame as far as its names go; the second column is of ``kind``."""
    session = SimpleNamespace(conf={"spark.sql.caseSensitive": case_sensitive})
    return SimpleNamespace(schema=of(kind), sparkSession=session)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (INNER, "d."),
        (ArrayType(INNER), "d[]."),
        (MapType(StringType(), INNER), "d.value."),
        (MapType(INNER, StringType()), "d.key."),
        (StructType().add("x", ArrayType(of(INNER))), "d.x[].d."),
    ],
    ids=str,
)
def test_members_that_are_one_to_spark_are_refused(kind: DataType, path: str) -> None:
    """At every depth, as its readers do; with the very rule of the session."""
    with pytest.raises(SchemaError, match=f"{re.escape(repr(path + 'a'))} and '{re.escape(path)}A'") as error:
        check_twins(frame(kind))
    assert error.value.code == "DUPLICATE_COLUMN"
    check_twins(frame(kind, case_sensitive="true"))


def test_names_may_recur_in_other_structs() -> None:
    """Only names side by side are taken for one another."""
    check_twins(frame(StructType().add("D", of(StringType())).add("id", ArrayType(of(StringType())))))


@pytest.mark.parametrize(
    "form",
    [
        BulkFormat(ParquetWriterFactory()),
        BulkFormat(OrcBulkWriterFactory()),
        BulkFormat(ArrowWriterFactory()),
        BulkFormat(AvroWriterFactory()),
        RowFormat(Encoder.avro()),
        RowFormat(Encoder.json_lines()),
    ],
    ids=lambda form: str(form)[:60],
)
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda inner: inner, "s.a"),
        (pa.list_, "s[].a"),
        (lambda inner: pa.map_(pa.string(), inner), "s.value.a"),
    ],
    ids=["struct", "list", "map"],
)
def test_members_of_one_name_are_refused_by_every_format(
    form: RowFormat | BulkFormat, wrap: Callable[[pa.DataType], pa.DataType], path: str
) -> None:
    """A reader would take the value of one for that of the other."""
    twins = pa.struct([("a", pa.int32()), ("b", pa.int32()), ("a", pa.int32())])
    with pytest.raises(SchemaError, match=f"column {re.escape(repr(path))} occurs more than once") as error:
        check_schema(form, pa.schema([("s", wrap(twins))]))
    assert error.value.code == "DUPLICATE_COLUMN"
    once = pa.struct([("a", pa.int32()), ("s", pa.struct([("a", pa.int32())]))])
    check_schema(form, pa.schema([("s", wrap(once)), ("a", pa.int32())]))


def test_a_point_in_a_name_is_no_path() -> None:
    """A column may be called as a member of another is told."""
    members = pa.struct([("a", pa.int32())])
    check_schema(BulkFormat(ParquetWriterFactory()), pa.schema([("s", members), ("s.a", pa.int32())]))
