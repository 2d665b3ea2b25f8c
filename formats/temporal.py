"""Dates, times, timestamps and intervals as the text that Spark writes.

CSV and JSON get ISO 8601 with milliseconds, Spark's default ``timestampFormat``: what is finer is cut
off, as Spark does. ``cast`` gives every digit up to microseconds without trailing zeros.
"""

from __future__ import annotations

from datetime import UTC

import numpy as np
import pyarrow as pa

from formats.arrow import Column, Text, pc
from formats.zones import parse_zone, utc_offsets

_DATE_LENGTH = len("2024-07-01")
_TIMESTAMP_LENGTH = len("2024-07-01 12:34:56.123456")
_DAY_US = 86_400_000_000
_SECOND_US = 1_000_000


def date_text(column: Column) -> Text:
    """``2024-07-01``."""
    return _with_signed_year(column.cast(pa.date32()).cast(pa.string()), length=_DATE_LENGTH)


def time_text(column: Column) -> Text:
    """``01:02:03.5``."""
    return _without_zeros(column.cast(pa.time64("ns")).cast(pa.string()))


def cast_timestamp_text(column: Column) -> Text:
    """``2024-07-01 14:34:56.123456`` in the column's zone, as ``cast(... as string)``."""
    text, _ = wall_clock_text(column)
    return _without_zeros(text)


def wall_clock_text(column: Column) -> tuple[Text, Text | str | None]:
    """``2024-07-01 14:34:56.123456`` in the column's zone, and the offset, ``None`` if it has no zone."""
    local, offset = _local(column)
    return _with_signed_year(local.cast(pa.string()), length=_TIMESTAMP_LENGTH), offset


def iso_timestamp_text(column: Column) -> Text:
    """``2024-07-01T14:34:56.123+02:00`` in the column's zone, without offset if it has no zone."""
    text, offset = wall_clock_text(column)
    text = pc.replace_substring(pc.utf8_slice_codeunits(text, 0, -3), " ", "T", max_replacements=1)
    return text if offset is None else pc.binary_join_element_wise(text, offset, "")


def duration_text(column: Column) -> Text:
    """``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    micros = column.cast(pa.duration("us")).cast(pa.int64())
    size = pc.abs(micros)
    days = pc.divide(size, _DAY_US)
    rest = pc.subtract(size, pc.multiply(days, _DAY_US)).cast(pa.time64("us"))
    start = pc.if_else(pc.less(micros, 0), "INTERVAL '-", "INTERVAL '")
    day = pc.binary_join_element_wise(start, days.cast(pa.string()), "")
    clock = _without_zeros(rest.cast(pa.string()))
    return pc.binary_join_element_wise(day, " ", clock, "' DAY TO SECOND", "")


def _local(column: Column) -> tuple[Column, Column | str | None]:
    """Wall-clock time in microseconds without zone, and the text of its offset from UTC."""
    zone = column.type.tz
    column = column.cast(pa.timestamp("us", zone), safe=False)
    if zone is None:
        return column, None
    found, instants = parse_zone(zone), column.cast(pa.timestamp("us"))
    if found is UTC:
        return instants, "Z"
    micros = instants.cast(pa.int64())
    seconds = micros.fill_null(0).to_numpy() // _SECOND_US
    offsets = pa.array(utc_offsets(seconds, zone=found))
    local = pc.add(micros, pc.multiply(offsets, _SECOND_US)).cast(pa.timestamp("us"))
    return local, _offset_text(offsets)


def _offset_text(offsets: Column) -> Text:
    encoded = offsets.dictionary_encode()
    texts = [_one_offset(seconds) for seconds in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _one_offset(seconds: int) -> str:
    if seconds == 0:
        return "Z"
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{rest:02}" if rest else text


def _with_signed_year(text: Text, *, length: int) -> Text:
    """Years beyond 9999 begin with a plus sign, as in ISO 8601 and Java."""
    lengths = pc.binary_length(text)
    if not len(text) or np.all(lengths.fill_null(length).to_numpy() == length):
        return text
    signed = pc.or_(pc.less_equal(lengths, length), pc.starts_with(text, "-"))
    return pc.if_else(signed, text, pc.binary_join_element_wise("+", text, ""))


def _without_zeros(text: Text) -> Text:
    """Without the last zeros of the fraction; the text has a fraction."""
    return pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
