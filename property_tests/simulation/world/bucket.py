"""An object store in memory: what it answers, and what it forgets.

Rules:

* One key changes at once and for good: an object is a file on the disk of the world, durable from the
  moment it appears, so that the observer sees it as any other.
* An upload is invisible until it is completed. A rule of the bucket aborts it when it is too old.
* Servers differ where the description of the protocol leaves them free: see ``Personality``.
* Nothing here knows of faults, processes or filesink's own store: see ``sim_objects``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from filesink.errors import CommitConflictError, StorageError
from filesink.storage.objects.api import (
    BAD_PARTS,
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
from property_tests.simulation.world.disk import Disk
from property_tests.simulation.world.listing import all_files
from property_tests.simulation.world.nodes import Directory, Inode

DAY_MS = 24 * 3600 * 1000


class Personality(Enum):
    """How a server behaves where the protocol allows several ways."""

    AMAZON = "a repeated completion is answered like the first; uploads are listed per directory"
    MINIO = "a repeated completion is NoSuchUpload; listings show uploads of all keys below"
    NO_COPY = "as MINIO, and parts cannot be copied"


@dataclass(slots=True, eq=False)
class Upload:
    """A multipart upload that is neither completed nor aborted. ``owner`` is whoever began it."""

    key: str
    upload_id: str
    token: str
    owner: object
    begun_ms: int
    parts: dict[int, tuple[str, bytes]] = field(default_factory=dict)  # number to etag and bytes

    @property
    def data(self) -> bytes:
        """What the object would be."""
        return b"".join(data for _, (_, data) in sorted(self.parts.items()))


@dataclass(slots=True)
class Bucket:
    """One bucket on a disk.

    Attributes:
        now_ms: the server's clock.
        life_days: after which a rule aborts an upload; 0 for never.
        aborted: uploads that were given up, by whom, since the observer has looked.
    """

    disk: Disk
    now_ms: Callable[[], int]
    personality: Personality = Personality.AMAZON
    life_days: int = 7
    uploads: dict[str, Upload] = field(default_factory=dict)
    aborted: list[Upload] = field(default_factory=list)
    _tokens: dict[Inode, str] = field(default_factory=dict)
    _etags: dict[Inode, str] = field(default_factory=dict)  # of objects, which never change
    _completed: dict[str, Inode] = field(default_factory=dict)  # upload id to what it became
    _made: int = 0

    # --- objects

    def find(self, key: str) -> Inode | None:
        """The object under a key."""
        node = self.disk.find(key)
        return node if isinstance(node, Inode) else None

    def head(self, key: str) -> ObjectInfo | None:
        """See ``Objects.head``."""
        inode = self.find(key)
        if inode is None:
            return None
        return ObjectInfo(
            size=len(inode.data),
            etag=self._etag_of(inode),
            mtime_ms=inode.mtime_ns // 1_000_000,
            token=self._tokens.get(inode, ""),
        )

    def get(self, key: str, start: int, end: int | None, etag: str) -> bytes:
        """See ``Objects.get``."""
        inode = self.find(key)
        if inode is None:
            raise FileNotFoundError(key)
        if etag and etag != self._etag_of(inode):
            raise _error(EXISTS)
        return bytes(inode.data[start:end])

    def put(self, key: str, data: bytes, token: str, condition: Condition, owner: object) -> None:
        """See ``Objects.put``."""
        if condition is Condition.IF_ABSENT and self.find(key) is not None:
            raise _error(EXISTS)
        self.place(key, data, token, owner)

    def delete(self, key: str, etag: str) -> None:
        """See ``Objects.delete``."""
        found = self.head(key)
        if found is None:
            return
        if etag and found.etag != etag.strip('"'):
            raise _error(EXISTS)
        self.disk.unlink(key)
        self._sync(key)

    def list_objects(self, prefix: str) -> tuple[list[FoundObject], list[str]]:
        """See ``Objects.list_objects``."""
        above, _, start = prefix.rpartition("/")
        directory = self.disk.find(above)
        found: list[FoundObject] = []
        below: list[str] = []
        for name, node in directory.entries.items() if isinstance(directory, Directory) else ():
            if not name.startswith(start):
                continue
            key = f"{above}/{name}" if above else name
            if isinstance(node, Inode):
                mtime_ms, etag = node.mtime_ns // 1_000_000, f'"{self._etag_of(node)}"'
                found.append(FoundObject(key=key, size=len(node.data), etag=etag, mtime_ms=mtime_ms))
            elif all_files(node):  # a server has no empty directories
                below.append(f"{key}/")
        return found, below

    # --- uploads

    def list_uploads(self, prefix: str) -> tuple[list[FoundUpload], list[str]]:
        """See ``Objects.list_uploads``."""
        found: list[FoundUpload] = []
        below: dict[str, None] = {}
        for upload in self.uploads.values():
            if not upload.key.startswith(prefix):
                continue
            name, slash, _ = upload.key.removeprefix(prefix).partition("/")
            if slash and self.personality is Personality.AMAZON:
                below[f"{prefix}{name}/"] = None
            else:
                found.append(
                    FoundUpload(key=upload.key, upload_id=upload.upload_id, begun_ms=upload.begun_ms)
                )
        return found, list(below)

    def create_upload(self, key: str, token: str, owner: object) -> NewUpload:
        """See ``Objects.create_upload``."""
        self._made += 1
        now_ms = self.now_ms()
        upload = Upload(key, f"upload+{self._made}/=", token, owner, now_ms)
        self.uploads[upload.upload_id] = upload
        abort_ms = now_ms + self.life_days * DAY_MS if self.life_days else None
        return NewUpload(upload_id=upload.upload_id, abort_ms=abort_ms)

    def upload_part(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        """See ``Objects.upload_part``."""
        etag = _etag(data)
        self._upload(key, upload_id).parts[number] = (etag, data)
        return etag

    def copy_part(self, key: str, upload_id: str, number: int, source: CopyRange) -> str | None:
        """See ``Objects.copy_part``."""
        if self.personality is Personality.NO_COPY:
            return None
        data = self.get(source.key, source.start, source.end, source.etag)
        return self.upload_part(key, upload_id, number, data)

    def list_parts(self, key: str, upload_id: str) -> list[UploadedPart] | None:
        """See ``Objects.list_parts``."""
        upload = self.uploads.get(upload_id)
        if upload is None or upload.key != key:
            return None
        return [
            UploadedPart(number=number, etag=f'"{etag}"', size=len(data))
            for number, (etag, data) in sorted(upload.parts.items())
        ]

    def complete(self, key: str, upload_id: str, parts: Sequence[UploadedPart], condition: Condition) -> None:
        """See ``Objects.complete``."""
        if self._is_repeated(key, upload_id):
            return
        upload = self._upload(key, upload_id)
        if condition is Condition.IF_ABSENT and self.find(key) is not None:
            raise _error(EXISTS)
        named = [upload.parts.get(part.number, ("", b"")) for part in parts]
        if not named or [etag for etag, _ in named] != [part.etag for part in parts]:
            raise _error(BAD_PARTS)
        del self.uploads[upload_id]
        made = self.place(key, b"".join(data for _, data in named), upload.token, upload.owner)
        self._completed[upload_id] = made

    def abort(self, key: str, upload_id: str) -> None:
        """See ``Objects.abort``."""
        upload = self.uploads.get(upload_id)
        if upload is not None and upload.key == key:
            del self.uploads[upload_id]
            self.aborted.append(upload)
            self.disk.changed.append(("aborted", key, None))

    def expire(self) -> None:
        """Let the bucket's rule abort what is too old; nobody asks for it."""
        oldest = self.now_ms() - self.life_days * DAY_MS
        if self.life_days and any(one.begun_ms <= oldest for one in self.uploads.values()):
            self.uploads = {name: one for name, one in self.uploads.items() if one.begun_ms > oldest}

    # --- inside

    def _etag_of(self, inode: Inode) -> str:
        known = self._etags.get(inode)
        if known is None:
            self._etags[inode] = known = _etag(bytes(inode.data))
        return known

    def _is_repeated(self, key: str, upload_id: str) -> bool:
        made = self._completed.get(upload_id)
        return (
            self.personality is Personality.AMAZON
            and upload_id not in self.uploads
            and made is not None
            and self.find(key) is made
        )

    def place(self, key: str, data: bytes, token: str, owner: object) -> Inode:
        """An object, whole at once, with the directories that a reader sees above it."""
        if self.find(key) is not None:
            self.disk.unlink(key)
        above = ""
        for name in key.split("/")[:-1]:
            above = f"{above}/{name}" if above else name
            if self.disk.find(above) is None:
                self.disk.mkdir(above)
                self._sync(above)
        handle = self.disk.create(key, owner, self.now_ms() * 1_000_000)
        inode = self.disk.of(handle)
        inode.data[:] = data  # at once: no reader meets a part of it
        self.disk.fsync(handle)
        self.disk.close(handle)
        self._sync(key)
        self._tokens[inode] = token
        return inode

    def _upload(self, key: str, upload_id: str) -> Upload:
        upload = self.uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise _error(NO_UPLOAD)
        return upload

    def _sync(self, key: str) -> None:
        self.disk.fsync_directory(key.rpartition("/")[0])


def _etag(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _error(code: str) -> StorageError:
    kind = CommitConflictError if code == EXISTS else StorageError
    return kind("simulated", code=code)
