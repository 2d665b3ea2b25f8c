"""Workbooks, read by openpyxl."""

from __future__ import annotations

import gc
import io
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal

import openpyxl
import pyarrow as pa
import pytest

from formats import ExcelWriterFactory, FormatError, LimitError, ReadLimits, bounded
from formats.excel import reader as excel_reader


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
    assert rows[1][4] is True  # which a 1 is not
    assert rows[2] == ["x", *[None] * 6]


def test_days_and_times_show_what_they_hold():
    """A time that showed its day only would look like another one to a person."""
    batch = pa.record_batch({"d": [date(2024, 2, 29)], "at": pa.array([1], pa.timestamp("us"))})
    _, cells = openpyxl.load_workbook(file_of(ExcelWriterFactory(), batch)).active.iter_rows()
    assert [cell.number_format for cell in cells] == ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss.000"]


def test_what_excel_would_damage_is_text():
    """Every digit of an exact number, NaN, and days that Excel does not have; nothing else is."""
    days = pa.array([-25_509, -719_162, 2_932_897, -25_508], pa.int32())  # Python has no year 10,000
    batch = pa.record_batch(
        {
            "i": [2**53 + 1, 10**15, 10**15 - 1, 0],
            "f": [float("nan"), float("-inf"), float("inf"), 0.5],
            "d": days.cast(pa.date32()),
        }
    )
    (rows,) = sheets_of(ExcelWriterFactory(), batch).values()
    assert rows[1:] == [
        ["9007199254740993", "NaN", "1900-02-28"],
        [10**15, "-Infinity", "0001-01-01"],
        [10**15 - 1, "Infinity", "+10000-01-01"],
        [0, 0.5, datetime(1900, 3, 1)],  # noqa: DTZ001 - a cell has no zone
    ]


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
    """Excel would cut it off; the longest that fits is written whole."""
    longest = pa.record_batch({"t": ["x" * 32_767]})
    assert sheets_of(ExcelWriterFactory(), longest) == {"Sheet": [["t"], ["x" * 32_767]]}
    with pytest.raises(FormatError, match="column 't'") as error:
        sheets_of(ExcelWriterFactory(), pa.record_batch({"t": ["x" * 32_768]}))
    assert error.value.kind == "value"


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.binary(), pa.month_day_nano_interval()])
def test_what_has_no_cell_is_refused(kind):
    """With the name of the column."""
    with pytest.raises(FormatError, match="'c'"):
        ExcelWriterFactory().check_schema(pa.schema([("c", kind)]))


@pytest.mark.parametrize("count", [0, 16_385])
def test_columns_that_a_sheet_does_not_have_are_refused(count):
    """What is too far to the right would be left out in silence."""
    schema = pa.schema([(f"c{place}", pa.int8()) for place in range(16_384)])
    ExcelWriterFactory().check_schema(schema)
    more = pa.schema([*schema, pa.field("more", pa.int8())][:count])
    with pytest.raises(FormatError, match=f"not {count}") as error:
        ExcelWriterFactory().check_schema(more)
    assert error.value.kind == "schema"


def test_signatures_tell_options_apart():
    """Each option counts."""
    options = [{}, {"sheet_name": "data"}, {"sheet_max_rows": 2}]
    assert len({ExcelWriterFactory(**each).signature() for each in options}) == len(options)


@pytest.mark.parametrize(
    "options",
    [
        *({"sheet_name": name} for name in ("", "a/b", "x" * 26)),  # the last sheets have a longer one
        *({"sheet_max_rows": rows} for rows in (1, 1_048_577)),
    ],
    ids=str,
)
def test_options_excel_does_not_take_are_refused(options):
    """Before anything is written."""
    with pytest.raises(FormatError) as error:
        ExcelWriterFactory(**options)
    assert error.value.kind == "option"


def file_of(factory, *batches):
    """A finished file."""
    output = io.BytesIO()
    writer = factory.create(output, batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return io.BytesIO(output.getvalue())


READABLE = ["text", "large", "int", "long", "double", "float", "bool", "decimal", "date", "wall"]


def test_what_was_written_is_read(all_rows):
    """Every kind of cell, at its limits; Excel has milliseconds."""
    batch = all_rows.select(READABLE).slice(0, 9)
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), batch), schema=batch.schema)
    expected = batch.to_pylist()
    for record in expected:
        record["double"] = None if record["double"] is None else record["double"] + 0.0
        record["wall"] = record["wall"] and record["wall"].replace(microsecond=123_000)
    for got, wanted in zip(found.read_all().to_pylist(), expected, strict=True):
        assert {name: repr(value) for name, value in got.items()} == {n: repr(v) for n, v in wanted.items()}


def test_exact_numbers_are_read():
    """A cell of 1E+16 would be no whole number to a reader; as text it has every digit."""
    whole = [10**15, 99 * 10**14, -(10**16) + 10, 10**16, 123 * 10**16, -(10**18), -(2**63)]
    fine = [Decimal(text) for text in (f"1.{'0' * 28}1", "1e-9", "-0.5", "0", "12345678.9", "-1e-30", "10")]
    columns = {
        "n": pa.array(whole),
        "m": pa.array(map(Decimal, whole), pa.decimal128(38, 10)),
        "f": pa.array(fine, pa.decimal128(38, 30)),
    }
    batch = pa.record_batch(columns)
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), batch), schema=batch.schema)
    assert found.read_all() == pa.table(batch)


def test_times_are_cut_to_milliseconds():
    """Not rounded into the next year, or beyond the last one."""
    last = [datetime(2024, 12, 31, 23, 59, 59, 999_999), datetime(9999, 12, 31, 23, 59, 59, 999_500)]  # noqa: DTZ001
    batch = pa.record_batch({"at": pa.array(last, pa.timestamp("us"))})
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), batch), schema=batch.schema)
    assert found.read_all()["at"].to_pylist() == [moment.replace(microsecond=999_000) for moment in last]


def test_control_characters_are_read():
    """Cells hold them escaped, and text that looks like that as well."""
    batch = pa.record_batch({"t": ["a\r\n", "\x01", "_x000D_", "_x005F_", "é"]})
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), batch), schema=batch.schema)
    assert found.read_all() == pa.table(batch)


@pytest.mark.parametrize(
    "text",
    ["_x005F_x0041_", "_x0041_x0042_", "_x000d_", "_x0041\x01", "\x01x0041_", "__x0041_", "\uffff_x000G_"],
    ids=ascii,
)
def test_text_that_looks_escaped_stays_text(text):
    """Also where two of what look like escapes share a character, in cells and in names of columns."""
    batch = pa.record_batch({text: [text]})
    ((header, row),) = sheets_of(ExcelWriterFactory(), batch).values()
    assert header == row
    named = pa.record_batch({"t": [text]})
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), named), schema=named.schema)
    assert found.read_all() == pa.table(named)


def test_text_that_looks_like_xml_stays_text():
    """The library would write it as it is, as part of the sheet."""
    batch = pa.record_batch({"t": ["<r><t>bold</t></r>", "<r>a & b</r>", "<r>", "<b>"]})
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), batch), schema=batch.schema)
    assert found.read_all() == pa.table(batch)


def test_names_that_look_escaped_are_found():
    """A column that is not found under its name would be null in silence."""
    batch = pa.record_batch({"_x0041_": [1], "a\x01": [2], "b\r": [3]})
    file = file_of(ExcelWriterFactory(), batch)
    assert ExcelWriterFactory().open_reader(file, schema=batch.schema).read_all() == pa.table(batch)


@pytest.mark.parametrize(("unit", "ticks"), [("s", 1_720_000_000), ("ms", 1_720_000_000_250)])
def test_times_of_coarser_units_are_read(unit, ticks):
    """A cell is text with six digits after the second, or with none."""
    batch = pa.record_batch({"at": pa.array([ticks], pa.timestamp(unit))})
    file = file_of(ExcelWriterFactory(), batch)
    assert ExcelWriterFactory().open_reader(file, schema=batch.schema).read_all() == pa.table(batch)


def test_sheets_are_read_one_after_the_other(monkeypatch):
    """In pieces; columns are chosen, added and widened."""
    monkeypatch.setattr(excel_reader, "_ROWS", 4)
    file = file_of(ExcelWriterFactory(sheet_max_rows=11), pa.record_batch({"n": range(25), "t": ["x"] * 25}))
    wanted = pa.schema([("new", pa.string()), ("n", pa.float64())])
    batches = list(ExcelWriterFactory().open_reader(file, schema=wanted))
    assert max(batch.num_rows for batch in batches) == 4
    assert pa.Table.from_batches(batches).to_pylist() == [{"new": None, "n": float(n)} for n in range(25)]


@pytest.mark.parametrize("keep", [0, 3, 100, 2_000, -1, -20], ids=lambda keep: f"keep{keep}")
def test_a_file_that_was_cut_is_an_error(keep):
    """An archive has its directory at the end."""
    data = file_of(ExcelWriterFactory(), pa.record_batch({"n": range(100)})).getvalue()
    with pytest.raises(FormatError) as error:
        ExcelWriterFactory().open_reader(
            io.BytesIO(data[:keep]), schema=pa.schema([("n", pa.int64())])
        ).read_all()
    assert error.value.kind == "value"


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", pa.int64()), (0.5, pa.int64()), (datetime(2024, 7, 1, 12), pa.date32())],  # noqa: DTZ001
)
def test_a_cell_of_another_kind_is_an_error(value, kind):
    """The column is named, and nothing is cut off."""
    file = file_of(ExcelWriterFactory(), pa.record_batch({"n": [value]}))
    with pytest.raises(FormatError, match="column 'n'") as error:
        ExcelWriterFactory().open_reader(file, schema=pa.schema([("n", kind)])).read_all()
    assert error.value.kind == "value"


def test_every_cell_is_read_as_text_where_that_is_asked_for():
    """What the error about other types advises."""
    values = [True, 7, 0.5, datetime(2024, 7, 1, 12, 30), "x"]  # noqa: DTZ001 - a cell has no zone
    batch = pa.record_batch({f"c{place}": [value] for place, value in enumerate(values)})
    texts = pa.schema([(name, pa.string()) for name in batch.schema.names])
    found = ExcelWriterFactory().open_reader(file_of(ExcelWriterFactory(), batch), schema=texts).read_all()
    (record,) = found.to_pylist()
    assert list(record.values()) == ["true", "7", "0.5", "2024-07-01T12:30:00", "x"]


def test_a_bomb_is_refused():
    """What would be in memory as a whole has a bound."""
    file = file_of(ExcelWriterFactory(), pa.record_batch({"n": [1]}))
    with pytest.raises(LimitError, match="beside its sheets") as error:
        ExcelWriterFactory().open_reader(
            bounded(file, limits=ReadLimits(record=1_000)), schema=pa.schema([("n", pa.int64())])
        ).read_all()
    assert error.value.kind == "value"


NUMBERS = pa.schema([("n", pa.int64())])
LIMITS = ReadLimits(record=200_000)
SHARED = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def remade(file, replaced=(), added=()):
    """A workbook with texts of some members replaced, and with more members, twice as large as allowed."""
    output = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name).decode()
            for member, before, after in replaced:
                assert name != member or before in text
                text = text.replace(before, after) if name == member else text
            new.writestr(name, text)
        for name in added:
            new.writestr(name, "<sst>" + " " * 400_000 + "</sst>")
    return output


def shared(name):
    """The content types call this member the shared strings."""
    part = f'<Override PartName="/{name}" ContentType="{SHARED}"/></Types>'
    return ("[Content_Types].xml", "</Types>", part)


LINKS = "xl/_rels/workbook.xml.rels"
FIRST = "xl/worksheets/sheet1.xml"
OTHERS = {
    "the result of a formula": ("<v>1</v>", "<f>3-2</f><v>1</v>"),
    "no dimension, so that rows end with their last cell": ('<dimension ref="A1:B3"/>', ""),
    "a dimension of one cell only": ('<dimension ref="A1:B3"/>', '<dimension ref="A1"/>'),
    "escapes in lower case": ("_x000B_", "_x000b_"),
}


@pytest.mark.parametrize(("ours", "theirs"), OTHERS.values(), ids=OTHERS.keys())
def test_workbooks_of_others_are_read(ours, theirs):
    """They hold the same in another form."""
    batch = pa.record_batch({"n": [1, 2], "t": ["\x0b", None]})
    file = remade(file_of(ExcelWriterFactory(), batch), [(FIRST, ours, theirs)])
    assert ExcelWriterFactory().open_reader(file, schema=batch.schema).read_all() == pa.table(batch)


def test_a_sheet_that_is_not_there_is_damage():
    """The library passes over it, and its records would be lost in silence."""
    file = file_of(ExcelWriterFactory(sheet_max_rows=2), pa.record_batch({"n": [1, 2]}))
    file = remade(file, [(LINKS, "worksheets/sheet2.xml", "worksheets/sheet3.xml")])
    with pytest.raises(FormatError, match="a sheet that it does not have") as error:
        ExcelWriterFactory().open_reader(file, schema=NUMBERS).read_all()
    assert error.value.kind == "value"


HIDDEN = {
    "strings beside the sheets": ([shared("xl/worksheets/strings.xml")], ["xl/worksheets/strings.xml"]),
    "strings that are a sheet": ([shared(FIRST)], []),
    "a chart for a sheet": ([(LINKS, "relationships/worksheet", "relationships/chartsheet")], []),
    "links of a sheet": ([], ["xl/worksheets/_rels/sheet1.xml.rels"]),
    "links of another workbook": (
        [("[Content_Types].xml", "/xl/workbook.xml", "/xl/worksheets/b.xml")],
        ["xl/worksheets/_rels/b.xml.rels"],
    ),
    "a member of no kind": ([], ["xl/worksheets/any.xml"]),
}


@pytest.fixture
def large():
    """A workbook whose only sheet is larger than what may be in memory as a whole."""
    file = file_of(ExcelWriterFactory(), pa.record_batch({"n": range(10_000)}))
    with zipfile.ZipFile(file) as archive:
        assert archive.getinfo(FIRST).file_size > 300_000
    return file


@pytest.mark.parametrize("start", ["worksheets/", "/xl/worksheets/"])
def test_sheets_are_no_bomb(large, start):
    """They are read row by row, wherever the links to them begin."""
    file = bounded(remade(large, [(LINKS, '"worksheets/', f'"{start}')]), limits=LIMITS)
    assert ExcelWriterFactory().open_reader(file, schema=NUMBERS).read_all().num_rows == 10_000


def test_the_first_records_come_before_the_last_are_looked_at(large, monkeypatch):
    """A sheet is never in memory as a whole: what is wrong with its end is found there."""
    monkeypatch.setattr(excel_reader, "_ROWS", 100)
    file = bounded(remade(large, [(FIRST, "</sheetData>", "</other>")]), limits=LIMITS)
    reader = ExcelWriterFactory().open_reader(file, schema=NUMBERS)
    assert reader.read_next_batch().num_rows == 100
    with pytest.raises(FormatError) as error:
        reader.read_all()
    assert error.value.kind == "value"


@pytest.mark.parametrize(("replaced", "added"), HIDDEN.values(), ids=HIDDEN.keys())
def test_a_bomb_among_the_sheets_is_refused(large, replaced, added):
    """Only what is a sheet to all that name it is read row by row."""
    file = bounded(remade(large, replaced, added), limits=LIMITS)
    with pytest.raises(LimitError, match="beside its sheets") as error:
        ExcelWriterFactory().open_reader(file, schema=NUMBERS).read_all()
    assert error.value.kind == "value"


def test_links_to_other_workbooks_are_not_followed(large):
    """One of them may lead to a sheet, which would be in memory as a whole."""
    links = '<externalReferences><externalReference r:id="rId1"/></externalReferences><calcPr'
    file = bounded(remade(large, [("xl/workbook.xml", "<calcPr", links)]), limits=LIMITS)
    assert ExcelWriterFactory().open_reader(file, schema=NUMBERS).read_all().num_rows == 10_000


def test_an_archive_that_is_no_workbook_is_refused():
    """A text document has the same frame."""
    file = file_of(ExcelWriterFactory(), pa.record_batch({"n": [1]}))
    replaced = [("[Content_Types].xml", "spreadsheetml.sheet.main", "wordprocessingml.document.main")]
    with pytest.raises(FormatError, match="not a workbook") as error:
        ExcelWriterFactory().open_reader(remade(file, replaced), schema=NUMBERS).read_all()
    assert error.value.kind == "value"


@pytest.mark.parametrize("keep", [0, 3, 100])
def test_a_stub_on_a_disk_is_damage(keep, tmp_path):
    """The system, asked for a place before the beginning of the file, is not what failed."""
    path = tmp_path / "a.xlsx"
    path.write_bytes(file_of(ExcelWriterFactory(), pa.record_batch({"n": [1]})).getvalue()[:keep])
    with path.open("rb") as file, pytest.raises(FormatError) as error:
        ExcelWriterFactory().open_reader(file, schema=NUMBERS).read_all()
    assert error.value.kind == "value"


@pytest.mark.parametrize(
    "schema",
    [None, pa.schema([]), pa.schema([("a", pa.binary())]), pa.schema([("a", pa.timestamp("us", "UTC"))])],
)
def test_what_cells_do_not_tell_is_refused(schema):
    """Before anything is read."""
    with pytest.raises(FormatError) as error:
        ExcelWriterFactory().open_reader(io.BytesIO(), schema=schema)
    assert error.value.kind == "option"
