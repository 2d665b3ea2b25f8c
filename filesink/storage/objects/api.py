"""What an S3-like store of objects offers: the port between ``ObjectStore`` and its client.

Facts that callers rely on, by Amazon's own description of the service:

* One key changes at once; listings and reads see it right away. There are no directories.
* A multipart upload is invisible until it is completed, by anyone who knows key, id and parts.
* A part that is uploaded again replaces the earlier one. Parts but the last have 5 MiB at least.
* A completed or aborted upload is unknown afterwards; some servers accept a repeated completion.
* Any answer may be lost, and a request whose answer was lost may still take effect later.

Errors are ``StorageError`` with one of the codes below, so that callers need not know the client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from filesink.storage.staged import UploadedPart

if TYPE_CHECKING:
    from formats.api import Buffer

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SMALLEST_PART = 5 * MIB  # all but the last; the largest has 5 GiB
LARGEST_PART = 5 * GIB
MOST_PARTS = 10_000
LONGEST_KEY = 1024  # bytes of UTF-8

EXISTS = "EXISTS"  # the condition does not hold: something stands there, or the source has changed
RACE = "CONFLICT"  # another conditional write to this key is under way; nothing was done
NO_UPLOAD = "NO_UPLOAD"  # completed or aborted, long ago or just now
BAD_PARTS = "BAD_PARTS"  # a part is not there, or not the one that was named
UNAVAILABLE = "UNAVAILABLE"  # no answer, or one that does not tell whether it was done


class Condition(Enum):
    """Whether a key may be written that exists already."""

    IF_ABSENT = "if absent"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    """An object as it stands. ``token`` is the one it was made with, ``""`` for those of others."""

    size: int
    etag: str
    mtime_ms: int
    token: str

    @property
    def version(self) -> str:
        """See ``Entry.version``."""
        return version_of(self.etag, self.mtime_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundObject:
    """One object of a listing; ``mtime_ms`` since 1970 UTC."""

    key: str
    size: int
    etag: str
    mtime_ms: int

    @property
    def version(self) -> str:
        """See ``Entry.version``."""
        return version_of(self.etag, self.mtime_ms)


def version_of(etag: str, mtime_ms: int) -> str:
    """Etag and second: equal bytes have equal etags, and answers differ in quotes and fractions."""
    etag = etag.strip('"')
    return f"{etag}.{mtime_ms // 1000}"


def quoted(etag: str) -> str:
    """An etag as conditions want it; in listings some servers leave its quotes out."""
    return f'"{etag.strip(chr(34))}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUpload:
    """One unfinished upload of a listing; ``begun_ms`` since 1970 UTC, by the store's clock."""

    key: str
    upload_id: str
    begun_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUpload:
    """An upload just begun.

    Attributes:
        upload_id: the store's name of it.
        abort_ms: when a rule of the bucket aborts it; ``None`` for never.
        is_listed: whether listings show it before it has a part.
    """

    upload_id: str
    abort_ms: int | None
    is_listed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRange:
    """Bytes ``start`` to ``end`` (not included) of an object that still has this ``etag``."""

    key: str
    etag: str
    start: int
    end: int


class Objects(Protocol):
    """One bucket. May be used by several threads."""

    @property
    def where(self) -> str:
        """The bucket, for messages, as ``s3://bucket``."""
        ...

    def head(self, key: str, /) -> ObjectInfo | None:
        """What stands under ``key``, or ``None``."""
        ...

    def get(self, key: str, /, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """Its bytes, or some of them. ``FileNotFoundError``; ``EXISTS`` if its etag is another."""
        ...

    def put(self, key: str, data: Buffer, /, *, token: str, condition: Condition) -> None:
        """Make an object at once."""
        ...

    def delete(self, key: str, /, *, etag: str = "") -> None:
        """Remove an object; an absent one is no error. ``EXISTS`` if its etag is another."""
        ...

    def list_objects(self, prefix: str, /) -> tuple[list[FoundObject], list[str]]:
        """Objects right below ``prefix``, and prefixes that end with the next ``/``; all pages."""
        ...

    def list_uploads(self, prefix: str, /) -> tuple[list[FoundUpload], list[str]]:
        """``list_objects`` for uploads. Some servers return those further below as well."""
        ...

    def create_upload(self, key: str, /, *, token: str) -> NewUpload:
        """Begin an upload; ``token`` will be that of the object."""
        ...

    def upload_part(self, key: str, upload_id: str, /, *, number: int, data: Buffer) -> str:
        """Upload one part and return its etag."""
        ...

    def copy_part(self, key: str, upload_id: str, /, *, number: int, source: CopyRange) -> str | None:
        """Make a part of bytes that the store has already; ``None`` if this store cannot."""
        ...

    def list_parts(self, key: str, upload_id: str, /) -> list[UploadedPart] | None:
        """The parts of an upload, all pages; ``None`` if there is no such upload."""
        ...

    def complete(
        self, key: str, upload_id: str, /, *, parts: Sequence[UploadedPart], condition: Condition
    ) -> None:
        """Make the object. ``EXISTS``, ``RACE``, ``NO_UPLOAD``, ``BAD_PARTS`` or ``UNAVAILABLE``."""
        ...

    def abort(self, key: str, upload_id: str, /) -> None:
        """Give an upload up; an absent one is no error."""
        ...
