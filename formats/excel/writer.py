"""Excel workbooks, for people. A library call per cell: slow, and nothing for large data.

Rows wait in a temporary file of the library, not in memory, and become a file at its end. What Excel
would damage is written as text: exact numbers of more than 15 digits or from 1e16 on, NaN and infinities,
days before March 1900 and after 9999. Times are cut to milliseconds, of which Excel has no parts.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.api import BulkWriter, BulkWriterFactory
from formats.arrow import Text
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.errors import FormatError
from formats.excel import reader as excel_reader
from formats.guarded_output import GuardedOutput
from formats.text import charsets, render

if TYPE_CHECKING:
    from formats.api import BinaryOutput

#: Rows of a sheet, its header included; Excel's own limit.
MOST_ROWS: Final = 1_048_576
_MOST_COLUMNS: Final = 16_384
_LONGEST: Final = 32_767  # characters of a cell
_DIGITS: Final = 15  # that Excel keeps
_PLAIN: Final = 16  # digits before the point, beyond which a cell has an exponent and is no whole number
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
_FIRST_DAY: Final = dt.datetime(1900, 3, 1)  # noqa: DTZ001 - wall clock; before it Excel counts a day too many
_WAITING: Final = 1 << 20  # bytes of Arrow data
# Characters that a cell holds as _xHHHH_: those that XML lacks, a "_" that would begin such an escape, and
# the first one of what the library would take for XML and write as it is.
_NOT_IN_XML: Final = "\\x00-\\x08\\x0b-\\x1f\\ufffe\\uffff"
_ESCAPED: Final = re.compile(rf"[{_NOT_IN_XML}]|_(?=x[0-9A-Fa-f]{{4}}[_{_NOT_IN_XML}])|\A<(?=r>)")


@dataclass(frozen=True, kw_only=True)
class ExcelWriterFactory(BulkWriterFactory):
    """Workbooks (``.xlsx``) with a header on every sheet; needs XlsxWriter (``filesink[excel]``).

    Attributes:
        sheet_name: of the first sheet; the others get a number.
        sheet_max_rows: rows of a sheet, its header included; what is more goes to further sheets.

    Raises:
        FormatError: kind ``"option"``; no name or number that Excel takes, or XlsxWriter is missing.
    """

    sheet_name: str = "Sheet"
    sheet_max_rows: int = MOST_ROWS

    extension = ".xlsx"
    writes_text = True

    def __post_init__(self) -> None:
        """Check the options."""
        name: object = self.sheet_name
        if not isinstance(name, str) or not 1 <= len(name) <= 25 or set(name) & set("[]:*?/\\'"):
            raise FormatError("sheet_name must be 1 to 25 characters, none of []:*?/\\'", kind="option")
        rows: object = self.sheet_max_rows
        if not isinstance(rows, int) or isinstance(rows, bool) or not 2 <= rows <= MOST_ROWS:
            raise FormatError(f"sheet_max_rows must be a number from 2 to {MOST_ROWS}", kind="option")
        _library()

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return ExcelWriter(output, schema, self)

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``; ``schema`` is needed, and so is openpyxl."""
        return excel_reader.open_reader(file, schema=schema)

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        return f"excel {self.sheet_name!r} {self.sheet_max_rows}"

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``."""
        if not 1 <= len(schema) <= _MOST_COLUMNS:
            raise FormatError(f"Excel has 1 to {_MOST_COLUMNS} columns, not {len(schema)}")
        for field in schema:
            if columns.is_nested(field.type) or columns.is_binary(field.type):
                raise FormatError(
                    f"column {field.name!r} of type {field.type} has no cell in Excel: make it text"
                )
            render.check_scalar(field.type, path=field.name)


class ExcelWriter(BufferedBulkWriter):
    """Writes rows cell by cell.

    Args:
        output: the file.
        schema: of the records.
        factory: its options.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: ExcelWriterFactory) -> None:
        super().__init__(schema, Limits(size=_WAITING))
        self._output = GuardedOutput(output)
        self._factory = factory
        self._book: Any = None
        self._sheet: Any = None
        self._formats: list[Any] = []
        self._sheets = 0
        self._row = 0

    def _put(self, table: pa.Table) -> None:
        values = [
            _cells(column, name) for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        for row in zip(*values, strict=True):
            if self._row == self._factory.sheet_max_rows:
                self._next_sheet()
            for position, value in enumerate(row):
                if value is not None:
                    self._write(position, value)
            self._row += 1

    def _write(self, position: int, value: Any) -> None:
        if isinstance(value, str):
            self._sheet.write_string(self._row, position, value)
        elif isinstance(value, bool):
            self._sheet.write_boolean(self._row, position, value)
        elif isinstance(value, dt.datetime | dt.date):
            self._sheet.write_datetime(self._row, position, value, self._formats[position])
        else:
            self._sheet.write_number(self._row, position, value)

    def _end(self) -> None:
        with self._output.asked():
            self._book.close()

    def _begin(self) -> None:
        directory = tempfile.mkdtemp(prefix="filesink-")
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        self._book = _library()(self._output, {"constant_memory": True, "tmpdir": directory})
        days, times = (
            self._book.add_format({"num_format": code}) for code in ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss.000")
        )
        self._formats = [days if pt.is_date(field.type) else times for field in self._schema]
        self._next_sheet()

    def _next_sheet(self) -> None:
        self._sheets += 1
        number = "" if self._sheets == 1 else f" {self._sheets}"
        self._sheet = self._book.add_worksheet(self._factory.sheet_name + number)
        # The library's own leaves a live escape where two of them share a "_".
        self._sheet._escape_control_characters = _escaped  # noqa: SLF001 - nothing public says what is escaped
        for position, name in enumerate(self._schema.names):
            self._sheet.write_string(0, position, name)
        self._row = 1


def _library() -> Callable[..., Any]:
    try:
        from xlsxwriter import Workbook
    except ImportError as error:
        raise FormatError("Excel needs XlsxWriter: pip install 'filesink[excel]'", kind="option") from error
    workbook: Callable[..., Any] = Workbook
    return workbook


def _cells(column: Any, name: str) -> list[Any]:
    """What is written for each value: a number, a truth value, a day, a time, or text; ``None`` for null."""
    kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
    texts = [text for chunk in column.chunks for text in _texts(render.text(chunk, style=render.Style.CAST))]
    if pt.is_boolean(kind):
        return list(column.to_pylist())
    if pt.is_floating(kind):
        return [text if text in {None, *_NOT_FINITE} else float(text) for text in texts]
    if pt.is_integer(kind) or pt.is_decimal(kind):
        return [text if text is None or not _is_exact(text) else float(text) for text in texts]
    if pt.is_date(kind) or pt.is_timestamp(kind):
        return [None if text is None else _moment(text) for text in texts]
    if any(text is not None and len(text) > _LONGEST for text in texts):
        raise FormatError(f"column {name!r} holds text of more than {_LONGEST} characters", kind="value")
    return texts


def _texts(column: Text) -> list[Any]:
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:  # a string of Spark's may hold any bytes
        values = column.cast(pa.binary()).to_pylist()
        return [value if value is None else bytes(charsets.repaired(value)).decode() for value in values]


def _escaped(value: Any) -> Any:
    """The text of a cell as Excel and its readers undo it, from left to right; a truth value as it is."""
    return _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", value) if isinstance(value, str) else value


def _is_exact(text: str) -> bool:
    whole, _, fraction = text.removeprefix("-").partition(".")
    return len(whole) <= _PLAIN and len((whole + fraction).strip("0")) <= _DIGITS


def _moment(text: str) -> Any:
    """A time as Excel's, or the text if Excel has no such day."""
    if len(text) < len("2024-01-01") or not text[:4].isdigit() or text[4:5] != "-":
        return text
    moment = dt.datetime.fromisoformat(text)
    if moment < _FIRST_DAY:
        return text
    # The library rounds, even into the next year.
    whole = moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
    return whole if len(text) > len("2024-01-01") else whole.date()
