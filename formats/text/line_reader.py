"""Files of lines back as record batches: whole lines at a time, each parsed by the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats import columns, reading
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.text.text_file import TextFile

_BLOCK: Final = 1 << 20  # bytes read at a time
_FEED: Final = ord("\n")
IsKind = Callable[[Any], bool]
_PLAIN: Final[tuple[IsKind, ...]] = (
    *(columns.is_text, pt.is_boolean, pt.is_integer, pt.is_float32, pt.is_float64, pt.is_decimal128),
)

#: Makes a batch of some whole lines in UTF-8, each with its line feed; a line that is long comes alone.
Parse = Callable[[pa.Buffer], pa.RecordBatch]


def open_lines(text: TextFile, parse: Parse, *, schema: pa.Schema) -> pa.RecordBatchReader:
    """Batches of a file of lines.

    Args:
        text: the file, or a split of it.
        parse: makes a batch of ``schema``.
        schema: of the batches.

    Raises:
        FormatError: kind ``"value"``, from an iteration; the last line is cut off, a line is too long,
            or the bytes are none of ``charset``.
    """
    guard = guard_of(text.file)
    return reading.reader(schema, lambda: _batches(text, parse, schema, guard), wanted=None, guard=guard)


def require_schema(schema: pa.Schema | None, name: str) -> pa.Schema:
    """``schema``, which a format needs if its files do not say their types."""
    if schema is None:
        raise FormatError(
            f"{name} files do not say the types of their columns: give the schema they were written with",
            kind="option",
        )
    if len(set(schema.names)) < len(schema):
        raise FormatError(f"a schema for reading {name} must have each name only once", kind="option")
    return schema


def require_columns(
    schema: pa.Schema | None, name: str, *, others: Sequence[IsKind], advice: str = "read it as a string"
) -> pa.Schema:
    """``schema``, which has a column: without any, records could not be told from no records.

    Args:
        schema: of the reader's caller.
        name: of the format.
        others: the types that its text is read as, besides texts, numbers and truth values.
        advice: for columns of any other type.
    """
    found = require_schema(schema, name)
    if not len(found):
        raise FormatError(f"reading {name} needs at least one column", kind="option")
    for field in found:
        if not any(is_kind(field.type) for is_kind in (*_PLAIN, *others)):
            raise FormatError(
                f"column {field.name!r} of type {field.type} cannot be read from {name}: {advice}",
                kind="option",
            )
    return found


def _batches(text: TextFile, parse: Parse, schema: pa.Schema, guard: Guard) -> Iterator[pa.RecordBatch]:
    most = reading.most_rows(schema, guard)
    try:
        for lines in whole_lines(text, guard):
            for some in _at_most(lines, most):
                batch = parse(some)
                for start in range(0, batch.num_rows, most):
                    yield batch.slice(start, most)
    except UnicodeError as error:
        raise FormatError(f"the file is not text in {text.charset}", kind="value") from error


def _at_most(lines: pa.Buffer, most: int) -> Iterator[pa.Buffer]:
    """``lines``, so many at a time: the shortest of lines may become a record of many columns."""
    if lines.size <= most or lines.size > 2 * _BLOCK + 1:  # of such a size it is a single one
        yield lines
        return
    ends = 1 + np.flatnonzero(np.frombuffer(memoryview(lines), np.uint8) == _FEED)
    start = 0
    for end in (*ends[most - 1 : -1 : most].tolist(), lines.size):
        yield lines.slice(start, end - start)
        start = end


def whole_lines(text: TextFile, guard: Guard) -> Iterator[pa.Buffer]:
    """The text in UTF-8, cut behind line feeds; a long line comes alone.

    Raises:
        FormatError: kind ``"value"``; it does not end with a line feed, or a line is too long.
        UnicodeError: it is no text in its charset.
    """
    waiting = bytearray()
    for block in text.blocks(min(_BLOCK, guard.record)):
        first, end = block.find(b"\n") + 1, block.rfind(b"\n") + 1
        guard.check_record(len(waiting) + (first or len(block)), "a line")
        ends = (first, end) if len(waiting) > _BLOCK else (end,)
        start = 0
        for stop in ends:
            if stop > start:
                waiting += memoryview(block)[start:stop]
                yield pa.py_buffer(waiting)
                waiting, start = bytearray(), stop
        waiting += memoryview(block)[start:]
    if waiting:
        raise FormatError("the file is cut off in the middle of a line", kind="value")
