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

from filesink.sinks.postgres.numeric import numerics
from filesink.sinks.postgres.wire import Field, Fixed, Ragged, content, offsets, one_by_one

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


def text(column: pa.Array[Any]) -> Field:
    """UTF-8; the server refuses what cannot be text there, which is U+0000."""
    return Ragged(column.view(pa.binary()))


def binary(column: pa.Array[Any]) -> Field:
    """Bytes as they are."""
    return Ragged(column)


def jsonb(column: pa.Array[Any]) -> Field:
    """Text with the version of this form before it."""
    versioned: pa.Array[Any] = pc.binary_join_element_wise(b"\x01", column.view(pa.binary()), b"")
    return Ragged(versioned)


def uuid(column: pa.Array[Any]) -> Field:
    """Sixteen bytes of their digits, however these are grouped.

    Raises:
        ValueError: one is no UUID.
    """
    if pc.any(pc.invert(pc.match_substring_regex(column, _UUID))).as_py():
        raise ValueError("uuid")
    digits: Any = pc.replace_substring_regex(pc.fill_null(column, "0" * 32), "[{}-]", "")
    values = np.frombuffer(unhexlify(content(digits.view(pa.binary()))), "V16")
    return Fixed(values, _valid(column))


def array_of(element: ToField, oid: int) -> ToField:
    """Arrays of one dimension; ``oid`` is the number of the elements' type in the server's catalog."""
    empty = np.array([(0, 0, oid)], ">i4").tobytes()
    head = np.dtype([("dimensions", ">i4"), ("nulls", ">i4"), ("type", ">u4"), ("size", ">i4"), ("first", ">i4")])

    def to_field(column: pa.Array[Any]) -> Field:
        starts = offsets(column)
        inner = column.values
        elements = one_by_one(element(inner), len(inner))
        places = offsets(elements)
        heads = np.zeros(len(column), head)
        heads["dimensions"], heads["nulls"], heads["type"], heads["first"] = 1, 1, oid, 1
        heads["size"] = np.diff(starts)
        lists = pa.Array.from_buffers(
            pa.binary(), len(column), [None, pa.py_buffer(places[starts].copy()), elements.buffers()[2]]
        )
        fronts = _binaries_of(heads)
        whole = pc.binary_join_element_wise(fronts, lists, b"")
        found = pc.if_else(pa.array(np.diff(starts) == 0), pa.scalar(empty, pa.binary()), whole)
        return Ragged(pc.if_else(column.is_valid(), found, pa.scalar(None, pa.binary())))

    return to_field


def _binaries_of(values: npt.NDArray[Any]) -> pa.Array[Any]:
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.dtype.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(values)])


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
