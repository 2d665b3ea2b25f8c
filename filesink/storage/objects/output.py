"""A file on S3 while it is written: memory up to the size of a part, then a multipart upload.

What is published by its own epoch is an upload to its final key, of one part if it is small. What
may be held becomes a complete object under its hidden name as soon as it is closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filesink.errors import CommitConflictError, InternalError, StorageError
from filesink.ports import Ids, TaskRunner
from filesink.storage.api import PutResult
from filesink.storage.objects.api import EXISTS, LARGEST_PART
from filesink.storage.objects.multipart import MultipartUpload, Senders, size_of_part
from filesink.storage.objects.options import Copying
from filesink.storage.objects.publish import Bucket, make_object, put_if_absent
from filesink.storage.staged import HiddenObject, PendingUpload

if TYPE_CHECKING:
    from formats.api import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """What the outputs of a store share."""

    bucket: Bucket
    senders: Senders
    ids: Ids
    runner: TaskRunner
    part_size: int
    largest_part: int = LARGEST_PART
    copying: Copying = Copying.RANGES

    def begin(self, path: str) -> MultipartUpload:
        """A new upload that becomes ``path``."""
        return MultipartUpload(
            self.bucket.objects, self.bucket.key(path), token=self.ids.uuid(), senders=self.senders
        )


class ObjectOutput:
    """See ``filesink.storage.api.Output``. Sends nothing before it has a part, or is closed."""

    def __init__(self, uploads: Uploads, path: str, *, target: str | None) -> None:
        self._uploads = uploads
        self._path = path
        self._target = target
        self._buffer = bytearray()  # maybe longer: what follows is of a part that was sent
        self._filled = 0
        self._upload: MultipartUpload | None = None
        self._made = False  # whether an object may stand under the hidden name that is ours
        self._closed = False
        self._position = 0

    @property
    def closed(self) -> bool:
        """See ``Output.closed``."""
        return self._closed

    def write(self, data: Buffer, /) -> int:
        """See ``Output.write``. Waits while as many parts are on their way as may be."""
        if self._closed:
            raise InternalError(f"'{self._path}' was written after it was closed", code="CLOSED")
        view = memoryview(data).cast("B")
        length = view.nbytes
        while view.nbytes:
            room = self._part_size() - self._filled
            self._add(view[:room])
            view = view[room:]
            # The last part must not be empty, so a full one waits for more.
            if view.nbytes:
                self._buffer = self._begun().exchange(self._taken())
        self._position += length
        return length

    def tell(self) -> int:
        """See ``Output.tell``."""
        return self._position

    def flush(self) -> None:
        """See ``Output.flush``."""

    def close(self) -> PendingUpload | HiddenObject:
        """See ``Output.close``. All bytes are with the store when this returns."""
        if self._closed:
            raise InternalError(f"'{self._path}' was closed twice", code="CLOSED")
        self._closed = True
        if self._target is None and self._upload is None:
            return self._put()
        self._begun().send(self._taken())
        return self._finish(self._begun())

    def discard(self) -> None:
        """See ``Output.discard``."""
        self._closed = True
        self._taken()
        if self._upload is not None:
            self._upload.abort()
        if self._made:
            self._uploads.bucket.objects.delete(self._uploads.bucket.key(self._path))

    def _finish(self, upload: MultipartUpload) -> PendingUpload | HiddenObject:
        parts = upload.finish()
        if self._position != sum(part.size for part in parts):
            raise StorageError(
                f"'{self._path}': an earlier write failed; the task must start anew", code="SIZE"
            )
        pending = upload.pending(self._target or self._path, parts)
        if self._target is not None:
            return pending
        self._made = True
        try:
            return make_object(self._uploads.bucket, pending)
        except CommitConflictError:
            self._made = False
            raise

    def _put(self) -> HiddenObject:
        token = self._uploads.ids.uuid()
        self._made = True
        result = put_if_absent(self._uploads.bucket, self._path, self._taken(), token=token)
        if result is PutResult.EXISTS:
            self._made = False
            raise CommitConflictError(
                f"'{self._uploads.bucket.where(self._path)}' exists already and was not overwritten; "
                "hidden names are never used twice, start the task again",
                code=EXISTS,
            )
        return HiddenObject(path=self._path, size=self._position, token=token)

    def _add(self, data: memoryview) -> None:
        end = self._filled + data.nbytes
        if end <= len(self._buffer):
            with memoryview(self._buffer) as room:
                room[self._filled : end] = data
        else:
            del self._buffer[self._filled :]
            self._buffer += data
        self._filled = end

    def _taken(self) -> bytearray:
        """What waits to be sent; afterwards nothing does."""
        data, self._buffer = self._buffer, bytearray()
        del data[self._filled :]
        self._filled = 0
        return data

    def _begun(self) -> MultipartUpload:
        if self._upload is None:
            self._upload = self._uploads.begin(self._target or self._path)
        return self._upload

    def _part_size(self) -> int:
        number = 1 if self._upload is None else self._upload.next_number
        return size_of_part(number, self._uploads.part_size, self._uploads.largest_part)
