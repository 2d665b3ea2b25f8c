r"""SeaTunnel's format ``text``: fields with a delimiter, lists with \\002, maps with \\003, and so on.

Both ways are expressions of Spark's SQL over one column of lines, so that no row passes through Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO

import pyarrow as pa

from filesink.jobs.model.column_types import ddl, quoted, sql_text
from formats.splitting import Split
from formats.text.line_format import TextLineFormat

_INNER = ("\x02", "\x03", "\x04", "\x05", "\x06", "\x07")  # SeaTunnel's, of each level
_PIECE = 1 << 16  # bytes read at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesBelowHeader(TextLineFormat):
    """Lines, without the first ones of each file.

    Attributes:
        skipped: how many.
    """

    skipped: int = 1

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_reader``."""
        start = behind_lines(file, self.skipped)
        size = file.seek(0, 2)
        if start >= size:
            return TextLineFormat.open_reader(self, BytesIO(), schema=schema)
        return TextLineFormat.open_split(self, file, Split(start, size), schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``ReadableFormat.splits``: a file is one."""
        del target
        return [Split(0, file.seek(0, 2))]

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_split``."""
        del split
        return self.open_reader(file, schema=schema)


def behind_lines(file: BinaryIO, lines: int) -> int:
    """Where the line number ``lines`` begins, counted from 0; the size if there are fewer."""
    file.seek(0)
    at = 0
    while piece := file.read(_PIECE):
        for place, byte in enumerate(piece):
            lines -= byte == 0x0A
            if lines == 0:
                return at + place + 1
        at += len(piece)
    return at


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFields:
    """How a line holds columns.

    Attributes:
        delimiter: between columns.
        date_format, timestamp_format: Spark's patterns; ``""`` for ISO 8601.
    """

    delimiter: str
    date_format: str = ""
    timestamp_format: str = ""

    def columns(self, schema: pa.Schema) -> list[str]:
        """Expressions for the columns of a line, which is the column ``value``."""
        pieces = f"split(value, {_pattern(self.delimiter)}, -1)"
        return [
            f"{self._parsed(f'get({pieces}, {number})', field.type, 0)} AS {quoted(field.name)}"
            for number, field in enumerate(schema)
        ]

    def _parsed(self, text: str, kind: pa.DataType, level: int) -> str:
        cut, inner = _pattern(_INNER[level]), f"x{level}"
        given = f"nullif({text}, '')"
        if pa.types.is_list(kind):
            element = self._parsed(inner, kind.value_type, level + 1)
            return f"transform(split({given}, {cut}, -1), {inner} -> {element})"
        if pa.types.is_map(kind):
            pair = f"split({inner}, {_pattern(_INNER[level + 1])}, 2)"
            key = self._parsed(f"get({pair}, 0)", kind.key_type, level + 2)
            value = self._parsed(f"get({pair}, 1)", kind.item_type, level + 2)
            return (
                f"map_from_entries(transform(split({given}, {cut}, -1), {inner} -> struct({key}, {value})))"
            )
        if pa.types.is_struct(kind):
            pieces = f"split({given}, {cut}, -1)"
            fields = [
                f"{sql_text(field.name)}, {self._parsed(f'get({pieces}, {number})', field.type, level + 1)}"
                for number, field in enumerate(kind)
            ]
            return f"if({given} IS NULL, NULL, named_struct({', '.join(fields)}))"
        return self._scalar(given, kind)

    def _scalar(self, text: str, kind: pa.DataType) -> str:
        if pa.types.is_date(kind) and self.date_format:
            return f"to_date({text}, {sql_text(self.date_format)})"
        if pa.types.is_timestamp(kind) and self.timestamp_format:
            return f"CAST(to_timestamp({text}, {sql_text(self.timestamp_format)}) AS {ddl(kind)})"
        return f"CAST({text} AS {ddl(kind)})"

    def line(self, schema: Iterable[pa.Field[Any]]) -> str:
        """An expression for the line that holds the columns of ``schema``."""
        fields = [self._written(quoted(field.name), field.type, 0) for field in schema]
        return f"concat_ws({sql_text(self.delimiter)}, {', '.join(fields)}) AS value"

    def _written(self, value: str, kind: pa.DataType, level: int) -> str:
        cut, inner = sql_text(_INNER[level]), f"x{level}"
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            element = self._written(inner, kind.value_type, level + 1)
            text = f"array_join(transform({value}, {inner} -> {element}), {cut})"
        elif pa.types.is_map(kind):
            key = self._written(f"{inner}.key", kind.key_type, level + 2)
            item = self._written(f"{inner}.value", kind.item_type, level + 2)
            pair = f"concat({key}, {sql_text(_INNER[level + 1])}, {item})"
            text = f"array_join(transform(map_entries({value}), {inner} -> {pair}), {cut})"
        elif pa.types.is_struct(kind):
            fields = [self._written(f"{value}.{quoted(field.name)}", field.type, level + 1) for field in kind]
            text = f"concat_ws({cut}, {', '.join(fields)})"
        else:
            text = self._formatted(value, kind)
        return f"coalesce({text}, '')"

    def _formatted(self, value: str, kind: pa.DataType) -> str:
        if pa.types.is_date(kind) and self.date_format:
            return f"date_format({value}, {sql_text(self.date_format)})"
        if pa.types.is_timestamp(kind) and self.timestamp_format:
            return f"date_format({value}, {sql_text(self.timestamp_format)})"
        return f"CAST({value} AS STRING)"


def _pattern(delimiter: str) -> str:
    """A literal of SQL with a pattern that means ``delimiter``."""
    return sql_text("\\Q" + delimiter.replace("\\E", "\\E\\\\E\\Q") + "\\E")
