"""Files of lines whose last line has no line feed, which is nothing unusual where others write them."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

from formats.api import BaseEncoder
from formats.read_limits import bounded, guard_of


def with_last_line(file: BinaryIO, code: BaseEncoder) -> BinaryIO:
    """``file``, which ends with a line feed for whoever reads it. Looks at its last bytes."""
    feed = _feed_of(code)
    size = file.seek(0, io.SEEK_END)
    if size < len(feed):
        return file if not size else _ended(file, feed, size)
    file.seek(-len(feed), io.SEEK_END)
    return file if file.read(len(feed)) == feed else _ended(file, feed, size)


def with_last_line_of_stream(file: BinaryIO, code: BaseEncoder) -> BinaryIO:
    """As ``with_last_line``, of a file that is only read forward, and again from its beginning."""
    guard = guard_of(file)
    stream = cast("BinaryIO", _EndedStream(file, _feed_of(code)))
    return bounded(stream, limits=guard.limits, name=guard.name)


def _feed_of(code: BaseEncoder) -> bytes:
    return "\n".encode(getattr(code, "charset", "utf-8"))


def _ended(file: BinaryIO, feed: bytes, size: int) -> BinaryIO:
    guard = guard_of(file)
    return bounded(cast("BinaryIO", _Ended(file, feed, size)), limits=guard.limits, name=guard.name)


class _Ended(io.RawIOBase):
    """A file and some bytes behind it. Its owner closes it."""

    def __init__(self, file: BinaryIO, tail: bytes, size: int) -> None:
        self._file = file
        self._tail = tail
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Never."""

    def tell(self) -> int:
        """See ``io.IOBase.tell``."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See ``io.IOBase.seek``."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size + len(self._tail)}
        self._at = max(begin[whence] + offset, 0)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """See ``io.RawIOBase.read``."""
        if self._at < self._size:
            self._file.seek(self._at)
            found = self._file.read(size)
        else:
            begin = self._at - self._size
            found = self._tail[begin:] if size < 0 else self._tail[begin : begin + size]
        self._at += len(found)
        if size < 0 and found and self._at == self._size:
            return found + self.read()
        return found


class _EndedStream(io.RawIOBase):
    """What a stream holds, and a line feed if it ends without one. Its owner closes it."""

    def __init__(self, file: BinaryIO, feed: bytes) -> None:
        self._file = file
        self._feed = feed
        self._last = feed  # bytes that were read; of an empty file nothing is missing

    def readable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Never."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See ``io.IOBase.seek``; only back to the beginning."""
        self._last = self._feed
        return self._file.seek(offset, whence)

    def read(self, size: int = -1, /) -> bytes:
        """See ``io.RawIOBase.read``."""
        found = self._file.read(size)
        if not found and size:
            found, self._last = (b"" if self._last == self._feed else self._feed), self._feed
        else:
            self._last = (self._last + found)[-len(self._feed) :]
            if size < 0:
                return found + self.read()
        return found
