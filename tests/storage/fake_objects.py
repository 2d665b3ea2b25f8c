"""An object store in a dictionary, with the personalities of several, that fails where it is told to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from filesink.errors import CommitConflictError, StorageError
from filesink.storage.objects.api import (
    BAD_PARTS,
    EXISTS,
    NO_UPLOAD,
    Condition,
    FoundObject,
    FoundUpload,
    NewUpload,
    ObjectInfo,
)
from filesink.storage.staged import UploadedPart

BEFORE, AFTER = "before", "after"


def refused(code: str) -> StorageError:
    """An answer of the store."""
    return StorageError(f"answered {code}", code=code)


@dataclass
class Upload:
    key: str
    token: str
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class FakeObjects:
    """See ``filesink.storage.objects.api.Objects``.

    ``faults`` are taken in order: an operation, whether it fails before or after its effect, an error.
    ``unconditional`` is an operation whose condition alone is ignored, by its name.
    """

    forgets_uploads: bool = True  # MinIO and Amazon, by their books; moto repeats its success
    conditions: bool = True
    unconditional: str = ""
    lists_deeper_uploads: bool = False
    lists_whole_keys: bool = False  # of uploads, as MinIO does
    keeps_metadata: bool = True
    deletes: bool = True  # else these credentials may not
    keeps_probes: bool = False  # a rule of the bucket: what is absent may be removed, and nothing else
    abort_ms: int | None = None
    faults: list[tuple[str, str, Exception]] = field(default_factory=list)
    objects: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    completed: dict[str, str] = field(default_factory=dict)
    on_complete: Callable[[Condition], None] = lambda _condition: None
    where = "s3://fake"

    def head(self, key):
        self._enter("head")
        if key not in self.objects:
            return None
        data, token = self.objects[key]
        return ObjectInfo(size=len(data), etag=etag_of(data), mtime_ms=0, token=token)

    def get(self, key, *, start=0, end=None, etag=""):
        if key not in self.objects:
            raise FileNotFoundError(key)
        data, _ = self.objects[key]
        if etag not in {"", etag_of(data)}:
            raise CommitConflictError("answered 412", code=EXISTS)
        return data[start:end]

    def put(self, key, data, *, token, condition):
        def effect():
            self._check("put", key, condition)
            self.objects[key] = (bytes(data), token if self.keeps_metadata else "")

        self._do("put", effect)

    def delete(self, key, *, etag=""):
        del etag
        if not self.deletes or (self.keeps_probes and key in self.objects):
            raise refused("PERMISSION")
        self._do("delete", lambda: self.objects.pop(key, None))

    def list_objects(self, prefix):
        found = [
            FoundObject(key=key, size=len(data), etag=etag_of(data), mtime_ms=0)
            for key, (data, _) in self.objects.items()
        ]
        return _by_level(found, prefix)

    def list_uploads(self, prefix):
        self._enter("list_uploads")
        found = [FoundUpload(key=up.key, upload_id=i, begun_ms=0) for i, up in self.uploads.items()]
        if self.lists_whole_keys:
            return [each for each in found if each.key == prefix], []
        if self.lists_deeper_uploads:
            return [each for each in found if each.key.startswith(prefix)], []
        return _by_level(found, prefix)

    def create_upload(self, key, *, token):
        upload_id = f"upload-{len(self.uploads) + len(self.completed)}"
        self._do("create_upload", lambda: self.uploads.update({upload_id: Upload(key, token)}))
        return NewUpload(upload_id=upload_id, abort_ms=self.abort_ms)

    def upload_part(self, key, upload_id, *, number, data):
        del key
        self._do("upload_part", lambda: self.uploads[upload_id].parts.update({number: bytes(data)}))
        return etag_of(bytes(data))

    def copy_part(self, key, upload_id, *, number, source):
        data = self.get(source.key, start=source.start, end=source.end, etag=source.etag)
        return self.upload_part(key, upload_id, number=number, data=data)

    def list_parts(self, key, upload_id):
        del key
        self._enter("list_parts")
        upload = self.uploads.get(upload_id)
        if upload is None:
            return None
        return [UploadedPart(number=n, etag=etag_of(d), size=len(d)) for n, d in sorted(upload.parts.items())]

    def complete(self, key, upload_id, *, parts, condition):
        self.on_complete(condition)
        self._do("complete", lambda: self._complete(key, upload_id, parts, condition))

    def abort(self, key, upload_id):
        del key
        self._do("abort", lambda: self.uploads.pop(upload_id, None))

    def _complete(self, key, upload_id, parts, condition):
        self._check("complete", key, condition)
        if upload_id not in self.uploads:
            if upload_id in self.completed and not self.forgets_uploads:
                return
            raise refused(NO_UPLOAD)
        upload = self.uploads[upload_id]
        if any(etag_of(upload.parts.get(part.number, b"?")) != part.etag for part in parts):
            raise refused(BAD_PARTS)
        self.objects[key] = (b"".join(upload.parts[part.number] for part in parts), upload.token)
        self.completed[upload_id] = key
        del self.uploads[upload_id]

    def _check(self, operation, key, condition):
        known = self.conditions and operation != self.unconditional
        if known and condition is Condition.IF_ABSENT and key in self.objects:
            raise CommitConflictError("answered 412", code=EXISTS)

    def _enter(self, operation):
        self.calls.append(operation)
        if self.faults and self.faults[0][:2] == (operation, BEFORE):
            raise self.faults.pop(0)[2]

    def _do(self, operation, effect):
        self._enter(operation)
        effect()
        if self.faults and self.faults[0][:2] == (operation, AFTER):
            raise self.faults.pop(0)[2]


def _by_level(found, prefix):
    """What is right below ``prefix``, and the prefixes of what lies deeper, as Amazon tells them."""
    below = [(each, each.key.removeprefix(prefix)) for each in found if each.key.startswith(prefix)]
    deeper = {f"{prefix}{rest.partition('/')[0]}/" for _, rest in below if "/" in rest}
    return [each for each, rest in below if "/" not in rest], sorted(deeper)


def etag_of(data: bytes) -> str:
    """As Amazon makes it of bytes that came in one request."""
    return f'"{hashlib.md5(data).hexdigest()}"'  # noqa: S324 - what S3 calls an etag
