"""One scalar Arrow column as one column of text, exactly as Spark writes its values.

Null stays null. Nothing here adds quotes or escapes; that is the business of each format.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.arrow import Column, Text
from formats.errors import FormatError
from formats.text import binary_text, numbers, temporal
from formats.text.zones import parse_zone


class Style(Enum):
    """Whose text: they differ for timestamps, decimals and bytes."""

    CAST = "cast"
    CSV = "csv"
    JSON = "json"


def text(column: Column, *, style: Style) -> Text:
    """The text of every value of a column that ``check_scalar`` accepts.

    Returns:
        As many values as ``column`` has. With ``Style.CAST``, binary columns stay binary: their
        bytes are the text.
    """
    column = columns.plain(column)
    kind = column.type
    if pt.is_string(kind):
        return column
    if pt.is_floating(kind):
        return numbers.float_text(column)
    if pt.is_decimal(kind) and style is Style.CAST:
        return numbers.plain_decimal_text(column)
    if pt.is_binary(kind):
        return _binary(column, style=style)
    return _temporal(column, style=style) if pt.is_temporal(kind) else column.cast(pa.string())


def check_scalar(kind: pa.DataType, *, path: str) -> None:
    """Raise ``FormatError`` if columns of type ``kind`` have no text; ``path`` is the column's.

    Raises:
        FormatError: kind ``"schema"``; an interval of months, a nested type, or an unknown zone.
    """
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_timestamp(kind) and kind.tz is not None:
        parse_zone(kind.tz)
    if not (_has_cast(kind) or _is_temporal(kind) or columns.is_text(kind) or columns.is_binary(kind)):
        raise FormatError(f"column {path!r} of type {kind} cannot be written as text: cast it to string")


def _has_cast(kind: pa.DataType) -> bool:
    return bool(
        pt.is_null(kind)
        or pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_decimal(kind)
    )


def _is_temporal(kind: pa.DataType) -> bool:
    return bool(pt.is_date(kind) or pt.is_time(kind) or pt.is_timestamp(kind) or pt.is_duration(kind))


def _binary(column: Column, *, style: Style) -> Column:
    match style:
        case Style.CAST:
            return column
        case Style.CSV:
            return binary_text.hex_text(column)
        case Style.JSON:
            return binary_text.base64_text(column)


def _temporal(column: Column, *, style: Style) -> Text:
    if pt.is_date(column.type):
        return temporal.date_text(column)
    if pt.is_time(column.type):
        return temporal.time_text(column)
    if pt.is_duration(column.type):
        return temporal.duration_text(column)
    if style is Style.CAST:
        return temporal.cast_timestamp_text(column)
    return temporal.iso_timestamp_text(column)
