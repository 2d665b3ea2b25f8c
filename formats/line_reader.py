"""Files of lines back as record batches: whole lines at a time, each parsed by the format."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import pyarrow as pa

from formats import reading
from formats.errors import FormatError

_BLOCK: Final = 1 << 20  # bytes read at a time
_LONGEST: Final = 1 << 30  # bytes of one line, beyond which a file is no file of lines

Parse = Callable[[str], pa.RecordBatch]


def open_lines(
    file: BinaryIO, parse: Parse, *, schema: pa.Schema, charset: str = "utf-8"
) -> pa.RecordBatchReader:
    """Batches of a file of lines.

    Args:
        file: read from its beginning.
        parse: makes a batch of ``schema`` of some whole lines, each with its line feed.
        schema: of the batches.
        charset: of the file.

    Raises:
        FormatError: kind ``"value"``, from an iteration; the last line is cut off, a line is too long,
            or the bytes are none of ``charset``.
    """
    return reading.reader(schema, lambda: _batches(file, parse, charset), wanted=None)


def require_schema(schema: pa.Schema | None, name: str) -> pa.Schema:
    """``schema``; a format whose files do not say their types cannot do without."""
    if schema is None:
        raise FormatError(
            f"{name} files do not say the types of their columns: give the schema they were written with",
            kind="option",
        )
    if len(set(schema.names)) < len(schema):
        raise FormatError(f"a schema to read {name} with has each name once", kind="option")
    return schema


def require_columns(schema: pa.Schema | None, name: str) -> pa.Schema:
    """``schema``, which has a column; records of a format without any are not to be told from none."""
    found = require_schema(schema, name)
    if not len(found):
        raise FormatError(f"{name} is read with at least one column", kind="option")
    return found


def _batches(file: BinaryIO, parse: Parse, charset: str) -> Iterator[pa.RecordBatch]:
    try:
        for lines in whole_lines(file, charset):
            batch = parse(lines)
            for start in range(0, batch.num_rows, reading.BATCH_ROWS):
                yield batch.slice(start, reading.BATCH_ROWS)
    except UnicodeError as error:
        raise FormatError(f"the file is not text in {charset}", kind="value") from error


def whole_lines(file: BinaryIO, charset: str) -> Iterator[str]:
    """The text of ``file``, cut behind line feeds.

    Raises:
        FormatError: kind ``"value"``; it does not end with a line feed, or holds none for a gibibyte.
        UnicodeError: it is no text in ``charset``.
    """
    decoder = codecs.getincrementaldecoder(charset)()
    waiting: list[str] = []
    size = 0
    while block := file.read(_BLOCK):
        head, feed, tail = decoder.decode(block).rpartition("\n")
        if feed:
            yield "".join((*waiting, head, feed))
            waiting, size = [], 0
        waiting.append(tail)
        size += len(tail)
        if size > _LONGEST:
            raise FormatError("a line is longer than a gibibyte", kind="value")
    if any(waiting) or decoder.decode(b"", final=True):
        raise FormatError("the file is cut off in the middle of a line", kind="value")
