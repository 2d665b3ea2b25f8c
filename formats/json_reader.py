"""JSON lines back as record batches.

Arrow's parser reads what JSON has types for; dates and times are text in JSON and are cast. What has
more than one form there (bytes, maps, times of day, intervals) is refused rather than guessed.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from formats import columns, line_reader, reading
from formats.errors import FormatError


def open_reader(file: BinaryIO, *, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """See ``Encoder.open_reader``; ``schema`` is needed."""
    wanted = line_reader.require_schema(schema, "JSON")
    for path, field in columns.walk(wanted):
        _check(field.type, path)
    parsed = pa.schema(
        [field.with_type(_as_parsed(field.type)).with_nullable(nullable=True) for field in wanted]
    )
    return line_reader.open_lines(file, lambda lines: _parse(lines, parsed, wanted), schema=wanted)


def _parse(lines: str, parsed: pa.Schema, wanted: pa.Schema) -> pa.RecordBatch:
    data = lines.encode()
    source: Any = pa.BufferReader(data)
    table = pj.read_json(
        source,
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
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
