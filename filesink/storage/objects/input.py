"""An object as a file that can be read from anywhere."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

from filesink.errors import StorageError
from filesink.storage.objects.api import MIB, Objects
from filesink.storage.ranged import RangedFile

_AHEAD = 4 * MIB  # read at a time


def open_object(objects: Objects, key: str) -> BinaryIO:
    """Open an object as it stands now; ``FileNotFoundError`` if there is none."""
    found = objects.head(key)
    if found is None:
        raise FileNotFoundError(f"{objects.where}/{key}")
    raw = _RawObject(objects, key, size=found.size, etag=found.etag)
    return cast("BinaryIO", io.BufferedReader(raw, _AHEAD))


class _RawObject(RangedFile):
    """Reads ranges; an object that was replaced meanwhile is an error, never a mixture."""

    def __init__(self, objects: Objects, key: str, *, size: int, etag: str) -> None:
        super().__init__(size)
        self._objects = objects
        self._key = key
        self._etag = etag

    def _range(self, start: int, most: int) -> bytes:
        try:
            data = self._objects.get(self._key, start=start, end=start + most, etag=self._etag)
        except FileNotFoundError as error:
            raise StorageError(
                f"cannot read '{self._objects.where}/{self._key}': it was removed meanwhile; start again",
                code="UNAVAILABLE",
            ) from error
        if len(data) != most:
            raise StorageError(
                f"cannot read '{self._objects.where}/{self._key}': only {len(data)} of {most} bytes came; "
                "start again",
                code="UNAVAILABLE",
            )
        return data
