"""Comma-separated values: by RFC 4180, or as Spark writes them, without three of its losses.

Rules: a field is quoted if it holds the delimiter, a quote or a line break, or if the first field of a
line begins with ``#``; inside quotes, quote and escape characters are preceded by the escape character:
the quote itself by default, as RFC 4180 and nearly all readers have it, and a backslash in Spark's
dialect. Null is the null value (nothing by default), an empty string is ``""``. Lines end with a line feed
alone. Timestamps are ISO 8601 with microseconds.

Unlike Spark's, timestamps keep their microseconds and strings the spaces at their ends, and a record of
one null column is written as ``""``, since readers skip empty lines. And ``x:`` is quoted before the
delimiter ``::``, which would be found in it a character too early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats import columns, evolution, spark_only_types, splitting, sql
from formats.arrow import Mask, Text, pc
from formats.csv import boundaries
from formats.csv import reader as csv_reader
from formats.csv.dialect import BREAKS
from formats.csv.options import CsvOptions
from formats.errors import FormatError
from formats.splitting import Split
from formats.text import render, temporal
from formats.text.lines import LineEncoder

_COMMENT: Final = "#"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvEncoder(CsvOptions, LineEncoder):
    """Comma-separated values; see the module for the rules, and ``CsvOptions`` for the attributes."""

    extension = ".csv"

    def header(self, schema: pa.Schema) -> bytes:
        """The line of column names, or nothing; see ``Encoder.header``."""
        if self.header_mode == "none":
            return b""
        names = pa.RecordBatch.from_pylist([{str(i): name for i, name in enumerate(schema.names)}])
        return bytes(self.encode(names))

    def lines(self, batch: pa.RecordBatch) -> Text:
        """See ``LineEncoder.lines``."""
        fields = [self._field(batch, position) for position in range(batch.num_columns)]
        if len(fields) == 1:
            if self.dialect.quote_mode == "none" and pc.any(pc.equal(fields[0], "")).as_py():
                raise FormatError(
                    f"column {batch.schema.names[0]!r} has a value that would be an empty line, and "
                    "quote_mode is 'none'",
                    kind="value",
                )
            lonely = pa.scalar(self.dialect.quote * 2)
            return pc.if_else(pc.equal(fields[0], ""), lonely, fields[0])
        return pc.binary_join_element_wise(*fields, self.dialect.delimiter)

    def sql_expression(self, schema: pa.Schema) -> str | None:
        """See ``Encoder.sql_expression``; ``None`` where Spark would write what cannot be read back."""
        dialect, values = self.dialect, self.values
        spark_differs = dialect.quote_mode == "minimal" and dialect.early_ends()
        if len(schema) == 1 or dialect.quote_mode == "none" or spark_differs:
            return None
        options = {
            "sep": dialect.delimiter,
            "quote": dialect.quote,
            "escape": dialect.escape,
            "quoteAll": str(dialect.quote_mode == "all").lower(),
            "nullValue": values.null_value,
            "emptyValue": dialect.quote * 2,
            "timestampFormat": values.timestamp_format or temporal.SPARK_TIMESTAMP,
            "timestampNTZFormat": values.timestamp_format or temporal.SPARK_TIMESTAMP_NTZ,
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
        }
        if values.date_format is not None:
            options["dateFormat"] = values.date_format
        return f"to_csv({sql.struct(schema.names)}, {sql.options(options)})"

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``Encoder.open_reader``."""
        return csv_reader.open_reader(file, options=self, schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``Encoder.splits``; reads the file, as ``formats.csv.boundaries`` says."""
        csv_reader.check_readable(self)
        return boundaries.splits(file, target=target, options=self)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``Encoder.open_split``. Reads the first record of the file, too.

        Ranges of your own may end anywhere but in a record that has a line feed in quotes.
        """
        splitting.check(file, split)
        return csv_reader.open_reader(file, options=self, schema=schema, split=split)

    def signature(self) -> str:
        """See ``Encoder.signature``."""
        return f"csv {self.dialect} header={self.header_mode} {self.values} charset={self.charset}"

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``Encoder.check_schema``: at least one column, and none that is nested."""
        if not len(schema):
            raise FormatError("CSV needs at least one column")
        spark_only_types.refuse(schema)
        for column in schema:
            if columns.is_nested(column.type):
                raise FormatError(
                    f"column {column.name!r} of type {column.type} does not fit into CSV: use to_json"
                )
            render.check_scalar(column.type, path=column.name)
            pattern = self.values.pattern(column.type)
            if pattern is not None and pattern.has_offset and column.type.tz is None:
                raise FormatError(
                    f"column {column.name!r} has no zone, and timestamp_format wants its offset"
                )

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Encoder.check_continues``: readers tell columns by their place, and times by one pattern."""
        evolution.check_continues(old, new)
        evolution.check_places(old, new)
        if self.values.date_format is not None or self.values.timestamp_format is not None:
            _check_days(old, new)

    def _field(self, batch: pa.RecordBatch, position: int) -> Text:
        column = batch.column(position)
        text = self.values.text(column)
        if self.dialect.quote_mode == "all":
            text = self.dialect.quoted(text)
        elif self._may_be_special(column.type):
            text = self._quoted(text, position, name=batch.schema.names[position])
        return text.fill_null(self._null(position)) if text.null_count else text

    def _may_be_special(self, kind: pa.DataType) -> bool:
        is_text = columns.is_text(kind.value_type if pt.is_dictionary(kind) else kind)
        return is_text or self.values.pattern(kind) is not None or self.dialect.is_in_numbers()

    def _null(self, position: int) -> str:
        null = pa.array([self.values.null_value])
        if self.dialect.quote_mode == "all":
            return str(self.dialect.quoted(null)[0])
        return str(self._quoted(null, position, name="null_value")[0]) if self.values.null_value else ""

    def _quoted(self, text: Text, position: int, *, name: str) -> Text:
        """The text with quotes where needed."""
        if not _may_need_quotes(text, self.dialect.specials() + _COMMENT):
            return text
        needs = self._needs_quotes(text, position)
        if not pc.any(needs).as_py():
            return text
        if self.dialect.quote_mode == "none":
            raise FormatError(
                f"column {name!r} holds a value that needs quotes, and quote_mode is 'none'", kind="value"
            )
        return pc.if_else(needs, self.dialect.quoted(text), text)

    def _needs_quotes(self, text: Text, position: int) -> Mask:
        # Without quotes an empty string is nothing; whoever asks for none has asked for that.
        needs = pc.and_(pc.equal(text, ""), self.dialect.quote_mode != "none")
        for special in (self.dialect.delimiter, self.dialect.quote, *BREAKS):
            needs = pc.or_(needs, pc.match_substring(text, special))
        for end in self.dialect.early_ends():
            needs = pc.or_(needs, pc.ends_with(text, end))
        if position == 0:
            needs = pc.or_(needs, pc.starts_with(text, _COMMENT))
        return needs


def _check_days(old: pa.Schema, new: pa.Schema) -> None:
    """Raise if days become times: by its pattern Spark finds no time in a day, and makes null of it."""
    for before, after in zip(old, new, strict=False):
        if pt.is_date(before.type) and pt.is_timestamp(after.type):
            raise FormatError(
                f"column {after.name!r} was a date and cannot become a timestamp where date_format or "
                "timestamp_format is set, as readers would make null of the dates: cast it to date"
            )


def _may_need_quotes(text: Text, characters: str) -> bool:
    """A look at the bytes, much cheaper than at the values, that settles most columns."""
    wanted = np.zeros(256, np.bool_)
    wanted[[character.encode()[0] for character in characters]] = True
    starts = columns.offsets(text)
    return bool((starts[1:] == starts[:-1]).any() or wanted[columns.data_array(text)].any())
