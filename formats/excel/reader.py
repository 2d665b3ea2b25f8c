"""Excel workbooks back as record batches, sheet after sheet, row by row.

A cell has a kind of its own, and a schema says what it is to become. Rows of empty cells at the end of a
sheet cannot be told from no rows.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.types as pt

from formats import reading
from formats.errors import FormatError
from formats.excel.sheet_rows import CheckedSheet
from formats.read_limits import Guard, guard_of
from formats.text import line_reader

_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")  # how cells hold control characters, and such text
_ROWS: Final = 10_000  # at a time
_SHEETS: Final = "xl/worksheets"
_OF_A_CELL: Final = 16  # bytes of memory, but for its text


def open_reader(file: BinaryIO, *, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader``; ``schema`` is needed."""
    library = _library()
    wanted = line_reader.require_columns(
        schema,
        "Excel",
        others=(pt.is_date32, lambda kind: pt.is_timestamp(kind) and kind.tz is None),
        advice="read it as a string, and a time with a zone as one without",
    )
    guard = guard_of(file)
    return reading.reader(wanted, lambda: _batches(file, library, wanted, guard), wanted=None, guard=guard)


def _batches(
    file: BinaryIO, load_workbook: Callable[..., Any], schema: pa.Schema, guard: Guard
) -> Iterator[pa.RecordBatch]:
    source = reading.Source(file)
    # openpyxl says what is wrong in many classes, KeyError and SyntaxError among them; none of them is
    # passed over.
    with source.as_damage("the file is no workbook, damaged or cut off", on=(Exception,)):
        _check(source, guard)
        book = load_workbook(source, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what is beyond a wrong <dimension> would be lost in silence
            # Nothing public stands between the library and its file.
            sheet._get_source = partial(CheckedSheet, sheet._get_source, guard)  # noqa: SLF001
            rows = sheet.iter_rows(values_only=True)
            header = next(rows, ())
            places = {_unescaped(name): place for place, name in enumerate(header) if isinstance(name, str)}
            for found in _some(rows, reading.most_rows(schema, guard), guard):
                arrays = [_column(found, field, places.get(field.name)) for field in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _some(rows: Iterator[tuple[Any, ...]], most: int, guard: Guard) -> Iterator[list[tuple[Any, ...]]]:
    """Rows, so many at a time that they are no burden: a text of all cells is in the file only once."""
    found: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        own = sum(_OF_A_CELL + len(cell) if isinstance(cell, str) else _OF_A_CELL for cell in row)
        guard.check_record(own, "a row of a sheet")
        if found and (size + own > min(reading.BATCH_BYTES, guard.record) or len(found) == min(most, _ROWS)):
            yield found
            found, size = [], 0
        found.append(row)
        size += own
    if found:
        yield found


def _check(source: Any, guard: Guard) -> None:
    """Refuse a bomb; a member never holds more than the directory of the archive says."""
    source.seek(0)
    with zipfile.ZipFile(source) as archive:
        # What says which members are sheets is read as a whole itself, so it is bounded first.
        beside = {name for name in archive.namelist() if posixpath.dirname(name) == _SHEETS}
        _check_size(archive, beside, guard)
        streamed = beside & _streamed(archive)
        _check_size(archive, streamed, guard)
        guard.check_file(sum(member.file_size for member in archive.infolist()))


def _check_size(archive: zipfile.ZipFile, streamed: set[str], guard: Guard) -> None:
    together = sum(member.file_size for member in archive.infolist() if member.filename not in streamed)
    guard.check_record(together, "what a workbook has beside its sheets")


def _streamed(archive: zipfile.ZipFile) -> set[str]:
    """What is read row by row: members that are sheets to all that name them.

    The workbook that openpyxl takes is one of ``books``, which may be more. It passes over sheets that are
    not there.
    """
    from openpyxl.packaging.manifest import Manifest
    from openpyxl.packaging.relationship import get_dependents, get_rels_path
    from openpyxl.xml.constants import ARC_CONTENT_TYPES, ARC_WORKBOOK, REL_NS
    from openpyxl.xml.functions import fromstring

    manifest = Manifest.from_tree(fromstring(archive.read(ARC_CONTENT_TYPES)))
    types = [(part.PartName[1:], part.ContentType) for part in manifest.Override]
    books = {ARC_WORKBOOK, *(name for name, kind in types if kind.endswith(".main+xml"))}
    lists = {get_rels_path(book) for book in books}.intersection(archive.namelist())
    links = [(link.target, link.Type) for each in lists for link in get_dependents(archive, each)]
    sheets = {name for name, kind in links if kind == f"{REL_NS}/worksheet"}
    if not sheets.issubset(archive.namelist()):
        raise FormatError("the workbook is damaged: it names a sheet that it does not have", kind="value")
    others = {name for name, kind in links if kind != f"{REL_NS}/worksheet"}
    return sheets - others - {name for name, kind in types if not kind.endswith(".worksheet+xml")}


def _column(rows: list[tuple[Any, ...]], field: Any, place: int | None) -> Any:
    if place is None:
        return pa.nulls(len(rows), field.type)
    is_day = pt.is_date(field.type)
    texts = [_text(row[place], is_day=is_day) if place < len(row) else None for row in rows]
    try:
        return pa.array(texts, pa.string()).cast(reading.with_fractions(field.type)).cast(field.type)
    except pa.ArrowException as error:
        raise FormatError(
            f"column {field.name!r} holds a cell that is no {field.type}", kind="value"
        ) from error


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _text(value: Any, *, is_day: bool) -> str | None:
    """What a cell holds, as text that Arrow understands."""
    match value:
        case None:
            return None
        case str():
            return _unescaped(value)
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            return value.date().isoformat() if is_day and value.time() == dt.time() else value.isoformat()
        case _:
            return str(value)


def _library() -> Callable[..., Any]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise FormatError(
            "reading Excel needs openpyxl: pip install 'filesink[excel]'", kind="option"
        ) from error
    load: Callable[..., Any] = load_workbook
    return load
