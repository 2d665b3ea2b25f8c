"""Sorted pieces as one, some row groups at a time, and what is left out of them. Pure.

What is left out is past: it tells nothing to whoever asks for the horizon or a later version. Rules:
1. The row of a file goes with its removal: no other segment has either.
2. A removal without its file, a tombstone, goes only where no older segment is left that may have the file,
   and no newer one has it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from filesink.inventory.rows.files import is_past, merged
from formats.arrow import pc


def merge(pieces: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """The rows of all ``pieces``, one for each path, sorted by path; see ``file_rows.merged``.

    Args:
        pieces: each sorted by path, and no path twice in one of them.
    """
    cursors = [cursor for piece in pieces if (cursor := _Cursor(piece)).fill()]
    while cursors:
        bound = min(cursor.last() for cursor in cursors)
        found = [rows for cursor in cursors if (rows := cursor.take(bound)).num_rows]
        yield found[0] if len(found) == 1 else merged(found)
        cursors = [cursor for cursor in cursors if cursor.fill()]


def without_past_files(pieces: Iterable[pa.Table], horizon: int) -> Iterator[pa.Table]:
    """The rows of merged ``pieces`` without files that were removed up to ``horizon``; see rule 1."""
    for rows in pieces:
        yield rows.filter(pc.invert(pc.and_(is_past(rows, horizon), pc.is_valid(rows["added"]))))


def without_past(
    pieces: Sequence[pa.Table], horizon: int, newer: Callable[[], Iterable[pa.Table]]
) -> Iterator[pa.Table]:
    """As ``without_past_files``, and without tombstones up to ``horizon``; see rule 2.

    Args:
        pieces: merged, of the oldest segments.
        horizon: the oldest version that anybody may ask for.
        newer: the rows of all other segments; asked only if there are tombstones.
    """
    stones = [rows.filter(_is_past_stone(rows, horizon))["path"] for rows in pieces]
    paths = pa.chunked_array([chunk for one in stones for chunk in one.chunks], pa.string()).combine_chunks()
    needed = pa.concat_arrays(
        [
            found.combine_chunks()
            for rows in (newer() if len(paths) else ())
            if len(found := _added(rows, paths))
        ]
        or [pa.array([], pa.string())]
    )
    for rows in without_past_files(pieces, horizon):
        is_needed = pc.is_in(rows["path"], value_set=needed)
        yield rows.filter(pc.or_(pc.invert(_is_past_stone(rows, horizon)), is_needed))


def _is_past_stone(rows: pa.Table, horizon: int) -> Any:
    return pc.and_(is_past(rows, horizon), pc.is_null(rows["added"]))


def _added(rows: pa.Table, paths: pa.Array[Any]) -> Any:
    """Which of ``paths`` are files in ``rows``."""
    files = rows.filter(pc.is_valid(rows["added"]))["path"]
    return files.filter(pc.is_in(files, value_set=paths))


class _Cursor:
    """What of one piece is still to come."""

    def __init__(self, piece: Iterator[pa.Table]) -> None:
        self._piece = piece
        self._rows: pa.Table | None = None

    def fill(self) -> bool:
        """Whether there are rows, now that the next ones were read if there were none."""
        while self._rows is None or not self._rows.num_rows:
            self._rows = next(self._piece, None)
            if self._rows is None:
                return False
        return True

    def last(self) -> bytes:
        """The last path that is at hand, in the order of bytes. After ``fill``."""
        return _path(self._filled(), self._filled().num_rows - 1)

    def take(self, bound: bytes) -> pa.Table:
        """The rows up to ``bound``, which are then gone."""
        rows = self._filled()
        count = bisect_right(range(rows.num_rows), bound, key=lambda row: _path(rows, row))
        self._rows = rows.slice(count)
        return rows.slice(0, count)

    def _filled(self) -> pa.Table:
        assert self._rows is not None  # noqa: S101 - asked after ``fill`` only
        return self._rows


def _path(rows: pa.Table, row: int) -> bytes:
    return str(rows["path"][row].as_py()).encode()
