"""Objects put together by S3 itself, as one multipart upload.

A piece of 5 MiB or more is copied within the store (UploadPartCopy); what is smaller is read and
sent, several pieces as one part, since only the last part may be smaller. Sources are copied and
read under the condition that they still have the etag under which their token was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from filesink.errors import StagedDataLost, StorageError
from filesink.storage.multipart import MultipartUpload
from filesink.storage.objects import EXISTS, GIB, SMALLEST_PART, CopyRange
from filesink.storage.s3_output import Uploads
from filesink.storage.s3_publish import Bucket, make_object
from filesink.storage.staged import HiddenObject, PendingUpload, Piece, Tail, own
from filesink.system import ThreadRunner

_LARGEST_COPY = 1 * GIB  # per request; several are under way at a time


def concat(
    uploads: Uploads, pieces: Sequence[Piece], path: str, *, target: str | None
) -> PendingUpload | HiddenObject:
    """See ``Store.concat``."""
    looks = ThreadRunner(threads=8).run(partial(_located, uploads.bucket), pieces)
    sources = [source for source in looks if isinstance(source, bytes) or source.end > source.start]
    upload = uploads.begin(target or path)
    try:
        joined = _Joined(uploads.bucket, upload)
        for number, source in enumerate(sources, start=1):
            joined.add(source, is_last=number == len(sources))
        joined.flush(is_last=True)
        pending = upload.pending(target or path, upload.finish())
        return pending if target is not None else make_object(uploads.bucket, pending)
    except BaseException as error:
        with suppress(StorageError):  # what is left is an upload of ours and is swept later
            upload.abort()
        if isinstance(error, StorageError | FileNotFoundError) and _is_changed(error):
            raise StagedDataLost(
                f"a file that was to become part of '{uploads.bucket.where(target or path)}' was removed or "
                "changed while it was copied",
                code="STAGED_DATA_LOST",
            ) from error
        raise


@dataclass(slots=True)
class _Joined:
    """Bytes and objects in order, as parts of an upload."""

    bucket: Bucket
    upload: MultipartUpload
    _small: bytearray = field(default_factory=bytearray)

    def add(self, source: CopyRange | bytes, *, is_last: bool) -> None:
        if isinstance(source, bytes):
            self._small += source
            return
        if self._small:  # top up to a full part, unless that would leave too little to copy
            missing = max(0, SMALLEST_PART - len(self._small))
            if source.end - source.start < missing + SMALLEST_PART:
                missing = source.end - source.start
            self._read(source, source.start + missing)
            source = CopyRange(key=source.key, etag=source.etag, start=source.start + missing, end=source.end)
        if source.end - source.start >= SMALLEST_PART or (is_last and source.end > source.start):
            self.flush(is_last=False)
            for step in _steps(source):
                self.upload.copy(step)
        else:
            self._read(source, source.end)

    def flush(self, *, is_last: bool) -> None:
        """Send what waits; an upload of nothing gets one empty part."""
        if self._small or (is_last and self.upload.next_number == 1):
            self.upload.send(self._small)
            self._small = bytearray()

    def _read(self, source: CopyRange, end: int) -> None:
        if end > source.start:
            objects = self.bucket.objects
            self._small += objects.get(source.key, start=source.start, end=end, etag=source.etag)
        if len(self._small) >= SMALLEST_PART:
            self.flush(is_last=False)


def _located(bucket: Bucket, piece: Piece) -> CopyRange | bytes:
    """Where the bytes of ``piece`` are; raises ``StagedDataLost`` if they are not what they were."""
    if isinstance(piece, bytes):
        return piece
    start = piece.start if isinstance(piece, Tail) else 0
    staged = own(piece.staged if isinstance(piece, Tail) else piece, HiddenObject)
    key = bucket.key(staged.path)
    found = bucket.objects.head(key)
    if found is None or (found.token, found.size) != (staged.token, staged.size):
        raise StagedDataLost(
            f"'{bucket.where(staged.path)}', written with {staged.size} bytes, is gone or another object; "
            "choose with FileSink.recover(lost=...) how to go on",
            code="STAGED_DATA_LOST",
        )
    return CopyRange(key=key, etag=found.etag, start=start, end=staged.size)


def _steps(source: CopyRange) -> Iterator[CopyRange]:
    """Even steps, none of them too small to be a part."""
    size = source.end - source.start
    count = -(-size // _LARGEST_COPY)
    for number in range(count):
        yield CopyRange(
            key=source.key,
            etag=source.etag,
            start=source.start + size * number // count,
            end=source.start + size * (number + 1) // count,
        )


def _is_changed(error: StorageError | FileNotFoundError) -> bool:
    return isinstance(error, FileNotFoundError) or error.code == EXISTS
