r"""A file of CSV as pieces of whole records, all in UTF-8 and with doubled quotes.

That is the dialect that Arrow's parser takes exactly: of an escape character it thinks that it escapes
outside of quotes as well, where Spark and our writer mean the character itself. So ``"a \"b\" \\"``
becomes ``"a ""b"" \"``. What is inside of quotes is found for a whole block at once: a quote behind an odd
number of escapes belongs to a value, every other one begins or ends it. So a quote in the middle of a
value without quotes, which Spark does not write, is misread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from formats.columns import Bytes
from formats.errors import FormatError
from formats.read_limits import Guard
from formats.text import line_reader

_BLOCK: Final = 256 << 10  # bytes read at a time; of escapes dozens of bytes each are remembered
_FEED: Final = ord("\n")

Mask = npt.NDArray[np.bool_]


def whole_records(
    file: BinaryIO, *, charset: str, quote: str, escape: str, guard: Guard
) -> Iterator[pa.Buffer]:
    """The text of ``file``, which is at its beginning, cut behind records; a long one comes alone.

    Args:
        file: stays with its owner.
        charset: of the file.
        quote: an ASCII character.
        escape: another one, which stands before quotes and itself inside of quotes; or the same.
        guard: of the file.

    Raises:
        FormatError: kind ``"value"``; the last record is cut off, or one is too long.
        UnicodeError: the file is not text in ``charset``.
    """
    waiting = bytearray()
    is_inside = False
    size = min(_BLOCK, guard.record)
    for cells in _doubled(line_reader.text_blocks(file, charset, size), quote=ord(quote), escape=ord(escape)):
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
    """How many fields the first record of a piece has, and where it ends."""
    fields, is_inside = 1, False
    for start in range(0, piece.size, _BLOCK):
        cells = np.frombuffer(memoryview(piece)[start : start + _BLOCK], np.uint8)
        inside = _inside(cells == ord(quote), is_inside=is_inside)
        is_inside = bool(inside[-1])
        feeds = np.flatnonzero((cells == _FEED) & ~inside)[:1]
        end = int(feeds[0]) + 1 if len(feeds) else len(cells)
        fields += int(np.count_nonzero((cells[:end] == ord(delimiter)) & ~inside[:end]))
        if len(feeds):
            return fields, start + end
    return fields, piece.size


def _doubled(blocks: Iterator[bytes], *, quote: int, escape: int) -> Iterator[Bytes]:
    """The text block by block, none of them empty."""
    left, is_inside = b"", False
    is_last = False
    while not is_last:
        block = next(blocks, b"")
        is_last = not block
        data = left + block
        end = len(data)
        if escape != quote and not is_last:  # one escape alone: what it means comes next
            end -= (end - len(data.rstrip(bytes([escape])))) % 2
        left = data[end:]
        cells = np.frombuffer(data, np.uint8)[:end]
        if escape != quote and len(cells):
            cells, is_inside = _without_escapes(cells, quote=quote, escape=escape, is_inside=is_inside)
        if len(cells):
            yield cells


def _without_escapes(cells: Bytes, *, quote: int, escape: int, is_inside: bool) -> tuple[Bytes, bool]:
    """The same text with doubled quotes, and whether its end is inside of quotes."""
    quotes, escapes = cells == quote, cells == escape
    if not escapes.any():
        return cells, bool(_inside(quotes, is_inside=is_inside)[-1])
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
