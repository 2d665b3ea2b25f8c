"""Splits of a file: ranges that are read apart, by different tasks, each record by one of them.

Rules:
1. A record belongs to the split that holds its first byte, however far it goes on. What can only be read
   as a whole, a *unit* (a block, a row group, a stripe, or all of a file), goes with its first byte.
2. So whoever cuts a file, and wherever: ranges that cover it and do not overlap give every record once, and
   in order. A split may hold no record at all. CSV has an exception, see ``formats.csv.boundaries``.
3. What stands before the first record or behind the last one, a header or a footer, is nobody's: whoever
   needs it reads it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from formats.columns import Offsets
from formats.errors import FormatError
from formats.read_limits import guard_of
from formats.sizes import parse_size


@dataclass(frozen=True, slots=True)
class Split:
    """The records of a file that *begin* in its bytes ``[start, end)``.

    Attributes:
        start: the first byte, counted from 0.
        end: behind the last byte; greater than ``start``, but for ``Split(0, 0)``, that of an empty file.

    Raises:
        FormatError: kind ``"option"``; no such range.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        """Refuse what is no range."""
        given: list[object] = [self.start, self.end]
        are_numbers = all(isinstance(place, int) and not isinstance(place, bool) for place in given)
        if not are_numbers or not (0 <= self.start < self.end or self.start == self.end == 0):
            raise FormatError("a split is a range of bytes, from start to an end behind it", kind="option")


def whole(file: BinaryIO, *, target: int) -> list[Split]:
    """All of ``file``; ``target`` is looked at only."""
    parse_size(target, name="target")
    return [Split(0, size_of(file))]


def of_bytes(file: BinaryIO, *, target: int) -> list[Split]:
    """Ranges of equal size, of ``target`` bytes at most. Nothing is read."""
    size = size_of(file)
    return between(places(size, target), size)


def places(size: int, target: int) -> list[int]:
    """Where a file of ``size`` bytes would be cut into equal ranges of ``target`` bytes at most.

    Raises:
        FormatError: kind ``"option"``; the target is no number of bytes above 0.
    """
    count = -(-size // parse_size(target, name="target"))
    return [size * number // count for number in range(1, count)]


def between(cuts: Iterable[int], size: int) -> list[Split]:
    """The splits of a file that is cut before each of ``cuts``; they may repeat, or not be in the file."""
    ends = [*sorted({cut for cut in cuts if 0 < cut < size}), size]
    return [Split(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def size_of(file: BinaryIO) -> int:
    """Bytes of a file; it is at its end then."""
    return file.seek(0, io.SEEK_END)


def check(file: BinaryIO, split: Split) -> None:
    """Raise ``FormatError`` of kind ``"value"`` if ``file`` ends before ``split`` does."""
    if size_of(file) < split.end:
        with guard_of(file).naming():
            raise FormatError(
                f"the file has less than the {split.end} bytes that it had when it was split: it was changed",
                kind="value",
            )


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a file that says at its end where they are.

    Attributes:
        starts: where each begins, in their order; none before its predecessor or behind the file, and the
            first at 0, so that no split has a header alone.
        size: of the file.
    """

    starts: Offsets
    size: int

    @classmethod
    def at(cls, offsets: Sequence[int], *, size: int) -> Units:
        """Units that begin at ``offsets``, whatever a damaged file may say: each is in one split."""
        starts = np.clip(np.array([0, *offsets[1:]], np.int64), 0, max(size - 1, 0))
        return cls(np.maximum.accumulate(starts)[: len(offsets)], size)

    def splits(self, target: int) -> list[Split]:
        """Cut where units begin, so that none that has a unit is without its first byte."""
        behind = np.searchsorted(self.starts, np.array(places(self.size, target), np.int64))
        return between(self.starts[behind[behind < len(self.starts)]].tolist(), self.size)

    def of(self, split: Split) -> range:
        """The numbers of the units in ``split``."""
        first, last = np.searchsorted(self.starts, [split.start, split.end]).tolist()
        return range(first, last)
