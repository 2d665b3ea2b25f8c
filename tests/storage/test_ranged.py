"""A file that is read by ranges behaves as any other file does."""

from __future__ import annotations

import io

import pytest

from filesink.storage.ranged import RangedFile

CONTENT = bytes(range(100))


class Ranges(RangedFile):
    """Hands over ten bytes at most, and remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__(len(CONTENT))
        self.asked: list[tuple[int, int]] = []

    def _range(self, start: int, most: int) -> bytes:
        self.asked.append((start, most))
        return CONTENT[start : start + min(most, 10)]


@pytest.mark.parametrize(("offset", "whence", "place"), [(7, 0, 7), (-3, 2, 97), (5, 1, 9), (500, 0, 500)])
def test_reads_go_on_from_a_place(offset: int, whence: int, place: int) -> None:
    """Places count from the beginning, from the last one, or from the end, beyond which is nothing."""
    file, oracle = io.BufferedReader(Ranges(), 16), io.BytesIO(CONTENT)
    assert (file.read(4), oracle.read(4)) == (CONTENT[:4], CONTENT[:4])
    assert file.seek(offset, whence) == oracle.seek(offset, whence) == place
    assert file.read() == oracle.read()


def test_a_place_before_the_beginning_is_refused() -> None:
    """Damage may name one, and readers know it by the ``ValueError``."""
    with pytest.raises(ValueError, match="negative"):
        Ranges().seek(-1)


def test_the_rest_is_asked_for_as_a_whole() -> None:
    """Not 8 KiB at a time: each range may be a request. The end is known, and nobody asks beyond it."""
    file = Ranges()
    assert file.readall() == CONTENT
    assert file.asked == [(start, 100 - start) for start in range(0, 100, 10)]
