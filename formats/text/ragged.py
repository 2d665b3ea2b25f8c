"""Rows of bytes of different lengths, made of pieces that stand side by side.

A piece holds, for every row, some bytes: as a ``Table``, of which each row counts from its left as far
as it goes, or as an Arrow column of binary without nulls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from formats.arrow import Column, pc
from formats.columns import Bytes, Offsets

_MOST: Final = 2**31 - 1  # bytes of one column of Arrow's

Present = npt.NDArray[np.bool_]
Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """As many rows as ``cells`` has; of row i the first ``lengths[i]`` bytes count, or all."""

    cells: Bytes
    lengths: Lengths | None = None


Piece = Table | Column


def fixed(cells: Bytes, wanted: Present | None) -> Table:
    """The same number of bytes in every row that is wanted, and none in the others."""
    return Table(cells) if wanted is None else Table(cells, wanted * np.int64(cells.shape[1]))


def zigzag(values: Lengths, wanted: Present | None) -> Table:
    """Numbers of variable length: seven bits a byte, the lowest first; the top bit says that more follow."""
    codes = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if wanted is not None:
        codes = np.where(wanted, codes, np.uint64(0))
    longest = max(1, -(-int(codes.max(initial=0)).bit_length() // 7))
    cells = np.empty((len(codes), longest), np.uint8)
    lengths = np.ones(len(codes), np.int64)
    for place in range(longest):
        cells[:, place] = (codes & np.uint64(0x7F)).astype(np.uint8)
        codes = codes >> np.uint64(7)
        more = codes != 0
        cells[:, place] |= more.view(np.uint8) << 7
        lengths += more
    if longest == 1:
        return fixed(cells, wanted)
    return Table(cells, lengths if wanted is None else lengths * wanted)


def joined(pieces: Sequence[Piece], *, rows: int) -> Column:
    """The bytes of all pieces, row by row, as a column of binary.

    Raises:
        pa.ArrowCapacityError: more than 2 GiB.
    """
    parts = list(_columns(pieces))
    if not parts:
        return binary(np.zeros(rows + 1, np.int64), pa.py_buffer(b""))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, pa.scalar(b""))


def binary(offsets: Offsets, data: pa.Buffer) -> Column:
    """A column of binary; value i lies from ``offsets[i]`` to ``offsets[i + 1]`` of ``data``.

    Raises:
        pa.ArrowCapacityError: more than 2 GiB.
    """
    if int(offsets[-1]) > _MOST:
        raise pa.ArrowCapacityError("more than 2 GiB of records")
    ends = pa.py_buffer(offsets.astype(np.int32).data)
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, ends, data])


def _columns(pieces: Sequence[Piece]) -> Iterator[Column]:
    """Tables side by side become one column, since joining costs by the piece."""
    for is_table, group in groupby(pieces, key=lambda piece: isinstance(piece, Table)):
        if is_table:
            yield _flat(list(group))
        else:
            yield from group


def _flat(tables: Sequence[Table]) -> Column:
    cells = tables[0].cells if len(tables) == 1 else np.hstack([table.cells for table in tables])
    rows, width = cells.shape
    if all(table.lengths is None for table in tables):
        return binary(np.arange(rows + 1, dtype=np.int64) * width, pa.py_buffer(cells.reshape(-1).data))
    used = np.hstack([_used(table) for table in tables])
    ends = np.cumsum(np.count_nonzero(used, axis=1))
    return binary(np.concatenate(([0], ends)), pa.py_buffer(cells[used].data))


def _used(table: Table) -> npt.NDArray[np.bool_]:
    if table.lengths is None:
        return np.ones(table.cells.shape, np.bool_)
    return np.arange(table.cells.shape[1]) < table.lengths[:, None]
