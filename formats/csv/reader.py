"""CSV back as record batches: pieces of whole records, each by Arrow's parser.

The columns of a file are those of its first record, with or without a header. So that one is looked at by
the reader of every split.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.types as pt

from formats import columns, reading
from formats.csv import records as csv_records
from formats.csv.options import CsvOptions
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.splitting import Split
from formats.text import line_reader
from formats.text.text_file import TextFile

_BEGINNING: Final = 16 << 10  # bytes read at a time of the first record, which most often is a header
_OF_A_COLUMN: Final = 1 << 10  # bytes of memory, whatever is in it
_IN_COLUMN: Final = re.compile(r"In CSV column #(\d+)")  # how Arrow says where a value is wrong


def open_reader(
    file: BinaryIO, *, options: CsvOptions, schema: pa.Schema | None, split: Split | None = None
) -> pa.RecordBatchReader:
    """See ``Encoder.open_reader`` and, for a split, ``Encoder.open_split``; ``schema`` is needed.

    With a header columns are taken by name. Without one they are those of ``schema`` in its order, of
    which a file may lack the last ones, and a byte order mark at its beginning is no part of a value.
    """
    wanted = line_reader.require_columns(
        schema, "CSV", others=(pt.is_date, pt.is_timestamp, pt.is_time, pt.is_null)
    )
    check_readable(options)
    parser = _Parser(options, wanted, guard_of(file))
    return reading.reader(wanted, lambda: _batches(file, parser, split), wanted=None, guard=parser.guard)


def check_readable(options: CsvOptions) -> None:
    """Raise ``FormatError`` of kind ``"option"`` if files of ``options`` cannot be read back here."""
    patterns = options.values.date_format or options.values.timestamp_format
    if len(options.dialect.delimiter.encode()) > 1 or patterns:
        raise FormatError(
            "only CSV with a delimiter of one byte and with times in ISO 8601 can be read back here; Spark "
            "reads the others",
            kind="option",
        )


def _batches(file: BinaryIO, parser: _Parser, split: Split | None) -> Iterator[pa.RecordBatch]:
    charset = parser.options.charset
    names: list[str] | None = None
    try:
        if split is not None and split.start > 0:
            beginning = TextFile(file=file, charset=charset, most=_BEGINNING)
            for first in islice(parser.pieces(beginning), 1):
                names, _ = parser.names(first)
        for piece in parser.pieces(TextFile(file=file, charset=charset, split=split)):
            begin, is_first = 0, names is None
            if names is None:
                names, begin = parser.names(piece)
            if begin < piece.size:
                records = piece.slice(begin)
                if begin or not is_first:
                    records = _with_mark(records)
                yield from parser.batches(records, names)
    except UnicodeError as error:
        raise FormatError(f"the file is not text in {charset}", kind="value") from error


def _with_mark(records: pa.Buffer) -> pa.Buffer:
    """Arrow's parser takes a byte order mark away, and one behind the beginning of a file is of a value."""
    mark = codecs.BOM_UTF8
    is_marked = records.slice(0, min(len(mark), records.size)).equals(pa.py_buffer(mark))
    return pa.py_buffer(mark + records.to_pybytes()) if is_marked else records


@dataclass(frozen=True, slots=True)
class _Parser:
    """Arrow's parser with the options of a file."""

    options: CsvOptions
    schema: pa.Schema
    guard: Guard

    def pieces(self, text: TextFile) -> Iterator[pa.Buffer]:
        """Whole records, some at a time."""
        dialect = self.options.dialect
        if not dialect.quotes():
            return line_reader.whole_lines(text, self.guard)
        return csv_records.whole_records(text, quote=dialect.quote, escape=dialect.escape, guard=self.guard)

    def names(self, piece: pa.Buffer) -> tuple[list[str], int]:
        """The columns of a file that begins with ``piece``, and where its first record of values begins."""
        dialect = self.options.dialect
        count, end = csv_records.first_record(piece, quote=dialect.quotes(), delimiter=dialect.delimiter)
        if self.options.header_mode == "none":
            if count > len(self.schema):
                raise FormatError(f"the file has {count} columns, and the schema has {len(self.schema)}")
            return self.schema.names[:count], 0
        self.guard.check_record(count * _OF_A_COLUMN, "the header")
        places = [str(place) for place in range(count)]
        texts = dict.fromkeys(places, pa.string())
        header = self._table(piece.slice(0, end), places, pc.ConvertOptions(column_types=texts))
        names = [column[0].as_py() for column in header.columns]
        if len(set(names)) < len(names):
            raise FormatError("the header of the file names a column twice")
        return names, end

    def batches(self, piece: pa.Buffer, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of a piece, as the schema wants them."""
        values, quote_mode = self.options.values, self.options.dialect.quote_mode
        found = [field for field in self.schema if field.name in names]
        # A record of one column is quoted lest it be an empty line; else quotes tell '' from null.
        is_lonely = len(names) == 1 and not any(columns.is_text(field.type) for field in found)
        options = pc.ConvertOptions(
            column_types={field.name: _parsed(field.type) for field in found},
            include_columns=[field.name for field in found],
            null_values=[values.null_value],
            strings_can_be_null=True,
            quoted_strings_can_be_null=quote_mode == "all" or bool(values.null_value) or is_lonely,
        )
        try:
            table = self._table(piece, names, options)
        except pa.ArrowInvalid as error:
            where = _IN_COLUMN.search(str(error))
            if where is None:
                raise
            name = names[int(where[1])]
            kind = self.schema.field(name).type
            raise FormatError(f"column {name!r} holds text that is no {kind}", kind="value") from error
        for batch in table.to_batches(max_chunksize=reading.most_rows(self.schema, self.guard)):
            yield reading.conformed(batch, self.schema)

    def _table(self, piece: pa.Buffer, names: Sequence[str], options: pc.ConvertOptions) -> pa.Table:
        dialect = self.options.dialect
        source: Any = pa.BufferReader(piece)
        return pc.read_csv(
            source,
            read_options=pc.ReadOptions(
                use_threads=False, block_size=piece.size + 1, column_names=list(names)
            ),
            parse_options=pc.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quotes() or False,
                double_quote=True,
                escape_char=False,
                newlines_in_values=True,
                ignore_empty_lines=False,
            ),
            convert_options=options,
        )


def _parsed(kind: Any) -> Any:
    """The type that Arrow's parser makes of it, from which it is cast."""
    return pa.string() if columns.is_text(kind) else reading.with_fractions(kind)
