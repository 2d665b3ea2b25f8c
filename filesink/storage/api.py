"""The contract between filesink and a place where files live.

What every store promises:

* No reader who lists the base path, at any instant, sees a file under a final name that is not
  complete and decided. ``publish`` makes a file visible at once, whole, and never replaces one.
* Everything before ``publish`` is hidden: on file systems by a name that begins with ``.``, on
  object stores as a multipart upload, which nobody sees before it is completed.
* ``publish``, ``discard`` and ``put_if_absent`` may be called again after any failure, by another
  process too. Each knows whether it has already happened by looking, never by assuming.
* An error means «not done» or «not known», never «done». Absent and unreadable are different.

Paths are relative to the base path, with ``/`` between components; ``""`` is the base itself.
No method follows a symbolic link below the base or leaves it (``SecurityError``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, BinaryIO, Protocol

from filesink.errors import StagedDataLost
from filesink.naming import name_of, parent
from filesink.ports import SerialRunner, TaskRunner
from filesink.storage.bucket_ids import Refusal
from filesink.storage.outcomes import Deletion, PutResult, Removal
from filesink.storage.staged import Piece, Staged

__all__ = ["Deletion", "Entry", "Kind", "Output", "PutResult", "Removal", "Store"]

if TYPE_CHECKING:
    from formats.api import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a listing. ``size`` in bytes, ``mtime_ms`` in milliseconds since 1970 UTC.

    ``version`` differs for any two files that ever had the same name: inode and time on a file
    system, the time alone on HDFS, the ETag on an object store; ``""`` where a store knows none.
    Directories: no meaning.
    """

    name: str
    size: int
    mtime_ms: int
    kind: Kind
    version: str = ""


class Kind(Enum):
    """What a listing found under a name."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"  # symbolic links, sockets …: never ours, never followed


class Output(Protocol):
    """A file being written by one attempt; satisfies ``formats.api.BinaryOutput``.

    The file is created, exclusively, by the first ``write``, on object stores by ``close``. Not for use
    by two threads.
    """

    @property
    def closed(self) -> bool:
        """Whether ``close`` or ``discard`` was called."""
        ...

    def write(self, data: Buffer, /) -> int:
        """Append all of ``data`` (short writes are continued) and return its length in bytes."""
        ...

    def tell(self) -> int:
        """Bytes written so far."""
        ...

    def flush(self) -> None:
        """Does nothing: durability comes with ``Store.sync``."""
        ...

    def close(self) -> Staged:
        """End the file. It is durable once ``Store.sync`` has returned. Not to be repeated."""
        ...

    def discard(self) -> None:
        """Close and remove what was written. May be repeated; an absent file is no error."""
        ...


class Store(ABC):
    """Files below one base path. Made anew in every process that needs it, never pickled."""

    #: Its name in messages: ``local``, ``memory``, ``s3`` …
    name: str

    #: Runs work on many files: several at a time if each waits for a network.
    runner: TaskRunner = SerialRunner()

    @abstractmethod
    def prepare(self) -> None:
        """Make the base directory and prove that this store can keep the contract.

        Called on the driver when a sink starts. Creates the directories that are missing, durably. The
        directory of the ledgers is one of them, if the store has empty directories: it tells sinks
        further up that this is no bucket of theirs.

        Raises:
            ConfigError: ``PATH_NOT_DIR``, or the store cannot publish or create without replacing.
            StorageError: ``PERMISSION``, ``READ_ONLY``, ``NO_SPACE`` …
        """

    def removal(self) -> Removal:
        """Whether files can be removed here, as an overwrite and a merge of small files have to.

        Asked before anything is written. By default they can: ``prepare`` has removed its own probes.
        """
        return Removal.ALLOWED

    @abstractmethod
    def create(self, path: str, *, target: str | None) -> Output:
        """A new hidden file.

        Args:
            path: its hidden name; must not exist (``CommitConflictError`` at the first write).
            target: the final name, given only if the epoch that writes the file also publishes it: then
                an object store uploads straight to it, and ``close`` returns a ``PendingUpload``. ``None``
                if the file may be held; then it becomes an object under ``path``.
        """

    @abstractmethod
    def refusal(self, path: str) -> Refusal | None:
        """Why no file can be ``path``, or not every reader could open it; ``None`` if it can.

        Called by writers for each bucket that records come to, with the longest name of a file there.
        Asks nobody.
        """

    @abstractmethod
    def sync(self) -> None:
        """Make every output closed so far durable: bytes, names and the directories above.

        Called once by each writer, when all its outputs are closed and before it reports them.
        Never repeated after an error: the kernel reports a lost page once.
        """

    @abstractmethod
    def promote(self, held: Staged, target: str) -> Staged:
        """Prepare a closed file for publication under ``target`` in this epoch; durable after ``sync``.

        Does nothing on file systems, and for an upload that will become ``target`` anyway. The store copies
        an object, and the result has another ``path``: then discard ``held`` after the publication.
        """

    @abstractmethod
    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """The bytes of ``pieces`` in order as one new file, copied by the store wherever it can.

        Like ``create`` followed by ``close``: durable after ``sync``. Sources are left alone; none of
        them is a ``PendingUpload``.

        Raises:
            StagedDataLost: a file is absent or not the file it was.
        """

    @abstractmethod
    def verify(self, staged: Staged) -> None:
        """Raise ``StagedDataLost`` unless ``staged`` is there, as it was closed.

        Called on the driver for every file that tasks report, before the epoch is decided.
        """

    @abstractmethod
    def publish(self, staged: Staged, target: str) -> None:
        """Make ``staged`` visible as ``target``, never replacing anything. Replayable.

        Durable after ``sync_directories`` of the target's directory. The hidden name may stay until
        ``release``.

        Raises:
            CommitConflictError: another file stands under ``target``.
            StagedDataLost: neither ``staged`` nor its published file exists.
            StorageError: not done; may be tried again.
        """

    @abstractmethod
    def is_published(self, staged: Staged, target: str) -> bool:
        """Whether ``target`` exists and is ``staged``, published. Asked when decided bytes are gone."""

    def is_gone(self, staged: Staged) -> bool:
        """Whether ``staged`` is no longer there as it was closed, published or not."""
        try:
            self.verify(staged)
        except StagedDataLost:
            return True
        return False

    def is_lost(self, staged: Staged, target: str) -> bool:
        """Whether decided bytes are neither waiting nor published.

        Looks at the hidden file first: a driver that publishes it meanwhile makes the target before
        it removes the hidden name.
        """
        return self.is_gone(staged) and not self.is_published(staged, target)

    @abstractmethod
    def sync_directories(self, directories: Iterable[str]) -> None:
        """Make the entries of ``directories`` durable. Called once per epoch after publishing."""

    def release(self, staged: Staged) -> None:
        """Remove the hidden name of a published file, where ``publish`` has left it. Replayable.

        Called when ``sync_directories`` has made the final name durable, never before: a file system
        may make the removal of one name durable earlier than the other name, and power may fail.
        """
        del staged

    @abstractmethod
    def discard(self, path: str) -> None:
        """Remove a hidden file, or abort an upload. An absent one is no error.

        Called with the ``path`` of what was staged, or of an entry of ``list``; never for a finished
        file.
        """

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """Create ``path`` with exactly ``data``, durably and at once, unless it exists.

        Makes missing directories. No reader sees a part of ``data``.

        Raises:
            CommitStateUnknown: it is not known whether the file was created; read it.
            StorageError: it was not created.
        """

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The whole content, or ``None`` if there is no such file. Unreadable raises."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file of the ledger, or a finished file that a record names. Absent is no error."""

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """Remove a finished file if it is still the one that was listed with ``size`` and ``version``.

        Replayable. Durable after ``sync_directories`` of its directory. If a store cannot look and
        remove in one step, a change between the two steps is lost; but finished files never change.
        """
        found = self.find(path)
        if found is None:
            return Deletion.GONE
        if (found.kind, found.size, found.version) != (Kind.FILE, size, version):
            return Deletion.CHANGED
        self.delete(path)
        return Deletion.GONE

    @abstractmethod
    def list(self, directory: str) -> list[Entry]:
        """The entries of one directory, in no order; empty if there is no such directory.

        Uploads that wait for their completion are among them, under the name that ``discard`` takes.
        """

    def scan(self, directory: str) -> Iterator[Entry]:
        """What ``list`` has, without what is hidden by the store itself, and a page at a time where it can.

        For readers, who need neither permission for more nor memory for all names of a directory at once.
        """
        yield from self.list(directory)

    def find(self, path: str) -> Entry | None:
        """The entry of one name, or ``None`` if there is none."""
        return next((entry for entry in self.scan(parent(path)) if entry.name == name_of(path)), None)

    @abstractmethod
    def open_input(self, path: str) -> BinaryIO:
        """Open a held or finished file for reading. ``FileNotFoundError`` if there is none."""

    def open_staged(self, staged: Staged) -> BinaryIO:
        """Open a file that is not published. ``StagedDataLost`` unless it is there as it was closed."""
        self.verify(staged)
        try:
            return self.open_input(staged.path)
        except FileNotFoundError:
            self.verify(staged)  # removed since the look: what it went into was published without this reader
            raise
