"""A file that is read by ranges, as a file for those who read on from a place."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class RangedFile(io.RawIOBase):
    """Bytes that are asked for by their place; to be buffered.

    Args:
        size: of the file, which does not change.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._position = 0

    @abstractmethod
    def _range(self, start: int, most: int) -> bytes:
        """The bytes from ``start`` on, which is inside of the file; at least one, ``most`` at most."""

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """See ``io.IOBase.tell``."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See ``io.IOBase.seek``; a place that cannot be is a ``ValueError``, as damage may name one."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"negative place {start + offset}")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See ``io.RawIOBase.readinto``."""
        view = memoryview(buffer).cast("B")
        data = self._next(view.nbytes)
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """The rest, in as few ranges as can be; what is inherited asks for 8 KiB at a time."""
        return b"".join(iter(lambda: self._next(self._size), b""))

    def _next(self, most: int) -> bytes:
        most = min(most, self._size - self._position)
        data = self._range(self._position, most) if most > 0 else b""
        self._position += len(data)
        return data
