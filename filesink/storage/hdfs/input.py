"""A file on HDFS as it is read by somebody who knows no namenode."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

from filesink.errors import StorageError
from filesink.storage.hdfs.errors import explaining
from filesink.storage.ranged import RangedFile

_AHEAD = 1 << 20  # bytes read at a time


def explained_input(file: BinaryIO, where: str) -> BinaryIO:
    """``file``, whose errors of reading are ``StorageError``.

    Args:
        file: is closed with what is returned.
        where: its full path, for messages.
    """
    return cast("BinaryIO", io.BufferedReader(_ExplainedFile(file, where), _AHEAD))


class _ExplainedFile(RangedFile):
    def __init__(self, file: BinaryIO, where: str) -> None:
        super().__init__(file.seek(0, io.SEEK_END))
        self._file = file
        self._where = where

    def _range(self, start: int, most: int) -> bytes:
        with explaining("read", self._where):
            try:
                self._file.seek(start)
                return self._file.read(most)
            except FileNotFoundError as error:
                # Over WebHDFS every range is opened anew, so a file can go between two of them.
                raise StorageError(
                    f"cannot read '{self._where}': it was removed meanwhile; start again", code="UNAVAILABLE"
                ) from error

    def close(self) -> None:
        try:
            self._file.close()
        finally:
            super().close()
