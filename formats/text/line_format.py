"""Lines of text that anybody has written: PyFlink's ``StreamFormat.text_line_format``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from formats import splitting
from formats.api import ReadableFormat
from formats.splitting import Split
from formats.text import charsets
from formats.text import reader as text_reader
from formats.text.text_file import LastLine, TextFile


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLineFormat(ReadableFormat):
    r"""One column of strings, ``value`` unless a schema names it; a line is a record, an empty one too.

    Lines end as for Java's ``BufferedReader``: with ``\n``, ``\r\n`` or ``\r``, which is in no value, and the
    last one may end with the file. ``Encoder.simple_string_encoder`` reads what it has written and is
    stricter: there lines end with ``\n``, all of them, and a ``\r`` belongs to its value. In a file without
    a ``\n`` everything counts as one line for ``ReadLimits.record`` and for splits.

    Attributes:
        charset: a Python codec without a byte order mark, such as ``"UTF-16-LE"``. A mark at the beginning
            of a file belongs to its first line.

    Raises:
        FormatError: kind ``"option"``; the charset is unknown or its lines do not stand for themselves.
    """

    charset: str = "UTF-8"

    def __post_init__(self) -> None:
        """Check the charset and take its canonical name."""
        object.__setattr__(self, "charset", charsets.canonical(self.charset))

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_reader``."""
        return self._open(file, None, schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``ReadableFormat.splits``: anywhere, without a look at the file."""
        return splitting.of_bytes(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_split``; any ranges of bytes."""
        splitting.check(file, split)
        return self._open(file, split, schema)

    def _open(self, file: BinaryIO, split: Split | None, schema: pa.Schema | None) -> pa.RecordBatchReader:
        text = TextFile(file=file, charset=self.charset, split=split, last_line=LastLine.MAY_LACK_FEED)
        return text_reader.open_reader(text, schema=schema, cut=text_reader.by_any_ends)
