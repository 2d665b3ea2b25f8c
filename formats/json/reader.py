"""JSON lines back as record batches.

Arrow's parser reads what JSON has types for; dates and times are text in JSON and are cast. What has
more than one form there (bytes, maps, times of day, intervals) is refused rather than guessed.
"""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from formats import columns, reading
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.splitting import Split
from formats.text import line_reader
from formats.text.text_file import TextFile

_OF_AN_ITEM: Final = 16  # bytes of memory of each column in it, while it is parsed
_PIECE: Final = 1 << 20  # bytes that are looked at together
_COMMA: Final = ord(",")


def open_reader(
    file: BinaryIO, *, schema: pa.Schema | None, split: Split | None = None
) -> pa.RecordBatchReader:
    """See ``Encoder.open_reader`` and, for a split, ``Encoder.open_split``; ``schema`` is needed."""
    wanted = line_reader.require_schema(schema, "JSON")
    for path, field in columns.walk(wanted):
        _check(field.type, path)
    parsed = pa.schema(
        [field.with_type(_as_parsed(field.type)).with_nullable(nullable=True) for field in wanted]
    )
    guard = guard_of(file)
    of_an_item = _OF_AN_ITEM * max((_items(field.type) for field in parsed), default=0)

    def parse(lines: pa.Buffer) -> pa.RecordBatch:
        if of_an_item and lines.size * of_an_item > guard.record:
            _check_items(lines, of_an_item, guard)
        return _parse(lines, parsed, wanted)

    return line_reader.open_lines(TextFile(file=file, split=split), parse, schema=wanted)


def _items(kind: Any) -> int:
    """Columns that an item of a list has, in the list of ``kind`` where that is most; 0 without lists."""
    inner = [field.type for _, field in columns.children(pa.field("", kind), path="")]
    own = sum(1 for _ in columns.walk(pa.schema([pa.field("", kind)]))) if columns.is_list(kind) else 0
    return max([own, *map(_items, inner)])


def _check_items(lines: pa.Buffer, of_an_item: int, guard: Guard) -> None:
    """Raise if the items of lists, each of them a comma, might take too much; some take two bytes of text."""
    commas = 0
    for start in range(0, lines.size, _PIECE):
        piece = np.frombuffer(memoryview(lines)[start : start + _PIECE], np.uint8)
        commas += int(np.count_nonzero(piece == _COMMA))
    guard.check_record(lines.size + commas * of_an_item, "a record with all the items of its lists")


def _parse(lines: pa.Buffer, parsed: pa.Schema, wanted: pa.Schema) -> pa.RecordBatch:
    source: Any = pa.BufferReader(lines)
    table = pj.read_json(
        source,
        read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pj.ParseOptions(explicit_schema=parsed, unexpected_field_behavior="ignore"),
    )
    if not len(wanted):
        nothing: Any = pa.array([{}] * table.num_rows, pa.struct([]))
        return pa.RecordBatch.from_struct_array(nothing)
    arrays: list[Any] = [_cast(table.column(field.name).combine_chunks(), field) for field in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _cast(column: Any, field: Any) -> Any:
    try:
        if column.type == field.type:
            return column
        return column.cast(columns.nullable(field, reading.with_fractions).type).cast(field.type)
    except pa.ArrowException as error:
        raise FormatError(
            f"column {field.name!r} holds text that is no {field.type}", kind="value"
        ) from error


def _check(kind: pa.DataType, path: str) -> None:
    if (
        columns.is_binary(kind)
        or pt.is_map(kind)
        or pt.is_time(kind)
        or pt.is_duration(kind)
        or pt.is_dictionary(kind)
    ):
        raise FormatError(
            f"column {path!r} of type {kind} cannot be read from JSON: read it as a string", kind="option"
        )


def _as_parsed(kind: Any) -> Any:
    """The type that Arrow's parser makes of it, from which it is cast."""
    if pt.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return pa.struct(
            [field.with_type(_as_parsed(field.type)).with_nullable(nullable=True) for field in fields]
        )
    if columns.is_list(kind):
        return pa.list_(_as_parsed(kind.value_type))
    if pt.is_temporal(kind) or columns.is_text(kind):
        return pa.string()
    return kind
