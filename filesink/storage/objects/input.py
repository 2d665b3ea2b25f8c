"""An object as a file that can be read from anywhere."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, cast

from filesink.errors import StorageError
from filesink.storage.objects.api import MIB, Objects

if TYPE_CHECKING:
    from formats.api import Buffer

_AHEAD = 4 * MIB  # read at a time


def open_object(objects: Objects, key: str) -> BinaryIO:
    """Open an object as it stands now; ``FileNotFoundError`` if there is none."""
    found = objects.head(key)
    if found is None:
        raise FileNotFoundError(f"{objects.where}/{key}")
    raw = _RawObject(objects, key, size=found.size, etag=found.etag)
    return cast("BinaryIO", io.BufferedReader(raw, _AHEAD))


class _RawObject(io.RawIOBase):
    """Reads ranges; an object that was replaced meanwhile is an error, never a mixture."""

    def __init__(self, objects: Objects, key: str, *, size: int, etag: str) -> None:
        super().__init__()
        self._objects = objects
        self._key = key
        self._size = size
        self._etag = etag
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readall(self) -> bytes:
        """The rest in one request; what is inherited asks for 8 KiB at a time."""
        rest = bytearray(max(0, self._size - self._position))
        self.readinto(rest)
        return bytes(rest)

    def readinto(self, buffer: Buffer, /) -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")
        end = min(self._position + view.nbytes, self._size)
        if end <= self._position:
            return 0
        try:
            data = self._objects.get(self._key, start=self._position, end=end, etag=self._etag)
        except FileNotFoundError as error:
            raise StorageError(
                f"cannot read '{self._objects.where}/{self._key}': it was removed meanwhile; start again",
                code="UNAVAILABLE",
            ) from error
        if len(data) != end - self._position:
            raise StorageError(
                f"cannot read '{self._objects.where}/{self._key}': only {len(data)} of "
                f"{end - self._position} bytes came; start again",
                code="UNAVAILABLE",
            )
        view[: len(data)] = data
        self._position = end
        return len(data)
