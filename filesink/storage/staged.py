"""What a store returns for a file that is closed and not yet visible: values, never objects.

They travel from tasks to the driver and stand in the ledger, so ``filesink.parts.committables`` knows how
each kind is written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from filesink.errors import StateError
from filesink.naming import upload_path


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenFile:
    """A closed hidden file on a file system, told apart from any other by size, inode and time.

    ``size`` in bytes; ``mtime_ns`` in nanoseconds. A file is the same if its size is equal and its
    inode or its modification time: a move keeps both, a copy (``cp -a``, ``rsync -a``) the time, and ``tar``
    its whole seconds.
    """

    path: str
    size: int
    inode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenObject:
    """A complete object under a hidden name, told apart by size (bytes) and token.

    ``token`` is what the store keeps with the object and gives to no other: a random word in its
    metadata, set when it is made. Length or existence alone prove nothing.
    """

    path: str
    size: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedPart:
    """One piece of a multipart upload: its number from 1, the store's tag of it, its bytes."""

    number: int
    etag: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """A multipart upload whose parts are all there and that only waits to be completed.

    Made by a task, completed by the driver, which knows nothing but these values. Nothing stands
    under ``target`` until then. Lives for one epoch only: what must be held longer is an object.

    Attributes:
        target: path of the object it becomes.
        upload_id: the store's name of the upload.
        parts: in ascending order, one at least.
        size: bytes of all parts.
        token: in the metadata of the object from the moment the upload was created.
    """

    target: str
    upload_id: str
    parts: tuple[UploadedPart, ...]
    size: int
    token: str

    def __post_init__(self) -> None:
        numbers = [part.number for part in self.parts]
        if (
            not numbers
            or numbers != sorted(set(numbers))
            or sum(part.size for part in self.parts) != self.size
        ):
            raise ValueError("parts")

    @property
    def path(self) -> str:
        """The hidden name under which listings show it and ``discard`` knows it; no real file."""
        return upload_path(self.target, self.upload_id)


Staged = HiddenFile | HiddenObject | PendingUpload


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A closed hidden file from byte ``start`` on: without a header that only the first may have."""

    staged: Staged
    start: int


#: What ``Store.concat`` puts together: files, files without their beginning, and bytes between them.
Piece = Staged | Tail | bytes
StagedT = TypeVar("StagedT", HiddenFile, HiddenObject, PendingUpload)


def own(staged: Staged, kind: type[StagedT]) -> StagedT:
    """``staged`` if a store of this kind can have made it, else ``StateError``."""
    if not isinstance(staged, kind):
        raise StateError(
            f"'{staged.path}' was written by a store of another kind ({type(staged).__name__}); the base "
            "path was moved while files were held. First call finish() on a sink with the old base path",
            code="OTHER_STORE",
        )
    return staged
