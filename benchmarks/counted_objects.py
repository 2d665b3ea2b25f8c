"""A bucket in memory that counts what it is asked, each request as a store would bill it.

Listings are answered from one dictionary per directory, so that a long history costs what the store
would take, not what a scan of all keys would.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from filesink.errors import CommitConflictError, StorageError
from filesink.storage.objects.api import (
    EXISTS,
    NO_UPLOAD,
    Condition,
    CopyRange,
    FoundObject,
    FoundUpload,
    NewUpload,
    ObjectInfo,
)
from filesink.storage.staged import UploadedPart

if TYPE_CHECKING:
    from formats.api import Buffer

_PAGE = 1000  # keys in one answer


@dataclass(slots=True)
class Upload:
    """An unfinished upload: its key, its token, and its parts by number."""

    key: str
    token: str
    parts: dict[int, UploadedPart] = field(default_factory=dict)


@dataclass(slots=True)
class CountedObjects:
    """Implements ``filesink.storage.objects.api.Objects``; bytes of part files are counted, not kept.

    Args:
        round_trip: seconds that every request takes.
    """

    round_trip: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)
    largest: int = 0  # bytes of one object that was put at once
    where: str = "s3://counted"
    _directories: dict[str, dict[str, tuple[bytes, int, str]]] = field(default_factory=dict)
    _uploads: dict[str, Upload] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def head(self, key: str, /) -> ObjectInfo | None:
        """See ``Objects.head``."""
        self._count("HEAD")
        found = self._find(key)
        return found and ObjectInfo(size=found[1], etag=key, mtime_ms=0, token=found[2])

    def get(self, key: str, /, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """See ``Objects.get``."""
        del etag
        self._count("GET")
        found = self._find(key)
        if found is None:
            raise FileNotFoundError(key)
        return found[0][start:end]

    def put(self, key: str, data: Buffer, /, *, token: str, condition: Condition) -> None:
        """See ``Objects.put``."""
        self._count("PUT")
        content = bytes(data)
        self.largest = max(self.largest, len(content))
        self._make(key, (content, len(content), token), condition)

    def delete(self, key: str, /, *, etag: str = "") -> None:
        """See ``Objects.delete``."""
        del etag
        self._count("DELETE")
        directory, name = _split(key)
        with self._lock:
            self._directories.get(directory, {}).pop(name, None)

    def list_objects(self, prefix: str, /) -> tuple[list[FoundObject], list[str]]:
        """See ``Objects.list_objects``; a request for each page."""
        with self._lock:
            names = dict(self._directories.get(prefix, {}))
            below = [each for each in self._directories if each != prefix and each.startswith(prefix)]
        prefixes = sorted({prefix + each[len(prefix) :].split("/")[0] + "/" for each in below})
        self._count("LIST", 1 + (len(names) + len(prefixes)) // _PAGE)
        found = [FoundObject(key=prefix + name, size=names[name][1], etag="", mtime_ms=0) for name in names]
        return found, prefixes

    def list_uploads(self, prefix: str, /) -> tuple[list[FoundUpload], list[str]]:
        """See ``Objects.list_uploads``."""
        with self._lock:
            found = [
                FoundUpload(key=upload.key, upload_id=upload_id, begun_ms=0)
                for upload_id, upload in self._uploads.items()
                if upload.key.startswith(prefix)
            ]
        self._count("LIST", 1 + len(found) // _PAGE)
        return found, []

    def create_upload(self, key: str, /, *, token: str) -> NewUpload:
        """See ``Objects.create_upload``."""
        self._count("POST create")
        with self._lock:
            upload_id = secrets.token_hex(48)  # as long as real ones, and as hard to compress
            self._uploads[upload_id] = Upload(key, token)
        return NewUpload(upload_id=upload_id, abort_ms=None)

    def upload_part(self, key: str, upload_id: str, /, *, number: int, data: Buffer) -> str:
        """See ``Objects.upload_part``."""
        del key
        self._count("PUT part")
        part = UploadedPart(number=number, etag=f'"{secrets.token_hex(16)}"', size=len(data))
        self._uploads[upload_id].parts[number] = part
        return part.etag

    def copy_part(self, key: str, upload_id: str, /, *, number: int, source: CopyRange) -> str | None:
        """See ``Objects.copy_part``."""
        return self.upload_part(key, upload_id, number=number, data=bytes(source.end - source.start))

    def list_parts(self, key: str, upload_id: str, /) -> list[UploadedPart] | None:
        """See ``Objects.list_parts``."""
        del key
        self._count("LIST parts")
        upload = self._uploads.get(upload_id)
        return None if upload is None else list(upload.parts.values())

    def complete(
        self, key: str, upload_id: str, /, *, parts: Sequence[UploadedPart], condition: Condition
    ) -> None:
        """See ``Objects.complete``."""
        self._count("POST complete")
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise StorageError("there is no such upload", code=NO_UPLOAD)
        self._make(key, (b"", sum(part.size for part in parts), upload.token), condition)
        with self._lock:
            del self._uploads[upload_id]

    def abort(self, key: str, upload_id: str, /) -> None:
        """See ``Objects.abort``."""
        del key
        self._count("DELETE")
        with self._lock:
            self._uploads.pop(upload_id, None)

    def _find(self, key: str) -> tuple[bytes, int, str] | None:
        directory, name = _split(key)
        return self._directories.get(directory, {}).get(name)

    def _make(self, key: str, made: tuple[bytes, int, str], condition: Condition) -> None:
        directory, name = _split(key)
        with self._lock:
            names = self._directories.setdefault(directory, {})
            if name in names and condition is Condition.IF_ABSENT:
                raise CommitConflictError("something stands under this key", code=EXISTS)
            names[name] = made

    def _count(self, request: str, times: int = 1) -> None:
        if self.round_trip:
            time.sleep(self.round_trip * times)
        with self._lock:
            self.requests[request] += times


def _split(key: str) -> tuple[str, str]:
    directory, slash, name = key.rpartition("/")
    return directory + slash, name
