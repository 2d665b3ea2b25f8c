"""A file on HDFS as it is read by somebody who knows no namenode."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, cast

from filesink.errors import StorageError
from filesink.storage.hdfs.errors import explaining

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_AHEAD = 1 << 20  # bytes read at a time


def explained_input(file: BinaryIO, where: str) -> BinaryIO:
    """``file``, whose errors of reading are ``StorageError``; those of a seek stay as they are.

    Args:
        file: is closed with what is returned.
        where: its full path, for messages.
    """
    return cast("BinaryIO", io.BufferedReader(_ExplainedFile(file, where), _AHEAD))


class _ExplainedFile(io.RawIOBase):
    def __init__(self, file: BinaryIO, where: str) -> None:
        super().__init__()
        self._file = file
        self._where = where

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._read(view.nbytes)
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """What is inherited asks for 8 KiB at a time."""
        return b"".join(iter(lambda: self._read(_AHEAD), b""))

    def close(self) -> None:
        try:
            self._file.close()
        finally:
            super().close()

    def _read(self, size: int) -> bytes:
        with explaining("read", self._where):
            try:
                return self._file.read(size)
            except FileNotFoundError as error:
                # Over WebHDFS every range is opened anew, so a file can go between two of them.
                raise StorageError(
                    f"cannot read '{self._where}': it was removed meanwhile; start again", code="UNAVAILABLE"
                ) from error
