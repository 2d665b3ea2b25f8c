r"""A file of CSV as pieces of whole records, all in UTF-8 and with doubled quotes.

That is the dialect that Arrow's parser takes exactly: of an escape character it thinks that it escapes
outside of quotes as well, where Spark and our writer mean the character itself. So ``"a \"b\" \\"``
becomes ``"a ""b"" \"``. What is inside of quotes is found for a whole block at once: a quote behind an odd
number of escapes belongs to a value, every other one begins or ends it. So a quote in the middle of a
value without quotes, which Spark does not write, is misread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from formats.columns import Bytes
from formats.errors import FormatError
from formats.read_limits import Guard
from formats.text.text_file import TextFile

_BLOCK: Final = 256 << 10  # bytes read at a time; of escapes dozens of bytes each are remembered
_FEED: Final = ord("\n")

Mask = npt.NDArray[np.bool_]


def whole_records(text: TextFile, *, quote: str, escape: str, guard: Guard) -> Iterator[pa.Buffer]:
    """The text cut behind records; a long one comes alone.

    Args:
        text: a file, or a split of it that begins and ends with records.
        quote: an ASCII character.
        escape: another one, which stands before quotes and itself inside of quotes; or the same.
        guard: of the file.

    Raises:
        FormatError: kind ``"value"``; the last record is cut off, or one is too long.
        UnicodeError: it is no text in its charset.
    """
    waiting = bytearray()
    is_inside = False
    for cells in _doubled(text.blocks(min(_BLOCK, guard.record)), Doubling(quote=quote, escape=escape)):
        inside = _inside(cells == ord(quote), is_inside=is_inside)
        is_inside = bool(inside[-1])
        feeds = 1 + np.flatnonzero((cells == _FEED) & ~inside)
        guard.check_record(len(waiting) + (int(feeds[0]) if len(feeds) else len(cells)))
        start = 0
        for stop in (feeds[0], feeds[-1]) if len(feeds) and len(waiting) > _BLOCK else feeds[-1:]:
            if stop > start:
                waiting += cells[start:stop].data
                yield pa.py_buffer(waiting)
                waiting, start = bytearray(), int(stop)
        waiting += cells[start:].data
    if waiting:
        raise FormatError("the file is cut off in the middle of a record", kind="value")


def first_record(piece: pa.Buffer, *, quote: str, delimiter: str) -> tuple[int, int]:
    """How many fields the first record of a piece has, and where it ends; ``quote`` is empty for none."""
    fields, is_inside = 1, False
    for start in range(0, piece.size, _BLOCK):
        cells = np.frombuffer(memoryview(piece)[start : start + _BLOCK], np.uint8)
        turns = cells == ord(quote) if quote else np.zeros(len(cells), np.bool_)
        inside = _inside(turns, is_inside=is_inside)
        is_inside = bool(inside[-1])
        feeds = np.flatnonzero((cells == _FEED) & ~inside)[:1]
        end = int(feeds[0]) + 1 if len(feeds) else len(cells)
        fields += int(np.count_nonzero((cells[:end] == ord(delimiter)) & ~inside[:end]))
        if len(feeds):
            return fields, start + end
    return fields, piece.size


def _doubled(blocks: Iterator[bytes], doubling: Doubling) -> Iterator[Bytes]:
    """The text block by block, none of them empty."""
    for block in blocks:
        cells = doubling.cells(block)
        if len(cells):
            yield cells
    cells = doubling.cells(b"", is_last=True)
    if len(cells):
        yield cells


class Doubling:
    """Makes doubled quotes of escaped ones, block by block; every block keeps its line feeds.

    Args:
        quote: an ASCII character.
        escape: another one, or the same.
    """

    def __init__(self, *, quote: str, escape: str) -> None:
        self._quote, self._escape = ord(quote), ord(escape)
        self._left = b""
        self._is_inside = False

    def cells(self, block: bytes, *, is_last: bool = False) -> Bytes:
        """The next block of the text, but for an escape at its end: what it means comes next."""
        if self._escape == self._quote:
            return np.frombuffer(block, np.uint8)
        data = self._left + block
        end = len(data)
        if not is_last:
            end -= (end - len(data.rstrip(bytes([self._escape])))) % 2
        self._left = data[end:]
        cells = np.frombuffer(data, np.uint8)[:end]
        if len(cells):
            cells, self._is_inside = _without_escapes(
                cells, quote=self._quote, escape=self._escape, is_inside=self._is_inside
            )
        return cells


def _without_escapes(cells: Bytes, *, quote: int, escape: int, is_inside: bool) -> tuple[Bytes, bool]:
    """The same text with doubled quotes, and whether its end is inside of quotes."""
    quotes, escapes = cells == quote, cells == escape
    if not escapes.any():
        return cells, (np.count_nonzero(quotes) + is_inside) % 2 == 1
    is_odd = _before(escapes) % 2 == 1
    inside = _inside(quotes & ~is_odd, is_inside=is_inside)
    doubling = np.append(quotes[1:], False) & escapes & inside & ~is_odd
    found: Bytes = np.where(doubling, np.uint8(quote), cells)
    return found[~(escapes & inside & is_odd)], bool(inside[-1])


def _inside(turns: Mask, *, is_inside: bool) -> Mask:
    """What lies between one turn and the next, the first of both included."""
    inside: Mask = (np.cumsum(turns, dtype=np.uint8) + is_inside) % 2 == 1  # sums may wrap, by pairs
    return inside


def _before(wanted: Mask) -> npt.NDArray[np.int64]:
    """How many cells in a row directly before each are wanted."""
    places = np.arange(len(wanted))
    last_other = np.maximum.accumulate(np.where(wanted, -1, places))
    before: npt.NDArray[np.int64] = np.append(0, (places - last_other)[:-1])
    return before
