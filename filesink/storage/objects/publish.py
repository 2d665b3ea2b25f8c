"""How an upload becomes an object, and an object is made: once, and never over another.

Rules:

* No answer but success is believed. Looking at the key tells, by the token that the object was made
  with; length, or that something stands there, prove nothing:

      under the key       the upload      outcome
      our token and size  any             done, perhaps long ago by another driver
      anything else       any             CommitConflictError
      nothing             as recorded     not done: raise, to be tried again
      nothing             changed, gone   StagedDataLost, after a second look at the key

* After a 409 Amazon wants the whole upload again, because another writer of the same key may be under
  way. There is none: the key is ours and new. So the upload is completed again, at last without the
  condition.
* A request without an answer may still take effect, and a 409 may mean just such a one of our own. For
  an upload that is harmless, since completing is repeated. A record of the ledger that may yet appear
  is ``CommitStateUnknown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filesink.errors import CommitConflictError, CommitStateUnknown, StagedDataLost, StorageError
from filesink.naming import check_relative
from filesink.ports import Clock
from filesink.storage.api import PutResult
from filesink.storage.objects.api import EXISTS, NO_UPLOAD, RACE, UNAVAILABLE, Condition, ObjectInfo, Objects
from filesink.storage.objects.options import ConditionalWrites
from filesink.storage.staged import HiddenObject, PendingUpload

if TYPE_CHECKING:
    from formats.api import Buffer

_TRIES = (Condition.IF_ABSENT, Condition.IF_ABSENT, Condition.ALWAYS)
_PUTS = 4  # after a 409, which says that this request did nothing
_SECOND_LOOK = 1.0  # seconds; another driver may be completing the upload right now


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One base path in a bucket, and how it is written to.

    Attributes:
        prefix: of all keys below the base path: ``""``, or it ends with ``/``.
    """

    objects: Objects
    prefix: str
    clock: Clock
    conditional: ConditionalWrites = ConditionalWrites.REQUIRED

    def key(self, path: str) -> str:
        """The key of a path below the base."""
        return self.prefix + check_relative(path)

    def where(self, path: str) -> str:
        """The full path, for messages."""
        return f"{self.objects.where}/{self.prefix}{path}"


def verify(bucket: Bucket, staged: PendingUpload | HiddenObject) -> None:
    """See ``Store.verify``."""
    match staged:
        case HiddenObject():
            if not _is(bucket.objects.head(bucket.key(staged.path)), staged):
                raise _lost(bucket, staged)
        case PendingUpload():
            if not _waits(bucket, staged):
                raise _lost(bucket, staged)


def is_published(bucket: Bucket, upload: PendingUpload) -> bool:
    """See ``Store.is_published``."""
    return _is(bucket.objects.head(bucket.key(upload.target)), upload)


def complete(bucket: Bucket, upload: PendingUpload) -> None:
    """Make ``upload`` an object under its target; see ``Store.publish``."""
    if bucket.conditional is ConditionalWrites.ONE_DRIVER and _is_ours(bucket, upload):
        return
    for number, condition in enumerate(_TRIES, start=1):
        try:
            _try_completing(bucket, upload, _allowed(bucket, condition))
        except StorageError as error:
            if _settled(bucket, upload):
                return
            if error.code != RACE or number == len(_TRIES):
                raise
        else:
            return


def _try_completing(bucket: Bucket, upload: PendingUpload, condition: Condition) -> None:
    key = bucket.key(upload.target)
    try:
        bucket.objects.complete(key, upload.upload_id, parts=upload.parts, condition=condition)
    except FileNotFoundError as error:  # a 404 in the store's own words, which may say anything
        raise StorageError(
            f"cannot complete the upload to '{bucket.where(upload.target)}': the store does not know this "
            "upload: it was completed or aborted",
            code=NO_UPLOAD,
        ) from error


def make_object(bucket: Bucket, upload: PendingUpload) -> HiddenObject:
    """Complete an upload to a hidden name at once."""
    complete(bucket, upload)
    return HiddenObject(path=upload.target, size=upload.size, token=upload.token)


def put_if_absent(bucket: Bucket, path: str, data: Buffer, *, token: str) -> PutResult:
    """Make an object at once unless its key exists; see ``Store.put_if_absent``."""
    key = bucket.key(path)
    if bucket.conditional is ConditionalWrites.ONE_DRIVER and bucket.objects.head(key) is not None:
        return PutResult.EXISTS
    for number in range(1, _PUTS + 1):
        try:
            bucket.objects.put(key, data, token=token, condition=_allowed(bucket, Condition.IF_ABSENT))
        except StorageError as error:
            standing = _standing(bucket, path, error)
            if standing is not None:
                return PutResult.CREATED if standing.token == token else PutResult.EXISTS
            if error.code == UNAVAILABLE:
                raise _unknown(bucket, path, error.message) from error
            if error.code in {RACE, EXISTS} and number < _PUTS:
                bucket.clock.sleep(0.05 * 2**number)
            elif number == 1 and error.code not in {RACE, EXISTS}:
                raise
            else:  # what a 409 spoke of may be a request of ours that was given up and is still done
                raise _unknown(bucket, path, error.message) from error
        else:
            return PutResult.CREATED
    raise AssertionError  # the last try returns or raises


def _standing(bucket: Bucket, path: str, failed: StorageError) -> ObjectInfo | None:
    try:
        return bucket.objects.head(bucket.key(path))
    except StorageError as error:
        raise _unknown(bucket, path, f"{failed.message}, and then {error.message}") from failed


def _settled(bucket: Bucket, upload: PendingUpload) -> bool:
    """Whether the upload is completed; raises if it can never be, is false if it still waits."""
    if _is_ours(bucket, upload):
        return True
    if _waits(bucket, upload):
        return False
    bucket.clock.sleep(_SECOND_LOOK)
    if _is_ours(bucket, upload):
        return True
    raise _lost(bucket, upload)


def _is_ours(bucket: Bucket, upload: PendingUpload) -> bool:
    found = bucket.objects.head(bucket.key(upload.target))
    if found is not None and not _is(found, upload):
        raise CommitConflictError(
            f"'{bucket.where(upload.target)}' exists with other content and was not overwritten; find out "
            "who wrote it, move it away and start again",
            code=EXISTS,
        )
    return found is not None


def _waits(bucket: Bucket, upload: PendingUpload) -> bool:
    parts = bucket.objects.list_parts(bucket.key(upload.target), upload.upload_id)
    return (
        parts is not None
        and {_plain(part.etag) for part in parts} >= _etags(upload)
        and (
            {(part.number, part.size) for part in parts}
            == {(part.number, part.size) for part in upload.parts}
        )
    )


def _etags(upload: PendingUpload) -> set[str]:
    return {_plain(part.etag) for part in upload.parts}


def _plain(etag: str) -> str:
    return etag.strip('"')  # some servers quote etags in some answers only


def _is(found: ObjectInfo | None, staged: PendingUpload | HiddenObject) -> bool:
    return found is not None and (found.token, found.size) == (staged.token, staged.size)


def _allowed(bucket: Bucket, condition: Condition) -> Condition:
    return condition if bucket.conditional is ConditionalWrites.REQUIRED else Condition.ALWAYS


def _unknown(bucket: Bucket, path: str, reason: str) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"it is not known whether '{bucket.where(path)}' was created ({reason}). Nothing was deleted; "
        "restart when the store answers again",
        code="PUT_UNKNOWN",
    )


def _lost(bucket: Bucket, staged: PendingUpload | HiddenObject) -> StagedDataLost:
    return StagedDataLost(
        f"'{bucket.where(staged.path)}', written with {staged.size} bytes, is gone or changed: something "
        "else did that, or a rule of the bucket. Choose with FileSink.recover(lost=...) how to go on",
        code="STAGED_DATA_LOST",
    )
