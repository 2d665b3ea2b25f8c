"""Which entries travel together: those that come one after the other, up to a number and a size. Pure.

Entries that were sent before travel as they did then, whatever the limits are by now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from filesink.sinks.asynchronous.entries import Entry


class Batches:
    """Entries in the order in which they came, cut into batches. Entries of two origins never mix.

    Args:
        records: of a batch, at most.
        limit: bytes of a batch, at most; a larger entry is a batch by itself.
    """

    def __init__(self, *, records: int, limit: int) -> None:
        self._records = records
        self._limit = limit
        self._ready: deque[tuple[Entry, ...]] = deque()
        self._open: list[Entry] = []
        self._size = 0

    @property
    def has_ready(self) -> bool:
        """Whether ``pop`` may be called."""
        return bool(self._ready)

    @property
    def has_open(self) -> bool:
        """Whether there is a batch to which others may come."""
        return bool(self._open)

    def add(self, entry: Entry) -> None:
        """Append an entry."""
        size, sent_before = len(entry.payload), entry.sent_with is not None
        if self._open and (_of(entry) != _of(self._open[0]) or self._is_over(size, sent_before=sent_before)):
            self.close()
        self._open.append(entry)
        self._size += size
        if not sent_before and (len(self._open) >= self._records or self._size >= self._limit):
            self.close()

    def _is_over(self, size: int, *, sent_before: bool) -> bool:
        return not sent_before and self._size + size > self._limit

    def close(self) -> None:
        """No other entry comes to the open batch, if there is one."""
        if self._open:
            self._ready.append(tuple(self._open))
            self._open, self._size = [], 0

    def pop(self) -> tuple[Entry, ...]:
        """The oldest batch that is ready."""
        return self._ready.popleft()

    def __iter__(self) -> Iterator[Entry]:
        for batch in self._ready:
            yield from batch
        yield from self._open


def _of(entry: Entry) -> tuple[str, int | None]:
    """What entries of one batch have in common."""
    return entry.origin, entry.sent_with
