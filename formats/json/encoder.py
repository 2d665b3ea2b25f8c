"""One JSON object per line, as Spark's ``to_json`` writes it, but that microseconds are not cut off.

Rules, all but one Spark's: a null field of a struct is left out, a null in a list or map is ``null``; NaN and
infinities are strings; bytes are base64; timestamps are ISO 8601 with microseconds and offset; keys
of maps are Spark's internal value (days for dates, microseconds for timestamps and intervals, nanoseconds
for times of day).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats import columns, spark_only_types, splitting, sql
from formats.arrow import Column, Mask, Text, pc
from formats.errors import FormatError
from formats.json import reader as json_reader
from formats.splitting import Split
from formats.text import render, temporal
from formats.text.lines import MAX_TEXT, LineEncoder

_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    8: "\\b",
    9: "\\t",
    10: "\\n",
    12: "\\f",
    13: "\\r",
    _QUOTE: '\\"',
    _BACKSLASH: "\\\\",
}


@dataclass(frozen=True, slots=True)
class JsonLinesEncoder(LineEncoder):
    """One JSON object per record and line; see the module for the rules."""

    extension = ".json"

    def lines(self, batch: pa.RecordBatch) -> Text:
        """See ``LineEncoder.lines``."""
        if not batch.num_columns:
            return pa.array(["{}"] * batch.num_rows)
        return _objects(batch.schema.names, batch.columns)

    def sql_expression(self, schema: pa.Schema) -> str | None:
        """See ``Encoder.sql_expression``."""
        if not len(schema):
            return None
        options = {
            "ignoreNullFields": "true",
            "timestampFormat": temporal.SPARK_TIMESTAMP,
            "timestampNTZFormat": temporal.SPARK_TIMESTAMP_NTZ,
        }
        return f"to_json({sql.struct(schema.names)}, {sql.options(options)})"

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``Encoder.open_reader``."""
        return json_reader.open_reader(file, schema=schema)

    def splits(self, file: BinaryIO, *, target: int) -> list[Split]:
        """See ``Encoder.splits``: anywhere, without a look at the file."""
        return splitting.of_bytes(file, target=target)

    def open_split(
        self, file: BinaryIO, split: Split, *, schema: pa.Schema | None = None
    ) -> pa.RecordBatchReader:
        """See ``Encoder.open_split``; any ranges of bytes."""
        splitting.check(file, split)
        return json_reader.open_reader(file, schema=schema, split=split)

    def signature(self) -> str:
        """See ``Encoder.signature``."""
        return "json lines"

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``Encoder.check_schema``."""
        spark_only_types.refuse(schema)
        for path, field in columns.walk(schema):
            kind = field.type
            if pt.is_map(kind):
                _check_key(kind.key_type, path=path)
            elif not (pt.is_struct(kind) or columns.is_list(kind)):
                render.check_scalar(kind, path=path)


def escaped(column: Text) -> Text:
    """The values with JSON's escapes; the very same array if there is nothing to escape."""
    data = columns.data_array(column)
    special = data[(data < ord(" ")) | (data == _QUOTE) | (data == _BACKSLASH)]
    if not len(special):
        return column
    if len(data) > MAX_TEXT:  # Arrow's replacement would not notice that its result is too long
        raise pa.ArrowCapacityError("text may exceed 2 GiB when it is escaped")
    present = np.flatnonzero(np.bincount(special)).tolist()
    for code in sorted(present, key=lambda code: code != _BACKSLASH):  # a later pass must not see new ones
        escape = _ESCAPES[code]
        column = pc.replace_substring(column, chr(code), escape)
    return column


def _check_key(kind: pa.DataType, *, path: str) -> None:
    plain = columns.without_dictionary(kind)
    if columns.is_nested(plain) or columns.is_binary(plain):
        raise FormatError(f"map {path!r} has keys of type {kind}, which JSON cannot hold: make them strings")


def _objects(names: Sequence[str], fields: Sequence[Column]) -> Text:
    """``{"a":1,"b":2}`` per row, without the fields that are null there."""
    pieces: list[Column | str] = []
    for name, field in zip(names, fields, strict=True):
        text, quote = _value(field)
        key = f',"{name.translate(_ESCAPES)}":{quote}'
        piece = [key, text, quote] if quote else [key, text]
        pieces += [pc.binary_join_element_wise(*piece, "")] if text.null_count else piece
    if isinstance(pieces[0], str):  # the first field is in every row, so no row begins with a comma
        pieces[0] = "{" + pieces[0][1:]
        return pc.binary_join_element_wise(*pieces, "}", "", null_handling="skip")
    # Arrow drops a row of nulls in an all-null join with "skip"; a piece that is never null prevents it.
    body = pc.binary_join_element_wise("", *pieces, "", null_handling="skip")
    return pc.binary_join_element_wise(pc.binary_replace_slice(body, 0, 1, "{"), "}", "")


def _value(column: Column) -> tuple[Text, str]:
    """The text of each value, null where it is null, and the quote that belongs around all of them."""
    column = columns.plain(column)
    kind = column.type
    if pt.is_struct(kind):
        return _struct(column), ""
    if pt.is_map(kind):
        return _map(column), ""
    if columns.is_list(kind):
        return _list(column), ""
    text = render.text(column, style=render.Style.JSON)
    if pt.is_string(kind):
        return escaped(text), '"'
    if pt.is_floating(kind):
        return _quoted_where(text, pc.invert(pc.is_finite(column))), ""
    return text, "" if _is_bare(kind) else '"'


def _is_bare(kind: pa.DataType) -> bool:
    return bool(pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_null(kind))


def _quoted_where(text: Text, mask: Mask) -> Text:
    if not pc.any(mask).as_py():
        return text
    return pc.if_else(mask, pc.binary_join_element_wise('"', text, '"', ""), text)


def _element(column: Column) -> Text:
    """The text of elements of a list or values of a map, ``null`` for null."""
    text, quote = _value(column)
    if quote:
        text = pc.binary_join_element_wise(quote, text, quote, "")
    return text.fill_null("null") if text.null_count else text


def _struct(column: Column) -> Text:
    names = [column.type.field(index).name for index in range(column.type.num_fields)]
    if not names:
        return _where_valid(pa.array(["{}"] * len(column), pa.string()), column)
    return _where_valid(_objects(names, column.flatten()), column)


def _list(column: Column) -> Text:
    if pt.is_fixed_size_list(column.type) or pt.is_large_list(column.type):
        column = column.cast(pa.list_(column.type.value_field))
    start, stop = _span(column)
    return _joined(column, _element(column.values.slice(start, stop - start)), "[", "]")


def _map(column: Column) -> Text:
    start, stop = _span(column)
    keys = _key(column.keys.slice(start, stop - start))
    entries = pc.binary_join_element_wise(keys, _element(column.items.slice(start, stop - start)), ":")
    return _joined(column, entries, "{", "}")


def _key(column: Column) -> Text:
    column = columns.plain(column)
    if pt.is_temporal(column.type):
        column = _internal(column)
    text = render.text(column, style=render.Style.JSON)
    return pc.binary_join_element_wise('"', escaped(text), '"', "")


def _internal(column: Column) -> Column:
    """The number that a date or time is inside of Spark."""
    kind: Any = column.type
    if pt.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32())
    if pt.is_time(kind):
        return column.cast(pa.time64("ns")).cast(pa.int64())
    micros = pa.duration("us") if pt.is_duration(kind) else pa.timestamp("us", kind.tz)
    return column.cast(micros, safe=False).cast(pa.int64())


def _span(column: Column) -> tuple[int, int]:
    """First and last position of the elements of a list or map column, which may be a slice."""
    offsets = column.offsets
    return (offsets[0].as_py(), offsets[-1].as_py()) if len(column) else (0, 0)


def _joined(column: Column, elements: Text, start: str, end: str) -> Text:
    """One text per list from one text per element."""
    positions = np.zeros(1, np.int32) if not len(column) else column.offsets.to_numpy()
    texts = pa.ListArray.from_arrays(pa.array(positions - positions[0], pa.int32()), elements)
    joined = pc.binary_join_element_wise(start, pc.binary_join(texts, ","), end, "")
    return _where_valid(joined, column)


def _where_valid(text: Text, column: Column) -> Text:
    return pc.if_else(column.is_valid(), text, None) if column.null_count else text
