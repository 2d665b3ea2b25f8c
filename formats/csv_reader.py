"""CSV back as record batches, by Arrow's parser."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.types as pt

from formats import columns, line_reader, reading
from formats.csv_escapes import Doubled
from formats.errors import FormatError

if TYPE_CHECKING:
    from formats.csv import CsvEncoder

_BLOCK: Final = 4 << 20  # bytes that are parsed at a time; longer records need larger blocks
_LARGEST: Final = 1 << 30
_TOO_LONG: Final = "straddling"  # what Arrow says of a record that is longer than a block


def open_reader(file: BinaryIO, *, encoder: CsvEncoder, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """See ``Encoder.open_reader``; ``schema`` is needed, and lists the columns in their order."""
    wanted = line_reader.require_schema(schema, "CSV")
    dialect = encoder.dialect
    patterns = encoder.values.date_format or encoder.values.timestamp_format
    if len(dialect.delimiter.encode()) > 1 or patterns:
        raise FormatError(
            "only CSV with a delimiter of one byte and with times in ISO 8601 can be read back here; Spark "
            "reads the others",
            kind="option",
        )
    for field in wanted:
        _check(field.type, field.name)
    return reading.reader(wanted, lambda: _decoded(file, encoder, wanted), wanted=None)


def _decoded(file: BinaryIO, encoder: CsvEncoder, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        yield from _batches(file, encoder, schema)
    except UnicodeError as error:
        raise FormatError(f"the file is not text in {encoder.charset}", kind="value") from error


def _batches(file: BinaryIO, encoder: CsvEncoder, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """From the beginning again, with larger blocks, where a record is longer than a block."""
    size, done = _BLOCK, 0
    while True:
        skipped = 0
        try:
            for batch in _parsed_batches(file, encoder, schema, size):
                known = min(done - skipped, batch.num_rows)
                skipped += known
                conformed = reading.conformed(batch.slice(known), schema)
                for start in range(0, conformed.num_rows, reading.BATCH_ROWS):
                    piece = conformed.slice(start, reading.BATCH_ROWS)
                    yield piece
                    done += piece.num_rows
                    skipped += piece.num_rows
        except pa.ArrowInvalid as error:
            if _TOO_LONG not in str(error) or size >= _LARGEST:
                raise
            size = min(8 * size, _LARGEST)
        else:
            return


def _parsed_batches(
    file: BinaryIO, encoder: CsvEncoder, schema: pa.Schema, block_size: int
) -> Iterator[pa.RecordBatch]:
    file.seek(0)
    if not file.read(1):  # no header and no records; Arrow's parser wants one or the other
        return
    file.seek(0)
    dialect, charset = encoder.dialect, encoder.charset
    if dialect.escape != dialect.quote:
        doubled = Doubled(file, charset=charset, quote=dialect.quote, escape=dialect.escape)
        file, charset = io.BufferedReader(doubled), "utf-8"
    yield from pc.open_csv(
        file,
        read_options=pc.ReadOptions(
            use_threads=False,
            block_size=block_size,
            encoding=charset,
            column_names=schema.names,
            skip_rows=0 if encoder.header_mode == "none" else 1,
        ),
        parse_options=pc.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote,
            double_quote=True,
            escape_char=False,
            newlines_in_values=True,
            ignore_empty_lines=False,
        ),
        convert_options=pc.ConvertOptions(
            column_types=_types(schema),
            null_values=[encoder.values.null_value],
            strings_can_be_null=True,
            quoted_strings_can_be_null=dialect.quote_mode == "all",
        ),
    )


def _types(schema: pa.Schema) -> dict[str, Any]:
    """The types that Arrow's parser knows, from which the others are cast."""
    return {field.name: pa.string() if columns.is_text(field.type) else field.type for field in schema}


def _check(kind: pa.DataType, name: str) -> None:
    no_text = columns.is_binary(kind) or pt.is_duration(kind) or pt.is_dictionary(kind)
    if no_text or columns.is_nested(kind):
        raise FormatError(
            f"column {name!r} of type {kind} cannot be read from CSV: read it as a string", kind="option"
        )
