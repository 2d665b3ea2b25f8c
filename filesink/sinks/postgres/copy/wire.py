"""Rows as PostgreSQL's ``COPY … WITH (FORMAT binary)`` takes them, a whole record batch at a time.

    a row     number of fields, then each field
    a field   length of the value in bytes, or -1 for null, then the value, all in network byte order

Rules: nothing here loops over rows. Values of one width are laid side by side by numpy, as the members of
a structure; values of any length are put between those blocks by Arrow's own join of binaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

START = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # signature, no flags, no extension
END = b"\xff\xff"

_NULL = -1
_LENGTH = np.dtype(">i4")


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """Values of one width, in network byte order. ``valid`` is ``None`` where none is null."""

    values: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Values of any length: an Arrow array of binaries, null where the value is."""

    values: pa.Array[Any]


Field = Fixed | Ragged


def rows(fields: Sequence[Field], count: int) -> pa.Buffer:
    """``count`` rows of ``fields``, as they follow each other in the stream."""
    joined = _joined(fields, count, begin=len(fields).to_bytes(2, "big"))
    return content(joined)


def one_by_one(field: Field, count: int) -> pa.Array[Any]:
    """Each value of ``field`` by itself, with its length before it, as the elements of an array are."""
    return _joined([field], count, begin=b"")


def content(values: pa.Array[Any]) -> pa.Buffer:
    """The bytes of all ``values``, which are binaries, one after the other."""
    first, last = offsets(values)[[0, -1]]
    data = values.buffers()[2]
    return pa.py_buffer(b"") if data is None else data.slice(int(first), int(last - first))


def offsets(values: pa.Array[Any]) -> npt.NDArray[np.int32]:
    """Where in its buffer each of ``values`` begins, which are binaries or lists; one more for the end."""
    where: Any = values.buffers()[1]
    if where is None or not len(values):
        return np.zeros(1 + len(values), np.int32)
    return np.frombuffer(where, np.int32, len(values) + 1, offset=4 * values.offset)


def binaries(data: Any, ends: npt.NDArray[np.int32]) -> pa.Array[Any]:
    """The pieces of ``data``, a buffer, between ``ends``, the first of which is where it begins."""
    where: Any = np.ascontiguousarray(ends)
    buffers = [None, pa.py_buffer(where), pa.py_buffer(data)]
    found: pa.Array[Any] = pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)
    return found


def of_one_width(values: Any) -> pa.Array[Any]:
    """Each value of a numpy array by itself."""
    return binaries(values, np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.dtype.itemsize))


def joined(*pieces: Any, nulls: Literal["replace", "emit_null"] = "replace") -> pa.Array[Any]:
    """The bytes of each row in all ``pieces``, one after the other; a null has none, or is one."""
    join: Any = pc.binary_join_element_wise  # whose types know of no separator
    found: pa.Array[Any] = join(*pieces, b"", null_handling=nulls, null_replacement=b"")
    return found


def _joined(fields: Sequence[Field], count: int, *, begin: bytes) -> pa.Array[Any]:
    pieces, block = [], _Block(count, begin)
    for field in fields:
        match field:
            case Fixed():
                block.add_value(field)
            case Ragged(values=values):
                block.add_length(values)
                pieces += [block.end(), values]
                block = _Block(count, b"")
    if block.is_begun or not pieces:
        pieces.append(block.end())
    return pieces[0] if len(pieces) == 1 else joined(*pieces)


class _Block:
    """Neighbouring members of every row that have a fixed width.

    Args:
        count: number of rows.
        begin: what every row begins with.
    """

    def __init__(self, count: int, begin: bytes) -> None:
        self._count = count
        self._types: list[tuple[str, Any]] = [("begin", np.dtype((np.void, len(begin))))] if begin else []
        self._values: list[Any] = [np.void(begin)] if begin else []
        self._nulls: list[tuple[int, int, npt.NDArray[np.bool_]]] = []  # from byte, to byte, where valid
        self._width = len(begin)

    @property
    def is_begun(self) -> bool:
        """Whether it has any bytes."""
        return bool(self._types)

    def add_value(self, field: Fixed) -> None:
        """A value with its length before it; a null has no value."""
        width = field.values.dtype.itemsize
        lengths: Any = width if field.valid is None else np.where(field.valid, width, _NULL)
        self._add(_LENGTH, lengths)
        if field.valid is not None:
            self._nulls.append((self._width, self._width + width, field.valid))
        self._add(field.values.dtype, field.values)

    def add_length(self, values: pa.Array[Any]) -> None:
        """The length of a value that follows this block."""
        lengths: Any = np.diff(offsets(values))
        if values.null_count:
            lengths = np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, _NULL)
        self._add(_LENGTH, lengths)

    def end(self) -> pa.Array[Any]:
        """The block of each row, as binaries."""
        block = np.empty(self._count, np.dtype(self._types))
        for (name, _), values in zip(self._types, self._values, strict=True):
            block[name] = values
        if not self._nulls:
            return of_one_width(block)
        kept = np.ones((self._count, self._width), np.bool_)
        for start, stop, valid in self._nulls:
            kept[:, start:stop] = valid[:, np.newaxis]
        ends = np.zeros(self._count + 1, np.int32)
        np.cumsum(kept.sum(axis=1, dtype=np.int32), out=ends[1:])
        return binaries(block.view(np.uint8).reshape(kept.shape)[kept], ends)

    def _add(self, kind: np.dtype[Any], values: Any) -> None:
        self._types.append((str(len(self._types)), kind))
        self._values.append(values)
        self._width += kind.itemsize
