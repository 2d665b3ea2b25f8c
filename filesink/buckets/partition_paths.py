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

from filesink.errors import BucketError, SchemaError
from filesink.local_time import DAY
from filesink.storage.bucket_ids import text_of
from formats.text import render
from formats.text.zones import utc_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    if not any(has_text(kind) for has_text in _WITH_TEXT):
        raise SchemaError(
            f"column {field.name!r} of type {field.type} cannot name a directory; use text, whole numbers, "
            "booleans, dates, timestamps or decimals, or cast it",
            code="BUCKET_TYPE",
        )


def texts(values: pa.Array[Any], zone: str) -> list[str | None]:
    """Each value as Spark casts it to a string; ``None`` for NaN, which equals nothing.

    Bytes that are no text become lone surrogates, which ``escape`` refuses.

    Args:
        values: distinct values without null, of a type that ``check_type`` accepts.
        zone: where timestamps with a zone are shown: the name of that of the Spark session.
    """
    if pt.is_timestamp(values.type) and values.type.tz is not None:
        values = values.cast(pa.timestamp(values.type.unit, zone))
    found = text_of(render.text(values, style=render.Style.CAST))
    return [None if text == "NaN" else text for text in found] if pt.is_floating(values.type) else found


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


_WITH_TEXT: tuple[Callable[[pa.DataType], bool], ...] = (
    pt.is_string,
    pt.is_large_string,
    pt.is_integer,
    pt.is_boolean,
    pt.is_decimal,
    pt.is_date,
    pt.is_timestamp,
    pt.is_float32,
    pt.is_float64,
)
