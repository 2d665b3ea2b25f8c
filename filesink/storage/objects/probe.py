"""Proof, when a sink starts, that a bucket keeps what is promised for it."""

from __future__ import annotations

import logging
from contextlib import suppress

from filesink.errors import ConfigError, StorageError
from filesink.naming import LEDGER_ROOT, join
from filesink.storage.api import Removal
from filesink.storage.objects.api import EXISTS, Condition, NewUpload
from filesink.storage.objects.options import ConditionalWrites
from filesink.storage.objects.output import Uploads
from filesink.storage.objects.publish import Bucket

_DAY_MS = 24 * 3600 * 1000
_LEAST_LIFE_MS = 2 * _DAY_MS  # of an upload: a weekend in which a decided epoch waits for its restart
_PROBE = ".probe."
#: If nothing can be removed: one object for all starts, until a start that may removes it as an old probe.
_KEPT, _KEPT_TOKEN = f"{_PROBE}kept", "kept-probe"
#: Codes of what is forbidden, so that no repetition helps; ``HELD`` is it by the bucket's retention.
NOT_ALLOWED = frozenset({"PERMISSION", "REFUSED", "HELD"})
log = logging.getLogger("filesink")


def prove(uploads: Uploads) -> Removal:
    """Write one object twice in each way: the second write must be refused, and the token must be kept.

    Leaves nothing behind, except one small object if objects cannot be removed.

    Raises:
        ConfigError: ``NO_BUCKET``, ``NO_EXCLUSIVE_PUBLISH``, ``NO_METADATA`` or ``LIFECYCLE``.
        StorageError: ``PERMISSION``, ``NO_CREDENTIALS``, ``UNAVAILABLE`` …
    """
    path = _probe_path(uploads)
    _prove_uploads(uploads, path)
    if try_removing(uploads) is Removal.REFUSED:
        _prove_writing(uploads, join(LEDGER_ROOT, _KEPT), _KEPT_TOKEN)
        return Removal.REFUSED
    try:
        _prove_writing(uploads, path, uploads.ids.uuid())
        _remove_old(uploads.bucket)
    finally:
        removal = _removed(uploads.bucket, path)
    return removal


def try_removing(uploads: Uploads) -> Removal:
    """Whether removing is allowed. Tries it with an object that does not exist, so nothing is left."""
    try:
        uploads.bucket.objects.delete(uploads.bucket.key(_probe_path(uploads)))
    except StorageError as error:
        if error.code not in NOT_ALLOWED:
            raise
        return Removal.REFUSED
    return Removal.ALLOWED


def _probe_path(uploads: Uploads) -> str:
    return join(LEDGER_ROOT, f"{_PROBE}{uploads.ids.uuid()}")


def _removed(bucket: Bucket, path: str) -> Removal:
    try:
        bucket.objects.delete(bucket.key(path))
    except StorageError as error:  # what is left is swept by the next probe
        return Removal.REFUSED if error.code in NOT_ALLOWED else Removal.ALLOWED
    return Removal.ALLOWED


def _prove_writing(uploads: Uploads, path: str, token: str) -> None:
    bucket, key = uploads.bucket, uploads.bucket.key(path)
    try:
        bucket.objects.put(key, b"1", token=token, condition=Condition.IF_ABSENT)
    except StorageError as error:
        if error.code != EXISTS:  # the answer got lost, and the client has repeated the request
            raise
    _prove_token(bucket, key, token)
    if bucket.conditional is ConditionalWrites.REQUIRED:
        _prove_put(uploads, key)
        _prove_complete(uploads, path)


def _prove_uploads(uploads: Uploads, path: str) -> None:
    """Begin an upload and abort it: the bucket is there, lists uploads, and lets them live long enough."""
    bucket, key = uploads.bucket, uploads.bucket.key(path)
    made = _begun(uploads, key)
    try:
        listed, _ = bucket.objects.list_uploads(f"{bucket.key(LEDGER_ROOT)}/")
    finally:
        bucket.objects.abort(key, made.upload_id)
    if made.is_listed and all(upload.upload_id != made.upload_id for upload in listed):
        log.warning(
            "'%s' lists uploads by their whole keys only, as MinIO does: filesink cannot remove what crashed "
            "drivers leave there, and MinIO drops uploads after 24 hours, even decided ones. Set its "
            "'stale_uploads_expiry' to 168h, or start again within a day after a crash",
            bucket.objects.where,
        )
    _check_life(bucket, made)


def _begun(uploads: Uploads, key: str) -> NewUpload:
    objects = uploads.bucket.objects
    try:
        return objects.create_upload(key, token=uploads.ids.uuid())
    except StorageError as error:
        if error.code == "NO_BUCKET":
            raise ConfigError(
                f"there is no bucket '{objects.where}'; make it, or check name and region",
                code="NO_BUCKET",
            ) from error
        raise


def _check_life(bucket: Bucket, made: NewUpload) -> None:
    if made.abort_ms is not None and made.abort_ms < bucket.clock.now_ms() + _LEAST_LIFE_MS:
        raise ConfigError(
            f"a rule of '{bucket.objects.where}' aborts unfinished uploads within two days; an epoch that "
            "waits for its restart over a weekend would be lost. Set DaysAfterInitiation to 7 or more",
            code="LIFECYCLE",
        )


def _prove_token(bucket: Bucket, key: str, token: str) -> None:
    found = bucket.objects.head(key)
    if found is None or found.token != token:
        raise ConfigError(
            f"'{bucket.objects.where}' does not keep an object's metadata, by which filesink knows its own; "
            "use another store",
            code="NO_METADATA",
        )


def _prove_put(uploads: Uploads, key: str) -> None:
    try:
        uploads.bucket.objects.put(key, b"2", token=uploads.ids.uuid(), condition=Condition.IF_ABSENT)
    except StorageError as error:
        if error.code != EXISTS:
            raise
    else:
        raise _replaces(uploads.bucket)


def _prove_complete(uploads: Uploads, path: str) -> None:
    bucket, upload = uploads.bucket, uploads.begin(path)
    try:
        upload.send(b"3")
        bucket.objects.complete(
            bucket.key(path), upload.upload_id, parts=upload.finish(), condition=Condition.IF_ABSENT
        )
    except StorageError as error:
        if error.code != EXISTS:
            raise
    else:
        raise _replaces(bucket)
    finally:
        with suppress(StorageError):  # swept by the next probe
            upload.abort()


def _replaces(bucket: Bucket) -> ConfigError:
    return ConfigError(
        f"'{bucket.objects.where}' ignores If-None-Match: two drivers could replace each other's files and "
        "records. Use a store that supports it, or promise with storage option "
        "conditional_writes='one_driver' that never more than one driver writes here",
        code="NO_EXCLUSIVE_PUBLISH",
    )


def _remove_old(bucket: Bucket) -> None:
    """Remove leftovers of probes that died half-way; no probe takes a day."""
    prefix = bucket.key(join(LEDGER_ROOT, _PROBE))
    oldest = bucket.clock.now_ms() - _DAY_MS
    for upload in bucket.objects.list_uploads(prefix)[0]:
        if upload.begun_ms < oldest:
            bucket.objects.abort(upload.key, upload.upload_id)
    for found in bucket.objects.list_objects(prefix)[0]:
        if found.mtime_ms < oldest:
            bucket.objects.delete(found.key)
