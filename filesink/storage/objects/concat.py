"""Objects put together by the store itself, as one multipart upload.

A piece of 5 MiB or more is copied within the store; what is smaller is read and sent, several pieces as
one part, since on S3 (UploadPartCopy) only the last part may be smaller. Where a store copies whole objects
only, what is cut off from one is read. Sources are copied and read under the condition that they still have
the etag under which their token was seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from filesink.errors import StagedDataLost, StorageError
from filesink.storage.objects.api import EXISTS, GIB, LARGEST_PART, MIB, SMALLEST_PART, CopyRange
from filesink.storage.objects.multipart import CannotCopy, MultipartUpload
from filesink.storage.objects.options import Copying
from filesink.storage.objects.output import Uploads
from filesink.storage.objects.publish import Bucket, make_object
from filesink.storage.staged import HiddenObject, PendingUpload, Piece, Tail, own

_LARGEST_COPY = GIB  # per request; several are under way at a time
_LARGEST_READ = 16 * MIB


def concat(
    uploads: Uploads, pieces: Sequence[Piece], path: str, *, target: str | None
) -> PendingUpload | HiddenObject:
    """See ``Store.concat``."""
    looks = uploads.runner.run(partial(_located, uploads.bucket), pieces)
    sources = [source for source in looks if isinstance(source, bytes) or source.end > source.start]
    try:
        pending = _join(uploads, sources, target or path, copy_from=SMALLEST_PART)
    except CannotCopy:
        pending = _join(uploads, sources, target or path, copy_from=sys.maxsize)
    return pending if target is not None else make_object(uploads.bucket, pending)


def _join(
    uploads: Uploads, sources: Sequence[CopyRange | bytes], path: str, *, copy_from: int
) -> PendingUpload:
    upload = uploads.begin(path)
    try:
        joined = _Joined(uploads.bucket, upload, copy_from, uploads.copying)
        for source in sources[:-1]:
            joined.add(source)
        for source in sources[-1:]:
            joined.add_last(source)
        joined.flush_all()
        return upload.pending(path, upload.finish())
    except BaseException as error:
        with suppress(StorageError):  # what is left is an upload of ours and is swept later
            upload.abort()
        if isinstance(error, StorageError | FileNotFoundError) and _is_changed(error):
            raise StagedDataLost(
                f"a file that was to become part of '{uploads.bucket.where(path)}' was removed or changed "
                "while it was copied",
                code="STAGED_DATA_LOST",
            ) from error
        raise


@dataclass(slots=True)
class _Joined:
    """Bytes and objects in order, as parts of an upload. Objects of ``copy_from`` bytes are copied."""

    bucket: Bucket
    upload: MultipartUpload
    copy_from: int
    copying: Copying
    _small: bytearray = field(default_factory=bytearray)

    def add(self, source: CopyRange | bytes) -> None:
        """Append one source that others follow."""
        if isinstance(source, bytes):
            self._small += source
            return
        if self._small and self.copying is Copying.RANGES:
            # Top up to a full part, unless that would leave too little to copy.
            missing = max(0, SMALLEST_PART - len(self._small))
            start = min(source.start + missing, source.end)
            self._read(source, start)
            source = replace(source, start=start)
        if self._can_copy(source) and source.end - source.start >= self.copy_from:
            if self._small:
                self._flush()
            self._copy(source)
        else:
            self._read(source, source.end)

    def add_last(self, source: CopyRange | bytes) -> None:
        """Append the last source, which alone may be copied although it is small."""
        if isinstance(source, bytes) or self._small or self.copy_from > LARGEST_PART:
            self.add(source)
        elif not self._can_copy(source):
            self._read(source, source.end)
        else:
            self._copy(source)

    def flush_all(self) -> None:
        """Send what waits; an upload of nothing gets one empty part."""
        if self._small or self.upload.next_number == 1:
            self._flush()

    def _can_copy(self, source: CopyRange) -> bool:
        return self.copying is Copying.RANGES or not source.start  # what has its beginning has its end, too

    def _copy(self, source: CopyRange) -> None:
        largest = _LARGEST_COPY if self.copying is Copying.RANGES else sys.maxsize
        for step in _steps(source, largest):
            self.upload.copy(step)

    def _read(self, source: CopyRange, end: int) -> None:
        if end > source.start:
            for step in _steps(replace(source, end=end), _LARGEST_READ):
                objects = self.bucket.objects
                self._small += objects.get(step.key, start=step.start, end=step.end, etag=step.etag)
                if len(self._small) >= SMALLEST_PART:
                    self._flush()

    def _flush(self) -> None:
        self.upload.send(self._small)
        self._small = bytearray()


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


def _steps(source: CopyRange, largest: int) -> Iterator[CopyRange]:
    """Even steps, none of them too small to be a part."""
    size = source.end - source.start
    count = -(-size // largest)
    for number in range(count):
        yield replace(
            source,
            start=source.start + size * number // count,
            end=source.start + size * (number + 1) // count,
        )


def _is_changed(error: StorageError | FileNotFoundError) -> bool:
    return isinstance(error, FileNotFoundError) or error.code == EXISTS
