"""Directories of Hive partitions, ``k=v/k2=v2``, exactly as Spark names them. Pure.

Text of values is that of Spark's ``CAST(value AS STRING)``, escaping that of its
``ExternalCatalogUtils.escapePathName``. Three things that Spark lets through are refused, because they
could not be read back as they were or not be written at all: NUL or broken text, NaN, and text that
equals the name which stands for null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from filesink.buckets.date_patterns import DatePattern
from filesink.errors import BucketError, SchemaError
from filesink.local_time import DAY, LocalTime
from filesink.storage.bucket_ids import text_of
from formats.text.zones import utc_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _TextFunction = Callable[[pa.Array[Any], tzinfo], list[str | None]]

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_UNESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_ILLEGAL = re.compile(r"[\x00\ud800-\udfff]")
_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def escape(text: str) -> str:
    """``text`` as (part of) one path component, in Spark's percent encoding.

    Raises:
        BucketError: ``ILLEGAL_CHAR``; NUL or a lone surrogate, which no file name can hold.
    """
    if _ILLEGAL.search(text):
        raise BucketError(
            "a partition value holds NUL or a lone surrogate, which no file name can; clean the column",
            code="ILLEGAL_CHAR",
        )
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def unescape(text: str) -> str:
    """Undo ``escape``; a percent sign without two hexadecimal digits stands for itself."""
    return _UNESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def fragment(name: str, text: str | None) -> str:
    """``name=text`` as a path component; null and ``""`` become the default partition.

    Raises:
        BucketError: ``RESERVED`` or ``ILLEGAL_CHAR``.
    """
    if text == DEFAULT_PARTITION:
        raise BucketError(
            f"a value of partition column {name!r} is the text {DEFAULT_PARTITION!r}, which stands for null "
            "and would be read back as null; replace it before writing",
            code="RESERVED",
        )
    return f"{escape(name)}={escape(text) if text else DEFAULT_PARTITION}"


def partition_values(bucket_id: str) -> list[tuple[str, str | None]]:
    """Names and values of a partition's directory, in order; the default partition is ``None``.

    Components without ``=`` are no partition columns and are left out.
    """
    pairs = [part.split("=", 1) for part in bucket_id.split("/") if "=" in part]
    return [(unescape(name), None if text == DEFAULT_PARTITION else unescape(text)) for name, text in pairs]


def check_type(field: pa.Field[Any]) -> None:
    """Raise ``SchemaError`` (``BUCKET_TYPE``) if values of ``field`` have no text for a directory."""
    kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
    if _text_function(kind) is None:
        raise SchemaError(
            f"column {field.name!r} of type {field.type} cannot name a directory; use text, whole numbers, "
            "booleans, dates, timestamps or decimals, or cast it",
            code="BUCKET_TYPE",
        )


def texts(values: pa.Array[Any], zone: tzinfo) -> list[str | None]:
    """Each value as Spark casts it to a string; ``None`` for NaN, which equals nothing.

    Bytes that are no text become lone surrogates, which ``escape`` refuses.

    Args:
        values: distinct values without null, of a type that ``check_type`` accepts.
        zone: where timestamps with a zone are shown: that of the Spark session.
    """
    function = _text_function(values.type)
    if function is None:
        raise SchemaError(f"type {values.type} cannot name a directory", code="BUCKET_TYPE")
    return function(values, zone)


def split_ticks(values: pa.Array[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole seconds since 1970 and nanoseconds of dates or timestamps without null."""
    if pt.is_date(values.type):
        days = values.cast(pa.date32()).view(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        return days * DAY, np.zeros(len(days), dtype=np.int64)
    per_second = _TICKS_PER_SECOND[values.type.unit]
    ticks = values.view(pa.int64()).to_numpy(zero_copy_only=False)
    seconds = ticks // per_second
    return seconds, (ticks - seconds * per_second) * (1_000_000_000 // per_second)


def local_seconds(values: pa.Array[Any], zone: tzinfo) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As ``split_ticks``, but by the wall clock of ``zone`` for timestamps that have a zone."""
    seconds, nanos = split_ticks(values)
    if pt.is_timestamp(values.type) and values.type.tz is not None:
        seconds = seconds + utc_offsets(seconds, zone)
    return seconds, nanos


def _text_function(kind: pa.DataType) -> _TextFunction | None:
    return next((function for test, function in _TEXT_FUNCTIONS if test(kind)), None)


def _strings(values: pa.Array[Any], zone: tzinfo) -> list[str | None]:
    del zone
    return text_of(values)


def _times(values: pa.Array[Any], zone: tzinfo) -> list[str | None]:
    dates_only = pt.is_date(values.type)
    pattern = DatePattern(pattern="uuuu-MM-dd" if dates_only else "uuuu-MM-dd HH:mm:ss")
    seconds, nanos = local_seconds(values, zone)
    return [
        pattern.format(LocalTime.of(second)) + (f".{nano:09d}".rstrip("0") if nano else "")
        for second, nano in zip(seconds.tolist(), nanos.tolist(), strict=True)
    ]


def _floats(values: pa.Array[Any], zone: tzinfo) -> list[str | None]:
    del zone
    found = values.to_numpy(zero_copy_only=False)
    return [None if np.isnan(value) else _java_float(value) for value in found]


def _java_float(value: np.floating[Any]) -> str:
    """``Double.toString`` or ``Float.toString``: the shortest digits, scientific outside 1e-3 … 1e7.

    As Java 19 and later; older ones write a digit too many for some numbers (JDK-4511638).
    """
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    shortest = np.format_float_scientific(value, unique=True, trim="-")
    if "." not in shortest:  # Java writes two digits at least, and the closest two
        shortest = f"{float(value):.1e}"
    mantissa, exponent = shortest.split("e")
    return f"{mantissa}E{int(exponent)}"


_TEXT_FUNCTIONS: tuple[tuple[Callable[[pa.DataType], bool], _TextFunction], ...] = (
    (pt.is_string, _strings),
    (pt.is_large_string, _strings),
    (pt.is_integer, lambda values, _: [str(value) for value in values.to_pylist()]),
    (pt.is_boolean, lambda values, _: ["true" if value else "false" for value in values.to_pylist()]),
    (pt.is_decimal, lambda values, _: [format(value, "f") for value in values.to_pylist()]),
    (pt.is_date, _times),
    (pt.is_timestamp, _times),
    (pt.is_float32, _floats),
    (pt.is_float64, _floats),
)
