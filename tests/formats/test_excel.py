"""Workbooks, read by openpyxl."""

from __future__ import annotations

import gc
import io
from datetime import UTC, date, datetime
from decimal import Decimal

import openpyxl
import pyarrow as pa
import pytest

from formats import ExcelWriterFactory, FormatError


def sheets_of(factory, *batches, schema=None):
    """Sheets of a finished file by their names, row by row."""
    output = io.BytesIO()
    writer = factory.create(output, schema or batches[0].schema)
    for batch in batches:
        writer.write(batch)
        writer.flush()
    assert output.getvalue() == b""
    writer.finish()
    book = openpyxl.load_workbook(io.BytesIO(output.getvalue()))
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


def test_values_are_cells_of_their_kind():
    """Numbers, truth values, days and times; null is an empty cell."""
    moment = datetime(2024, 7, 1, 12, 30, 15, 250_000, UTC)
    batch = pa.record_batch(
        {
            "t": pa.array(["=1+1", "x"]),
            "i": pa.array([7, None]),
            "f": pa.array([0.1, None]),
            "m": pa.array([Decimal("1.50"), None]),
            "b": pa.array([True, None]),
            "d": pa.array([date(2024, 2, 29), None]),
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
        }
    )
    (rows,) = sheets_of(ExcelWriterFactory(), batch).values()
    assert rows[0] == batch.schema.names
    day = datetime(2024, 2, 29)  # noqa: DTZ001 - a cell has no zone
    assert rows[1] == ["=1+1", 7, 0.1, 1.5, True, day, moment.replace(tzinfo=None)]
    assert rows[2] == ["x", *[None] * 6]


def test_what_excel_would_damage_is_text():
    """Every digit of an exact number, NaN, and days that Excel does not have."""
    batch = pa.record_batch(
        {
            "i": [2**53 + 1, 10**15],
            "f": [float("nan"), float("-inf")],
            "d": [date(1900, 2, 28), date(1, 1, 1)],
        }
    )
    (rows,) = sheets_of(ExcelWriterFactory(), batch).values()
    assert rows[1:] == [["9007199254740993", "NaN", "1900-02-28"], [10**15, "-Infinity", "0001-01-01"]]


def test_a_full_sheet_is_followed_by_another():
    """Each has the header, and no row is lost."""
    factory = ExcelWriterFactory(sheet_name="data", sheet_max_rows=3)
    sheets = sheets_of(factory, pa.record_batch({"n": [1, 2, 3]}), pa.record_batch({"n": [4, 5]}))
    assert sheets == {"data": [["n"], [1], [2]], "data 2": [["n"], [3], [4]], "data 3": [["n"], [5]]}


def test_no_rows_are_a_header():
    """An empty file is a workbook too."""
    assert sheets_of(ExcelWriterFactory(), schema=pa.schema([("n", pa.int32())])) == {"Sheet": [["n"]]}


def test_a_writer_that_is_dropped_writes_nothing(tmp_path, monkeypatch):
    """A file that was given up leaves no temporary file and no error."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    output = io.BytesIO()
    writer = ExcelWriterFactory().create(output, pa.schema([("n", pa.int64())]))
    writer.write(pa.record_batch({"n": [1]}))
    writer.flush()
    assert list(tmp_path.iterdir())
    del writer
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert output.getvalue() == b""


def test_text_too_long_for_a_cell_is_an_error():
    """Excel would cut it off."""
    with pytest.raises(FormatError, match="column 't'") as error:
        sheets_of(ExcelWriterFactory(), pa.record_batch({"t": ["x" * 32_768]}))
    assert error.value.kind == "value"


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.binary(), pa.month_day_nano_interval()])
def test_what_has_no_cell_is_refused(kind):
    """With the name of the column."""
    with pytest.raises(FormatError, match="'c'"):
        ExcelWriterFactory().check_schema(pa.schema([("c", kind)]))


@pytest.mark.parametrize(
    "options",
    [{"sheet_name": ""}, {"sheet_name": "a/b"}, {"sheet_max_rows": 1}, {"sheet_max_rows": 2**21}],
    ids=str,
)
def test_options_excel_does_not_take_are_refused(options):
    """Before anything is written."""
    with pytest.raises(FormatError) as error:
        ExcelWriterFactory(**options)
    assert error.value.kind == "option"
