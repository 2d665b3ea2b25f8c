"""What all readers share: batches of bounded size, and records brought into the form that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.types as pt

from formats.errors import FormatError
from formats.evolution import check_readable_as

#: Most records, and about the most bytes in Arrow's form, that a reader hands over at a time.
BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 16 << 20


def rows_per_batch(size: int, rows: int) -> int:
    """How many of ``rows`` records that take ``size`` bytes together go into one batch; at least one."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * max(rows, 1) // max(size, 1)))


def exactly(file: BinaryIO, size: int) -> bytes:
    """``size`` bytes, in steps, so that a false size costs no more memory than the file has bytes.

    Raises:
        EOFError: there are fewer.
    """
    pieces = []
    while size:
        piece = file.read(min(size, BATCH_BYTES))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def with_thousandths(kind: Any) -> Any:
    """The type to parse text as: times have thousandths of seconds, which Arrow takes for no seconds."""
    return pa.timestamp("ms", kind.tz) if pt.is_timestamp(kind) and kind.unit == "s" else kind


def reader(
    schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], *, wanted: pa.Schema | None
) -> pa.RecordBatchReader:
    """Batches of a file as a reader, with the columns and types of ``wanted``.

    Args:
        schema: of the file.
        batches: starts to read; called at the first batch.
        wanted: ``None`` for ``schema``.

    Raises:
        FormatError: kind ``"schema"``; the file's columns cannot become those of ``wanted``.
    """
    target = schema if wanted is None else wanted
    check_readable_as(schema, target)
    return pa.RecordBatchReader.from_batches(target, _checked(batches, target))


def _checked(batches: Callable[[], Iterator[pa.RecordBatch]], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for batch in batches():
            yield conformed(batch, target)
    except FormatError:
        raise
    except (pa.ArrowException, EOFError) as error:
        raise FormatError(f"the file is damaged or cut off ({type(error).__name__})", kind="value") from error


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The records of ``batch`` as ``schema`` wants them; ``check_readable_as`` has accepted both."""
    if batch.schema.equals(schema):
        return batch
    columns = [_column(batch, field) for field in schema]
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: Any) -> Any:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    try:
        return column if column.type == field.type else column.cast(field.type)
    except pa.ArrowException as error:
        raise FormatError(
            f"column {field.name!r} of type {column.type} holds values that {field.type} cannot take",
            kind="value",
        ) from error
