"""Files on Amazon S3 and on stores that speak its protocol.

A part file is a multipart upload from its first byte: the task sends the parts, straight to the final
key, and reports their etags; the driver completes the upload. Nobody sees it before, nothing is
copied, and nothing passes through the driver. See ``s3_publish`` for what makes that happen once,
``multipart`` for the sizes of parts and the memory they take.

What must outlive its epoch (a segment of a part that stays open, a small file that waits to be
merged) is a complete object under a hidden name, since a bucket's rules may abort uploads at any age.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from filesink.errors import BucketError, CommitConflictError, InternalError
from filesink.naming import LEDGER_ROOT, check_relative, join, name_of, parent, parse_upload, upload_path
from filesink.ports import Clock, Ids
from filesink.storage.api import Deletion, Entry, Kind, PutResult, Removal, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.objects.api import LONGEST_KEY, FoundObject, Objects, quoted
from filesink.storage.objects.concat import concat
from filesink.storage.objects.input import open_object
from filesink.storage.objects.multipart import Senders
from filesink.storage.objects.options import SMALL_REQUESTS, UploadOptions
from filesink.storage.objects.output import ObjectOutput, Uploads
from filesink.storage.objects.probe import prove, try_removing
from filesink.storage.objects.publish import Bucket, complete, is_published, put_if_absent, verify
from filesink.storage.staged import HiddenObject, PendingUpload, Piece, Staged, own
from filesink.system import ThreadRunner

log = logging.getLogger("filesink")
# What XML 1.0 cannot hold, or gives back as something else. Nothing could be listed beside such a key.
_NOT_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ObjectStore(Store):
    """A store in a bucket. May be used by several threads.

    Args:
        objects: the bucket.
        prefix: of the base path in it, without ``/`` at either end; ``""`` is the bucket itself.
        options: part size, concurrency and what the user vouches for.
        clock: waits between two looks at a key.
        ids: makes tokens.
    """

    def __init__(
        self, objects: Objects, prefix: str, *, options: UploadOptions, clock: Clock, ids: Ids
    ) -> None:
        self._objects = objects
        self._bucket = Bucket(
            objects=objects,
            prefix=f"{prefix}/" if prefix else "",
            clock=clock,
            conditional=options.conditional_writes,
        )
        self.runner = ThreadRunner(threads=max(options.max_concurrency, SMALL_REQUESTS))
        self._uploads = Uploads(
            bucket=self._bucket,
            senders=Senders(options.max_concurrency),
            ids=ids,
            runner=self.runner,
            part_size=options.part_size,
            largest_part=options.largest_part,
            copying=options.copying,
        )
        self._removal: Removal | None = None  # not tried yet

    def prepare(self) -> None:
        """See ``Store.prepare``; a bucket has no directories to be made."""
        self._removal = prove(self._uploads)
        if self._removal is Removal.REFUSED:
            log.warning(
                "'%s' does not let these credentials delete. Leftovers of crashed drivers and old records of "
                "the ledger will never be removed, and each start takes longer. "
                "Allow it below the base path (s3:DeleteObject, or Azure's 'delete')",
                self._bucket.where(""),
            )

    def removal(self) -> Removal:
        """See ``Store.removal``; may be allowed and refused apart from all else."""
        if self._removal is None:
            self._removal = try_removing(self._uploads)
        return self._removal

    def create(self, path: str, *, target: str | None) -> ObjectOutput:
        """See ``Store.create``."""
        self._bucket.key(path)
        found = self.refusal(target or path)
        if found is not None:
            raise BucketError(f"the base path {found.why}; write to another", code=found.code)
        return ObjectOutput(self._uploads, path, target=target)

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``."""
        return _unusable(self._bucket.key(path))

    def sync(self) -> None:
        """See ``Store.sync``. What is closed is durable already; ends the threads that have sent it."""
        self._uploads.senders.join()

    def promote(self, held: Staged, target: str) -> PendingUpload:
        """See ``Store.promote``. The store copies it: no byte passes through here."""
        if isinstance(held, PendingUpload) and held.target == target:
            return held
        promoted = concat(self._uploads, [own(held, HiddenObject)], held.path, target=target)
        return own(promoted, PendingUpload)

    def concat(
        self, pieces: Sequence[Piece], path: str, *, target: str | None
    ) -> PendingUpload | HiddenObject:
        """See ``Store.concat``."""
        return concat(self._uploads, pieces, path, target=target)

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        if isinstance(staged, PendingUpload):
            verify(self._bucket, staged)
        else:
            verify(self._bucket, own(staged, HiddenObject))

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``; ``target`` is that of the upload."""
        complete(self._bucket, _upload_to(staged, target))

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return is_published(self._bucket, _upload_to(staged, target))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``; an object's name is as durable as the object."""
        del directories

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        upload = parse_upload(name_of(path))
        if upload is None:
            self._objects.delete(self._bucket.key(path))
        else:
            target, upload_id = upload
            self._objects.abort(self._bucket.key(join(parent(path), target)), upload_id)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return put_if_absent(self._bucket, path, data, token=self._uploads.ids.uuid())

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        try:
            return self._objects.get(self._bucket.key(path))
        except FileNotFoundError:
            return None

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        self._objects.delete(self._bucket.key(path))

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``; the removal is conditional where the store can."""
        key = self._bucket.key(path)
        found = self._find(key)
        if found is None:
            return Deletion.GONE
        if (found.size, found.version) != (size, version):
            return Deletion.CHANGED
        try:
            self._objects.delete(key, etag=quoted(found.etag))
        except CommitConflictError:
            return Deletion.CHANGED
        return Deletion.GONE

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``. A directory is where something is."""
        prefix = self._below(directory)
        entries, names = _visible(self._objects, prefix)
        if directory.partition("/")[0] != LEDGER_ROOT:  # no upload of ours is there: half the requests
            uploads, below = self._objects.list_uploads(prefix)
            names |= {each.removeprefix(prefix).rstrip("/") for each in below}
            for each in uploads:
                name, slash, _ = each.key.removeprefix(prefix).partition("/")
                if slash:  # some servers list what lies deeper, too
                    names.add(name)
                else:
                    hidden = upload_path(name, each.upload_id)
                    entries.append(Entry(name=hidden, size=0, mtime_ms=each.begun_ms, kind=Kind.FILE))
        entries += map(_directory, sorted(names))
        return [entry for entry in entries if entry.name]  # a key may end with '/'

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``. Nobody is asked for uploads."""
        entries, names = _visible(self._objects, self._below(directory))
        yield from (entry for entry in entries if entry.name)
        yield from (_directory(name) for name in sorted(names) if name)

    def find(self, path: str) -> Entry | None:
        """See ``Store.find``; a directory is not found."""
        found = self._find(self._bucket.key(path))
        return None if found is None else _entry(found, f"{found.key.rpartition('/')[0]}/".lstrip("/"))

    def _find(self, key: str) -> FoundObject | None:
        # Unlike HEAD, a listing needs no key of an object that was encrypted with another one, or none.
        return next((each for each in self._objects.list_objects(key)[0] if each.key == key), None)

    def _below(self, directory: str) -> str:
        return f"{self._bucket.key(directory)}/" if directory else self._bucket.prefix

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        return open_object(self._objects, self._bucket.key(path))


def _visible(store: Objects, prefix: str) -> tuple[list[Entry], set[str]]:
    """The objects right below ``prefix``, and the names of directories there."""
    objects, below = store.list_objects(prefix)
    names = {each.removeprefix(prefix).rstrip("/") for each in below}
    return [_entry(each, prefix) for each in objects], names


def _unusable(key: str) -> Refusal | None:
    """Why a store does not take such a key, or could not name it in an answer."""
    if len(key.encode()) > LONGEST_KEY:
        return Refusal(code="TOO_LONG", why=f"makes keys of more than {LONGEST_KEY} bytes")
    if _NOT_IN_XML.search(key):
        why = "holds a character that no answer of an object store can hold, so that listings would fail"
        return Refusal(code="ILLEGAL_CHAR", why=why)
    return None


def _upload_to(staged: Staged, target: str) -> PendingUpload:
    upload = own(staged, PendingUpload)
    check_relative(target)
    if upload.target != target:
        raise InternalError(
            f"the upload to '{upload.target}' cannot become '{target}'; please report this", code="TARGET"
        )
    return upload


def _entry(found: FoundObject, prefix: str) -> Entry:
    return Entry(
        name=found.key.removeprefix(prefix),
        size=found.size,
        mtime_ms=found.mtime_ms,
        kind=Kind.FILE,
        version=found.version,
    )


def _directory(name: str) -> Entry:
    return Entry(name=name, size=0, mtime_ms=0, kind=Kind.DIRECTORY)
