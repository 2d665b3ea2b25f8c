"""A bucket of Google Cloud Storage as ``Objects``, by the calls of the JSON API.

What stands for a multipart upload, since Google's own takes no condition when it is completed:

* The parts are hidden objects beside the one that they become, named by it and its token, and made only if
  they are absent. The upload's id is the token. A part's etag is its generation, no other bytes'.
* To complete is to compose them under the final name, if that is absent and each part is still of its
  generation: one step, which copies nothing. Google composes 32 objects at a time, so more go by levels.
* Parts stay until ``release``, and are listed as an upload: another driver finds them, and so does a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from filesink.errors import StorageError
from filesink.naming import name_of
from filesink.storage.gcs.calls import Calls, Found, crc32c_of, if_generation
from filesink.storage.gcs.errors import failed
from filesink.storage.gcs.options import GcsOptions
from filesink.storage.gcs.parts import PartName, hidden_prefix, parse_part, parts_prefix
from filesink.storage.gcs.session import Service
from filesink.storage.objects.api import (
    BAD_PARTS,
    EXISTS,
    Condition,
    CopyRange,
    FoundObject,
    FoundUpload,
    NewUpload,
    ObjectInfo,
)
from filesink.storage.staged import UploadedPart
from filesink.system import SystemClock

if TYPE_CHECKING:
    from formats.api import Buffer

_TOKEN = "filesink-token"  # noqa: S105 - the name of a field of metadata, the same as on S3
_AT_ONCE = 32  # sources of one composition
_COMPLETING = "complete the upload to"
_Sources = list[tuple[str, str, int]]  # key, generation, size


def connect(bucket: str, options: GcsOptions) -> GcsObjects:
    """The bucket, through this process's own session. Asks nobody yet."""
    return GcsObjects(Calls(Service(options, SystemClock()), bucket))


class GcsObjects:
    """See ``filesink.storage.objects.api.Objects``."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def where(self) -> str:
        """See ``Objects.where``."""
        return self._calls.where

    def head(self, key: str, /) -> ObjectInfo | None:
        """See ``Objects.head``."""
        found = self._calls.look("look at", key)
        if found is None:
            return None
        metadata = {name.lower(): value for name, value in found.metadata.items()}
        return ObjectInfo(
            size=found.size,
            etag=found.generation,
            mtime_ms=found.mtime_ms,
            token=metadata.get(_TOKEN, ""),
        )

    def get(self, key: str, /, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """See ``Objects.get``."""
        return self._calls.read(key, start=start, end=end, generation=etag)

    def put(self, key: str, data: Buffer, /, *, token: str, condition: Condition) -> None:
        """See ``Objects.put``."""
        self._calls.insert("write", key, data, token=token, metadata={_TOKEN: token}, only=condition)

    def delete(self, key: str, /, *, etag: str = "") -> None:
        """See ``Objects.delete``."""
        self._calls.remove(key, if_generation(etag))

    def list_objects(self, prefix: str, /) -> tuple[list[FoundObject], list[str]]:
        """See ``Objects.list_objects``; without the parts of uploads."""
        found: list[FoundObject] = []
        below: list[str] = []
        for each in self._calls.found(prefix, delimiter="/"):
            if isinstance(each, str):
                below.append(each)
            elif parse_part(each.key) is None:
                one = FoundObject(key=each.key, size=each.size, etag=each.generation, mtime_ms=each.mtime_ms)
                found.append(one)
        return found, below

    def list_uploads(self, prefix: str, /) -> tuple[list[FoundUpload], list[str]]:
        """See ``Objects.list_uploads``. What lies deeper is where ``list_objects`` finds something."""
        begun: dict[tuple[str, str], int] = {}
        for found, part in self._parts(hidden_prefix(prefix), delimiter="/"):
            upload = (part.key, part.token)
            begun[upload] = min(found.mtime_ms, begun.get(upload, found.mtime_ms))
        return [FoundUpload(key=key, upload_id=token, begun_ms=ms) for (key, token), ms in begun.items()], []

    def create_upload(self, key: str, /, *, token: str) -> NewUpload:
        """See ``Objects.create_upload``; the service hears of it with the first part."""
        del key
        return NewUpload(upload_id=token, abort_ms=None, is_listed=False)

    def upload_part(self, key: str, upload_id: str, /, *, number: int, data: Buffer) -> str:
        """See ``Objects.upload_part``. What an earlier try has made is the part."""
        name = str(PartName(key=key, token=upload_id, level=0, number=number))
        operation = "upload to"
        try:
            return self._calls.insert(
                operation, name, data, token=upload_id, metadata={}, only=Condition.IF_ABSENT
            )
        except StorageError as error:
            if error.code != EXISTS:
                raise
            return self._standing(operation, name, size=len(data), crc32c=crc32c_of(data))

    def copy_part(self, key: str, upload_id: str, /, *, number: int, source: CopyRange) -> str | None:
        """See ``Objects.copy_part``; of whole objects only, see ``Copying.WHOLE``."""
        name = PartName(key=key, token=upload_id, level=0, number=number)
        return self._made_of("copy to", name, [(source.key, source.etag, source.end)])

    def list_parts(self, key: str, upload_id: str, /) -> list[UploadedPart] | None:
        """See ``Objects.list_parts``."""
        parts = [
            UploadedPart(number=part.number, etag=found.generation, size=found.size)
            for found, part in self._parts(parts_prefix(key, upload_id))
            if part.level == 0
        ]
        return sorted(parts, key=lambda part: part.number) or None

    def complete(
        self, key: str, upload_id: str, /, *, parts: Sequence[UploadedPart], condition: Condition
    ) -> None:
        """See ``Objects.complete``. Nobody calls ``release`` for a hidden object, so its parts go at once."""
        names = (PartName(key=key, token=upload_id, level=0, number=part.number) for part in parts)
        sources = [(str(name), part.etag, part.size) for name, part in zip(names, parts, strict=True)]
        level = 0
        while len(sources) > _AT_ONCE:
            level += 1
            sources = self._put_together(key, upload_id, level, sources)
        self._calls.compose(_COMPLETING, key, sources, metadata={_TOKEN: upload_id}, only=condition)
        if name_of(key).startswith("."):
            with suppress(StorageError):  # swept later
                self.abort(key, upload_id)

    def release(self, key: str, upload_id: str, parts: Sequence[UploadedPart], /) -> None:
        """Remove the parts of an upload that is completed; those that are gone are no error."""
        if len(parts) > _AT_ONCE:  # there are levels, of which the parts do not tell
            self.abort(key, upload_id)
            return
        for part in parts:
            name = PartName(key=key, token=upload_id, level=0, number=part.number)
            self._remove_version(str(name), part.etag)

    def abort(self, key: str, upload_id: str, /) -> None:
        """See ``Objects.abort``."""
        for found, _ in list(self._parts(parts_prefix(key, upload_id))):
            self._remove_version(found.key, found.generation)

    def _remove_version(self, key: str, generation: str) -> None:
        """For good: in a bucket with versions a plain removal would keep the bytes."""
        self._calls.remove(key, {"generation": generation})

    def _parts(self, prefix: str, *, delimiter: str = "") -> Iterator[tuple[Found, PartName]]:
        for found in self._calls.found(prefix, delimiter=delimiter):
            part = None if isinstance(found, str) else parse_part(found.key)
            if part is not None and not isinstance(found, str):
                yield found, part

    def _put_together(self, key: str, upload_id: str, level: int, sources: _Sources) -> _Sources:
        """The objects of one level; another driver may be making the same, or have made them."""
        made = []
        for number, first in enumerate(range(0, len(sources), _AT_ONCE), start=1):
            some = sources[first : first + _AT_ONCE]
            name = PartName(key=key, token=upload_id, level=level, number=number)
            generation = self._made_of(_COMPLETING, name, some)
            made.append((str(name), generation, sum(size for _, _, size in some)))
        return made

    def _made_of(self, operation: str, name: PartName, sources: _Sources) -> str:
        """The generation of an object that only this upload makes, and always of the same sources."""
        try:
            return self._calls.compose(operation, str(name), sources, metadata={}, only=Condition.IF_ABSENT)
        except StorageError as error:
            if error.code != EXISTS:
                raise
            return self._standing(operation, str(name), size=sum(size for _, _, size in sources), crc32c="")

    def _standing(self, operation: str, key: str, *, size: int, crc32c: str) -> str:
        """The generation of what stands there already, if it is what was to be made."""
        found = self._calls.look(operation, key)
        if found is None:  # then it was a source that is no longer what it was
            raise failed(EXISTS, operation, self._calls.full(key), "a source was changed")
        if found.size != size or crc32c not in {"", found.crc32c}:
            raise failed(BAD_PARTS, operation, self._calls.full(key), "another object stands there")
        return found.generation
