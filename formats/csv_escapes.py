r"""CSV whose quotes are escaped, ``"a \"b\" \\"``, as CSV whose quotes are doubled, ``"a ""b"" \"``.

Arrow's parser knows an escape character as well, but takes one outside of quotes for it too, where Spark
and our writer mean the character itself. What is inside of quotes is found for a whole block at once:
a quote behind an odd number of escapes belongs to a value, every other one begins or ends it.
"""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from formats.columns import Bytes

_BLOCK: Final = 256 << 10  # bytes


class Doubled(io.RawIOBase):
    """The text of ``file``, which is at its beginning, in UTF-8 with doubled quotes.

    Args:
        file: stays with its owner.
        charset: of the file.
        quote: an ASCII character.
        escape: another one, which stands before quotes and itself inside of quotes.

    Raises:
        UnicodeError: from ``read``; the file is not text in ``charset``.
    """

    def __init__(self, file: BinaryIO, *, charset: str, quote: str, escape: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(charset)()
        self._quote, self._escape = ord(quote), ord(escape)
        self._is_inside = False
        self._escapes = b""  # at the end of a block: what follows says what they are
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """See ``io.RawIOBase.readinto``."""
        is_last = False
        while not (self._rest or is_last):
            block = self._file.read(_BLOCK)
            is_last = not block
            self._rest = memoryview(self._next(block, is_last=is_last))
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken

    def _next(self, block: bytes, *, is_last: bool) -> bytes:
        data = self._escapes + self._decoder.decode(block, final=is_last).encode()
        whole = data if is_last else data.rstrip(bytes([self._escape]))
        self._escapes = data[len(whole) :]
        return self._doubled(np.frombuffer(whole, np.uint8)) if whole else b""

    def _doubled(self, cells: Bytes) -> bytes:
        quotes, escapes = cells == self._quote, cells == self._escape
        if not escapes.any():
            self._is_inside ^= bool(np.count_nonzero(quotes) % 2)
            return cells.tobytes()
        is_odd = _before(escapes) % 2 == 1
        turns = quotes & ~is_odd
        inside = (np.cumsum(turns, dtype=np.uint8) + self._is_inside) % 2 == 1  # sums may wrap, by pairs
        self._is_inside = bool(inside[-1])
        doubling = np.append(quotes[1:], False) & escapes & inside & ~is_odd
        found: Bytes = np.where(doubling, np.uint8(self._quote), cells)[~(escapes & inside & is_odd)]
        return found.tobytes()


def _before(wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """How many cells in a row directly before each are wanted."""
    places = np.arange(len(wanted))
    last_other = np.maximum.accumulate(np.where(wanted, -1, places))
    before: npt.NDArray[np.int64] = np.append(0, (places - last_other)[:-1])
    return before
