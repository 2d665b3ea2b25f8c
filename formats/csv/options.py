"""The options of CSV: what the writer and the reader of a file have to agree upon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.types as pt

from formats.arrow import Column, Text
from formats.csv.dialect import CsvDialect
from formats.errors import FormatError
from formats.text import charsets, render
from formats.text.time_patterns import Kind, TimePattern

Header = Literal["none", "names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvValues:
    """How values become text.

    Attributes:
        null_value: what stands for null; quoted by the same rules as strings.
        date_format: a pattern for dates, see ``formats.text.time_patterns``; ``None`` for ISO 8601.
        timestamp_format: the same for timestamps, in the zone of the session.
    """

    null_value: str = ""
    date_format: str | None = None
    timestamp_format: str | None = None

    def __post_init__(self) -> None:
        """Refuse a null value that is not text, and texts that are not patterns."""
        if not isinstance(self.null_value, str):
            raise FormatError("CSV null_value must be a string", kind="option")
        self.pattern(pa.date32())
        self.pattern(pa.timestamp("us"))

    def pattern(self, kind: pa.DataType) -> TimePattern | None:
        """The pattern for values of ``kind``, if there is one."""
        if pt.is_date(kind) and self.date_format is not None:
            return TimePattern(pattern=self.date_format, kind=Kind.DATE)
        if pt.is_timestamp(kind) and self.timestamp_format is not None:
            return TimePattern(pattern=self.timestamp_format, kind=Kind.TIMESTAMP)
        return None

    def text(self, column: Column) -> Text:
        """The text of each value; null where it is null."""
        pattern = self.pattern(column.type)
        return render.text(column, style=render.Style.CSV) if pattern is None else pattern.text(column)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How a file of comma-separated values is laid out.

    Attributes:
        dialect: delimiter and quotes.
        header: ``"names"`` begins every part file with the names of the columns.
        values: null, dates and timestamps.
        charset: a Python codec that needs no byte order mark and no memory between lines.
    """

    dialect: CsvDialect = field(default_factory=CsvDialect)
    header_mode: Header = "none"
    values: CsvValues = field(default_factory=CsvValues)
    charset: str = charsets.UTF_8

    def __post_init__(self) -> None:
        """Refuse options of the wrong kind."""
        if self.header_mode not in get_args(Header):
            raise FormatError("CSV header must be True or False", kind="option")
        object.__setattr__(self, "charset", charsets.canonical(self.charset))
