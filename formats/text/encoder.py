"""One line of text per record: Flink's ``SimpleStringEncoder``, with Spark's text of every type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from formats import columns, splitting
from formats.arrow import Text
from formats.errors import FormatError
from formats.splitting import Split
from formats.text import charsets, render
from formats.text import reader as text_reader
from formats.text.lines import LineEncoder
from formats.text.text_file import TextFile

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
        return text_reader.open_reader(TextFile(file=file, charset=self.charset), schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``Encoder.splits``: anywhere, without a look at the file."""
        return splitting.of_bytes(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``Encoder.open_split``; any ranges of bytes."""
        splitting.check(file, split)
        return text_reader.open_reader(TextFile(file=file, charset=self.charset, split=split), schema=schema)

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
