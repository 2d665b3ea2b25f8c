"""Columns of a record batch as fields of ``COPY``: what each type of PostgreSQL takes, in its binary form.

Rules: a function makes the fields of one type, for whole columns; what no value of that type can be is
refused by Arrow's checked functions here, or by the server when it gets it, never wrapped around.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filesink.sinks.postgres.copy.numeric import numerics
from filesink.sinks.postgres.copy.wire import (
    Field,
    Fixed,
    Ragged,
    binaries,
    content,
    joined,
    of_one_width,
    offsets,
    one_by_one,
)

ToField = Callable[["pa.Array[Any]"], Field]

_DAYS = 10_957  # from 1970 to 2000, where PostgreSQL begins to count
_MICROSECONDS = _DAYS * 86_400 * 1_000_000
_UUID = r"^[{]?[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}[}]?$"


def number(kind: str, arrow: pa.DataType) -> ToField:
    """Numbers of the numpy type ``kind``; narrower ones of a column are widened to ``arrow``."""

    def to_field(column: pa.Array[Any]) -> Field:
        return _fixed(column, pc.cast(column, arrow), kind)

    return to_field


def boolean(column: pa.Array[Any]) -> Field:
    """One byte each."""
    return _fixed(column, pc.cast(column, pa.uint8()), "u1")


def date(column: pa.Array[Any]) -> Field:
    """Days since 2000."""
    return _fixed(column, pc.subtract_checked(column.view(pa.int32()), pa.scalar(_DAYS, pa.int32())), ">i4")


def timestamp(column: pa.Array[Any]) -> Field:
    """Microseconds since 2000, of UTC or of no time zone."""
    since_1970 = pc.cast(column, pa.timestamp("us", column.type.tz)).view(pa.int64())
    return _fixed(column, pc.subtract_checked(since_1970, pa.scalar(_MICROSECONDS, pa.int64())), ">i8")


def time(column: pa.Array[Any]) -> Field:
    """Microseconds since midnight."""
    return _fixed(column, pc.cast(column, pa.time64("us")).view(pa.int64()), ">i8")


def interval(column: pa.Array[Any]) -> Field:
    """Microseconds; no days, which have 23 or 25 hours at times, and no months."""
    plain = _plain(pc.cast(column, pa.duration("us")).view(pa.int64()))
    values = np.zeros(len(column), np.dtype([("time", ">i8"), ("days", ">i4"), ("months", ">i4")]))
    values["time"] = plain
    return Fixed(values, _valid(column))


def numeric(column: pa.Array[Any]) -> Field:
    """Decimals, with as many places after the point as the column has."""
    return Fixed(numerics(column), _valid(column))


def whole_numeric(column: pa.Array[Any]) -> Field:
    """Whole numbers as decimals."""
    return numeric(pc.cast(column, pa.decimal128(19, 0)))


def text(column: pa.Array[Any]) -> Field:
    """UTF-8; the server refuses what cannot be text there, which is U+0000."""
    return binary(_short(column, pa.string()).view(pa.binary()))


def binary(column: pa.Array[Any]) -> Field:
    """Bytes as they are."""
    return Ragged(_short(column, pa.binary()))


def jsonb(column: pa.Array[Any]) -> Field:
    """Text with the version of this form before it."""
    plain = _short(column, pa.string()).view(pa.binary())
    return Ragged(joined(b"\x01", plain, nulls="emit_null"))


def uuid(column: pa.Array[Any]) -> Field:
    """Sixteen bytes of their digits, however these are grouped.

    Raises:
        ValueError: one is no UUID.
    """
    if pc.any(pc.invert(pc.match_substring_regex(column, _UUID))).as_py():
        raise ValueError("uuid")
    known: Any = pc.fill_null(_short(column, pa.string()), "0" * 32)  # type: ignore[type-var]
    digits: Any = pc.replace_substring_regex(known, "[{}-]", "")
    values = np.frombuffer(unhexlify(content(digits.view(pa.binary()))), "V16")
    return Fixed(values, _valid(column))


def array_of(element: ToField, oid: int) -> ToField:
    """Arrays of one dimension; ``oid`` is the number of the elements' type in the server's catalog."""
    empty = pa.scalar(np.array([0, 0, oid], ">u4").tobytes(), pa.binary())

    def to_field(column: pa.Array[Any]) -> Field:
        lists: Any = _short(column, pa.list_(column.type.value_type))
        starts = offsets(lists)
        elements = one_by_one(element(lists.values), len(lists.values))
        front = np.empty(len(lists), ">u4, >u4, >u4, >u4, >u4")
        front["f0"], front["f1"], front["f2"], front["f3"], front["f4"] = 1, 1, oid, np.diff(starts), 1
        whole = joined(of_one_width(front), binaries(content(elements), offsets(elements)[starts]))
        known = pc.if_else(pa.array(np.diff(starts) == 0), empty, whole)
        return Ragged(pc.if_else(column.is_valid(), known, pa.scalar(None, pa.binary())))

    return to_field


def _short(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """``column`` with offsets of 32 bits, which the large types do not have."""
    return column if column.type == kind else pc.cast(column, kind)


def _fixed(column: pa.Array[Any], values: pa.Array[Any], kind: str) -> Field:
    return Fixed(_plain(values).astype(kind), _valid(column))


def _plain(values: pa.Array[Any]) -> npt.NDArray[Any]:
    """As numpy has them, with a zero for a null."""
    known: Any = pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values
    found: npt.NDArray[Any] = known.to_numpy()
    return found


def _valid(column: pa.Array[Any]) -> npt.NDArray[np.bool_] | None:
    if not column.null_count:
        return None
    found: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return found
