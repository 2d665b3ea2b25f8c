"""Hadoop's Writables, many at a time: VInts, Text, BytesWritable, LongWritable and IntWritable.

Numbers are big-endian. A VInt up to 127 is the byte itself; otherwise the first byte says how many
follow, -112 less that number. Text is a VInt and so many bytes, BytesWritable has four bytes of length.
Source: Hadoop 3, ``WritableUtils`` and the classes of these names.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.arrow import Column, Field
from formats.columns import Bytes, Offsets
from formats.errors import FormatError
from formats.text import ragged

PACKAGE: Final = "org.apache.hadoop.io."
NULL: Final = "NullWritable"
#: The type of the values that each class holds.
TYPES: Final[dict[str, pa.DataType]] = {
    "Text": pa.string(),
    "BytesWritable": pa.binary(),
    "LongWritable": pa.int64(),
    "IntWritable": pa.int32(),
}
#: Bytes of the VInt of a size, at most.
LONGEST_VINT: Final = 5
_ONE_BYTE: Final = 127  # the largest size whose VInt is one byte


def class_of(field: Field) -> str:
    """The class, without its package, for the values of a column.

    Raises:
        FormatError: kind ``"schema"``; there is none.
    """
    kind = columns.without_dictionary(field.type)
    if columns.is_text(kind):
        return "Text"
    if columns.is_binary(kind):
        return "BytesWritable"
    if pt.is_int64(kind) or pt.is_int32(kind):
        return "LongWritable" if pt.is_int64(kind) else "IntWritable"
    raise FormatError(
        f"column {field.name!r} of type {field.type} has no Writable: make it text, bytes, long or int"
    )


def written(column: Column) -> Column:
    """The values of a plain column without nulls, each as its Writable is written; a column of binary."""
    rows = len(column)
    if pt.is_integer(column.type):
        wide = ">i8" if pt.is_int64(column.type) else ">i4"
        cells = column.to_numpy().astype(wide).view(np.uint8).reshape(rows, -1)
        return ragged.joined([ragged.Table(cells)], rows=rows)
    sizes = np.diff(columns.offsets(column))
    is_text = pt.is_string(column.type)
    head = _vints(sizes) if is_text else ragged.Table(sizes.astype(">i4").view(np.uint8).reshape(rows, 4))
    return ragged.joined([head, column.cast(pa.binary())], rows=rows)


def read(name: str, data: Bytes, *, starts: Offsets, sizes: Offsets) -> Column:
    """What ``written`` was given: value i of class ``name`` stands at ``starts[i]``, in ``sizes[i]`` bytes.

    Raises:
        ValueError: sizes and bytes do not fit. ``pa.ArrowException``: a Text is not UTF-8.
    """
    match name:
        case "LongWritable" | "IntWritable":
            width = 8 if name == "LongWritable" else 4
            if np.any(sizes != width):
                raise ValueError("a number is too short or too long")
            return pa.array(_numbers(data, starts, width).astype(f"i{width}"))
        case "BytesWritable":
            if np.any(sizes < 4):
                raise ValueError("a length is missing")
            claimed = _numbers(data, starts, 4).astype(np.int64)
            widths: Offsets = np.full(len(starts), 4, np.int64)
        case _:
            claimed, widths = _sizes_at(data, starts, sizes)
    if np.any(claimed != sizes - widths):
        raise ValueError("the length of a value is another than its own bytes say")
    column = _gathered(data, starts + widths, claimed)
    return column.cast(pa.string()) if name == "Text" else column


def vint(number: int) -> bytes:
    """A size as a VInt."""
    return vints(np.array([number], np.int64))


def vints(sizes: Offsets) -> bytes:
    """Sizes as VInts, one after the other."""
    return bytes(columns.data(ragged.joined([_vints(sizes)], rows=len(sizes))))


def read_vints(data: bytes, count: int) -> Offsets:
    """Exactly ``count`` sizes that take all of ``data``.

    Raises:
        ValueError: there are more or fewer, or negative ones.
    """
    cells = np.frombuffer(data, np.uint8)
    if len(cells) == count and not np.any(cells > _ONE_BYTE):
        return cells.astype(np.int64)
    starts = _starts(cells, count)
    sizes, widths = _sizes_at(cells, starts, len(cells) - starts)
    if len(starts) != count or int(widths.sum()) != len(cells):
        raise ValueError("there are more or fewer lengths than values")
    return sizes


def more_bytes(first: int) -> int:
    """How many bytes of a VInt follow its first.

    Raises:
        ValueError: it is no size.
    """
    width = int(_widths(np.array([first], np.uint8))[0])
    if width > LONGEST_VINT:
        raise ValueError("a length is negative or too large")
    return width - 1


def text(value: str) -> bytes:
    """One Text."""
    return vint(len(value.encode())) + value.encode()


def _starts(cells: Bytes, count: int) -> Offsets:
    """Where the first ``count`` VInts begin, or as many as there are.

    Each says where the next begins, so the first 1, 2, 4 … are found by following 1, 2, 4 … steps at once.
    """
    end = len(cells)
    step = np.minimum(np.arange(end + 1) + np.append(_widths(cells), 0), end)
    found: Offsets = np.zeros(min(1, end, count), np.int64)
    while len(found) and len(found) < count and found[-1] < end:
        found = np.concatenate((found, step[found]))
        step = step[step]
    found = found[:count]
    return found[found < end]


def _sizes_at(cells: Bytes, starts: Offsets, room: Offsets) -> tuple[Offsets, Offsets]:
    """The sizes that VInts at ``starts`` say, and how many bytes each VInt takes, at most ``room``."""
    if np.any(room < 1):
        raise ValueError("a length is missing")
    first = cells[starts]
    widths = _widths(first)
    if np.any(widths > np.minimum(room, LONGEST_VINT)):
        raise ValueError("a length is negative or cut off")
    sizes = np.where(first <= _ONE_BYTE, first, 0).astype(np.int64)
    for place in range(1, int(widths.max(initial=1))):
        more = widths > place
        sizes[more] = (sizes[more] << 8) | cells[starts[more] + place]
    return sizes, widths


def _widths(first: Bytes) -> Offsets:
    """Bytes that a VInt with this first byte takes; of a negative one more than any size has."""
    value = first.astype(np.int64)
    more = 256 - 112 - value  # bytes that follow, if that many can
    return np.where(
        value <= _ONE_BYTE, 1, np.where((more >= 1) & (more < LONGEST_VINT), more + 1, LONGEST_VINT + 1)
    )


def _vints(sizes: Offsets) -> ragged.Table:
    counts = np.ceil(np.log2(sizes + 1) / 8).astype(np.int64).clip(1, 4)
    small = sizes <= _ONE_BYTE
    cells = np.zeros((len(sizes), LONGEST_VINT), np.uint8)
    cells[:, 0] = np.where(small, sizes, 256 - 112 - counts)
    for place in range(4):
        shift = 8 * (counts - 1 - place)
        cells[:, place + 1] = np.where(shift >= 0, (sizes >> shift.clip(0)) & 0xFF, 0)
    return ragged.Table(cells, np.where(small, 1, counts + 1))


def _numbers(data: Bytes, starts: Offsets, width: int) -> npt.NDArray[np.signedinteger[Any]]:
    """The big-endian numbers of ``width`` bytes at ``starts``."""
    cells: Bytes = data[starts[:, None] + np.arange(width)]
    return cells.view(f">i{width}").reshape(-1)


def _gathered(data: Bytes, starts: Offsets, sizes: Offsets) -> Column:
    """A column of binary of the bytes that do not overlap and stand in order."""
    if len(starts) == 1:  # which may be large
        value = data[starts[0] : starts[0] + sizes[0]]
        return ragged.binary(np.array([0, len(value)]), pa.py_buffer(value.data))
    edges = np.zeros(len(data) + 1, np.int8)  # 1 where a value begins, -1 behind it; sums may wrap
    np.add.at(edges, starts, 1)
    np.add.at(edges, starts + sizes, -1)
    wanted = np.cumsum(edges[:-1], dtype=np.int8).view(np.bool_)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return ragged.binary(ends, pa.py_buffer(data[wanted].data))
