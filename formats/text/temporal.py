"""Dates, times, timestamps and intervals as the text that Spark writes.

CSV, JSON and XML get ISO 8601 with all six digits of the microseconds, in every value, so that readers that
guess a format from the first values find it in all; Spark's own default has three digits and cuts the
rest off. ``cast`` gives every digit up to microseconds without trailing zeros.
"""

from __future__ import annotations

from datetime import UTC
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats.arrow import Column, Text, pc
from formats.errors import FormatError
from formats.text.zones import parse_zone, utc_offsets

#: Patterns of Java's for what ``iso_timestamp_text`` gives, with a zone and without one.
SPARK_TIMESTAMP: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX"
SPARK_TIMESTAMP_NTZ: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_DATE_LENGTH = len("2024-07-01")
_TIMESTAMP_LENGTH = len("2024-07-01 12:34:56.123456")
_DAY_US = 86_400_000_000
_SECOND_US = 1_000_000
_CYCLE_DAYS = 146_097  # of 400 years, after which the calendar repeats


def date_text(column: Column) -> Text:
    """``2024-07-01``."""
    return _of_any_year(column.cast(pa.date32()))


def time_text(column: Column) -> Text:
    """``01:02:03.5``."""
    return _without_zeros(column.cast(pa.time64("ns")).cast(pa.string()))


def cast_timestamp_text(column: Column) -> Text:
    """``2024-07-01 14:34:56.123456`` in the column's zone, as ``cast(... as string)``."""
    text, _ = wall_clock_text(column)
    return _without_zeros(text)


def wall_clock_text(column: Column) -> tuple[Text, Text | str | None]:
    """``2024-07-01 14:34:56.123456`` in the column's zone, and the offset, ``None`` if it has no zone.

    Raises:
        FormatError: kind ``"value"``; the time in that zone is beyond what 64 bits of microseconds hold.
    """
    local, offset = _local(column)
    return _of_any_year(local), offset


def iso_timestamp_text(column: Column) -> Text:
    """``2024-07-01T14:34:56.123456+02:00`` in the column's zone, without offset if it has no zone."""
    text, offset = wall_clock_text(column)
    text = pc.replace_substring(text, " ", "T", max_replacements=1)
    return text if offset is None else pc.binary_join_element_wise(text, offset, "")


def duration_text(column: Column) -> Text:
    """``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    micros = column.cast(pa.duration("us")).cast(pa.int64())
    signed = pc.divide(micros, _DAY_US)  # towards zero
    # Of the smallest number there is no positive one; of its days and of what is left there are.
    days, rest = pc.abs(signed), pc.abs(pc.subtract(micros, pc.multiply(signed, _DAY_US)))
    start = pc.if_else(pc.less(micros, 0), "INTERVAL '-", "INTERVAL '")
    day = pc.binary_join_element_wise(start, days.cast(pa.string()), "")
    clock = _without_zeros(rest.cast(pa.time64("us")).cast(pa.string()))
    return pc.binary_join_element_wise(day, " ", clock, "' DAY TO SECOND", "")


def _local(column: Column) -> tuple[Column, Column | str | None]:
    """Wall-clock time in microseconds without zone, and the text of its offset from UTC."""
    zone = column.type.tz
    instants = _in_micros(column.cast(pa.timestamp(column.type.unit)))
    if zone is None:
        return instants, None
    found = parse_zone(zone)
    if found is UTC:
        return instants, "Z"
    micros = instants.cast(pa.int64())
    seconds = micros.fill_null(0).to_numpy() // _SECOND_US
    offsets = pa.array(utc_offsets(seconds, zone=found))
    try:
        local = pc.add_checked(micros, pc.multiply(offsets, _SECOND_US)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        raise FormatError(
            f"a timestamp is too near the end of time to be shown in {zone}: write it in UTC", kind="value"
        ) from error
    return local, _offset_text(offsets)


def _in_micros(instants: Column) -> Column:
    if instants.type.unit == "ns":  # a cast would cut towards 1970
        ticks = instants.cast(pa.int64()).fill_null(0).to_numpy() // 1000
        return pc.if_else(instants.is_valid(), pa.array(ticks), None).cast(pa.timestamp("us"))
    try:
        return instants.cast(pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        raise FormatError("a timestamp is beyond what 64 bits of microseconds hold", kind="value") from error


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


def _of_any_year(column: Column) -> Text:
    """``date32``, or microseconds without a zone; years beyond 9999 begin with a plus sign, as in Java."""
    text = column.cast(pa.string())
    is_date = pt.is_date(column.type)
    length = _DATE_LENGTH if is_date else _TIMESTAMP_LENGTH
    if np.all(pc.binary_length(text).fill_null(length).to_numpy() == length):
        return text
    # Arrow has no text for years beyond 32767: the year is counted here, and the rest of the text is
    # that of the same day in another cycle of the calendar.
    ticks = column.cast(pa.int32() if is_date else pa.int64()).fill_null(0).to_numpy()
    cycles, near = np.divmod(ticks, _CYCLE_DAYS * (1 if is_date else _DAY_US))
    text = pa.array(near).cast(column.type).cast(pa.string())
    years = pc.add(pc.utf8_slice_codeunits(text, 0, 4).cast(pa.int64()), pa.array(400 * cycles, pa.int64()))
    sign = pc.if_else(pc.less(years, 0), "-", pc.if_else(pc.greater(years, 9_999), "+", ""))
    digits = pc.utf8_lpad(pc.abs(years).cast(pa.string()), 4, "0")
    text = pc.binary_join_element_wise(sign, digits, pc.utf8_slice_codeunits(text, 4), "")
    return pc.if_else(column.is_valid(), text, None)


def _without_zeros(text: Text) -> Text:
    """Without the last zeros of the fraction; the text has a fraction."""
    return pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
