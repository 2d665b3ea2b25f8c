"""One line of text per record: Flink's ``SimpleStringEncoder``, with Spark's text of every type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa

from formats import columns
from formats.arrow import Text, pc
from formats.errors import FormatError
from formats.text import charsets, line_reader, render
from formats.text.lines import LineEncoder

if TYPE_CHECKING:
    from formats.api import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEncoder(LineEncoder):
    """The value of the only column, then a line feed. Null is an empty line, as in Spark's text writer.

    Strings (and bytes, with UTF-8) are written as they are, even if they hold line feeds; other types
    with the text that Spark's ``cast(... as string)`` gives.

    Attributes:
        charset: a Python codec that needs no byte order mark and no memory between lines.

    Raises:
        FormatError: kind ``"option"``; the charset is unknown or cannot be written line by line.
    """

    charset: str = "UTF-8"

    def __post_init__(self) -> None:
        """Check the charset and take its canonical name, so that equal charsets have equal signatures."""
        object.__setattr__(self, "charset", charsets.canonical(self.charset))

    def lines(self, batch: pa.RecordBatch) -> Text:
        """The column; see ``LineEncoder.lines``."""
        text = render.text(batch.column(0), style=render.Style.CAST)
        return text.fill_null(pa.scalar("", text.type)) if text.null_count else text

    def as_text(self, lines: Buffer) -> Buffer:
        """See ``LineEncoder.as_text``: bytes stay what they are, as in Spark's text writer."""
        return lines

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``Encoder.open_reader``: one column of strings, ``value`` unless ``schema`` names it."""
        wanted = schema or pa.schema([("value", pa.string())])
        if len(wanted) != 1 or not columns.is_text(wanted.field(0).type):
            raise FormatError("text is read as one column of strings")

        def parse(lines: pa.Buffer) -> pa.RecordBatch:
            limits = pa.py_buffer(np.array([0, lines.size - 1], np.int32).data)
            text = pa.Array.from_buffers(pa.string(), 1, [None, limits, lines])
            values = pc.split_pattern(text, "\n").flatten()
            return pa.RecordBatch.from_arrays([values.cast(wanted.field(0).type)], schema=wanted)

        return line_reader.open_lines(file, parse, schema=wanted, charset=self.charset)

    def signature(self) -> str:
        """See ``Encoder.signature``."""
        return f"text charset={self.charset}"

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Encoder.check_continues``: a line is a line, whatever the column was."""
        del old, new

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``Encoder.check_schema``: exactly one column that is not nested."""
        if len(schema) != 1:
            raise FormatError(
                f"the text format writes one column and there are {len(schema)}: select one, or use CSV"
            )
        field = schema.field(0)
        if columns.is_nested(field.type):
            raise FormatError(f"column {field.name!r} of type {field.type} has no plain text: use to_json")
        render.check_scalar(field.type, path=field.name)
