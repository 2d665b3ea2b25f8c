"""Lines of text back as one column of strings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from formats import columns
from formats.arrow import Text, pc
from formats.errors import FormatError
from formats.text import line_reader
from formats.text.text_file import TextFile


def by_line_feeds(lines: Text) -> Text:
    """The lines of the only value of ``lines``, and nothing behind the last line feed."""
    values = pc.split_pattern(lines, "\n").flatten()
    return values.slice(0, len(values) - 1)


def by_any_ends(lines: Text) -> Text:
    """As ``by_line_feeds``, with carriage returns before them, and alone, as ends of lines as well."""
    if pc.match_substring(lines, "\r")[0].as_py():
        lines = pc.replace_substring(pc.replace_substring(lines, "\r\n", "\n"), "\r", "\n")
    return by_line_feeds(lines)


def open_reader(
    text: TextFile, *, schema: pa.Schema | None, cut: Callable[[Text], Text] = by_line_feeds
) -> pa.RecordBatchReader:
    """See ``Encoder.open_reader``.

    Args:
        text: the file, or a split of it.
        schema: one column of strings; ``None`` for one of the name ``value``.
        cut: whole lines apart.
    """
    wanted = schema or pa.schema([("value", pa.string())])
    if len(wanted) != 1 or not columns.is_text(wanted.field(0).type):
        raise FormatError("text is read as one column of strings")

    def parse(lines: pa.Buffer) -> pa.RecordBatch:
        limits = pa.py_buffer(np.array([0, lines.size], np.int32).data)
        whole = pa.StringArray.from_buffers(1, limits, lines)
        return pa.RecordBatch.from_arrays([cut(whole).cast(wanted.field(0).type)], schema=wanted)

    return line_reader.open_lines(text, parse, schema=wanted)
