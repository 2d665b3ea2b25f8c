"""Files on HDFS: a new file under a hidden name, then a rename that never replaces.

Rules:

* A file is written once, under a name of its own, and never appended to or truncated: both wait for
  leases that a dead writer may hold for an hour.
* ``rename`` on the namenode is atomic and durable when it is answered. No answer but success is
  believed; looking at both names tells, the hidden one first, since it vanishes in the same instant
  in which the final one appears:

      hidden      target          outcome
      ours        absent          not done: rename, or raise to be tried again
      ours        another's       CommitConflictError
      gone        ours            done earlier
      gone        another's       CommitConflictError
      gone        absent          StagedDataLost

* «Ours» is a file of the recorded size and modification time, in milliseconds: HDFS sets the time
  when the file is closed, a rename keeps it, and only a client of ours knows the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import BinaryIO

from filesink.errors import (
    CommitConflictError,
    CommitStateUnknown,
    ConfigError,
    StagedDataLost,
    StorageError,
)
from filesink.naming import LEDGER_ROOT, check_relative, join
from filesink.ports import Ids, TaskRunner
from filesink.storage.api import Deletion, Entry, Kind, PutResult, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.hdfs.errors import explaining, storage_error
from filesink.storage.hdfs.input import explained_input
from filesink.storage.hdfs.namenode import HdfsStatus
from filesink.storage.hdfs.output import HdfsFiles, HdfsOutput
from filesink.storage.hdfs.probe import prove
from filesink.storage.staged import HiddenFile, Piece, Staged, Tail, own

_COPY_BYTES = 8 << 20


class HdfsStore(Store):
    """A store on HDFS. May be used by several threads.

    Args:
        files: where.
        runner: works on several files at a time, since each waits for the namenode.
        ids: makes names for files that are not yet what they will be.
    """

    name = "hdfs"

    def __init__(self, files: HdfsFiles, *, runner: TaskRunner, ids: Ids) -> None:
        self.runner = runner
        self._files = files
        self._ids = ids

    def prepare(self) -> None:
        """See ``Store.prepare``."""
        found = self._files.status("")
        if found is not None and not found.is_directory:
            raise ConfigError(
                f"'{self._files.where('')}' exists and is not a directory; choose another path",
                code="PATH_NOT_DIR",
            )
        with explaining("create", self._files.where(LEDGER_ROOT)):
            self._files.namenode.mkdirs(self._files.at(LEDGER_ROOT))
        prove(self, self._files, self._ids.uuid())

    def create(self, path: str, *, target: str | None) -> HdfsOutput:
        """See ``Store.create``."""
        del target  # the final name is given by ``publish``
        return HdfsOutput(self._files, path)

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``."""
        if ":" not in path:
            return None
        return Refusal(code="ILLEGAL_CHAR", why="holds a colon, which no name on HDFS does")

    def sync(self) -> None:
        """See ``Store.sync``; every file was made durable when it was closed."""

    def promote(self, held: Staged, target: str) -> Staged:
        """See ``Store.promote``."""
        del target
        return held

    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """See ``Store.concat``. HDFS copies nothing by itself, so the bytes pass through here."""
        output = self.create(path, target=target)
        try:
            for piece in pieces:
                match piece:
                    case bytes():
                        output.write(piece)
                    case Tail(staged=staged, start=start):
                        self._append(output, own(staged, HiddenFile), start)
                    case _:
                        self._append(output, own(piece, HiddenFile), 0)
            return output.close()
        except BaseException:
            with suppress(OSError):  # what is left has a hidden name of ours and is swept later
                output.discard()
            raise

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        found = self._files.identity(own(staged, HiddenFile).path)
        if found != staged:
            raise self._lost(staged, found)

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``. Two calls."""
        file = own(staged, HiddenFile)
        check_relative(target)
        if self._published_before(file, target):
            return
        try:
            self._files.namenode.rename(self._files.at(file.path), self._files.at(target))
        except OSError as error:
            if not self._published_before(file, target):
                if self._files.status(target) is not None:
                    raise self._conflict(target) from error
                raise storage_error(error, "publish", self._files.where(target)) from error

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return _is(self._files.identity(check_relative(target)), own(staged, HiddenFile))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``; the namenode answers when its log is durable."""
        del directories

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        self._files.delete(check_relative(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        directory, _, name = check_relative(path).rpartition("/")
        output = self.create(join(directory, f".{name}.put.{self._ids.uuid()}"), target=None)
        try:
            if data:
                output.write(data)
            hidden = output.close()
        except BaseException:
            with suppress(OSError):  # the name begins with '.': nobody takes it for a record
                output.discard()
            raise
        outcome = self._rename_put(output, hidden, path)
        if outcome is PutResult.EXISTS:
            with suppress(StorageError):  # swept with its slot
                output.discard()
        return outcome

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        found = self._files.status(check_relative(path))
        if found is None:
            return None
        where = self._files.where(path)
        with explaining("read", where):
            try:
                with self._files.namenode.open(self._files.at(path)) as reader:
                    data = reader.read()
            except FileNotFoundError as error:
                if found.is_directory:
                    message = f"cannot read '{where}': it is a directory"
                    raise StorageError(message, code="WRONG_KIND") from error
                return None  # removed since
        if len(data) != found.size:
            message = f"reading '{where}' gave {len(data)} of {found.size} bytes; try again"
            raise StorageError(message, code="IO")
        return data

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        self.discard(path)

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``; the look and the removal are two calls."""
        found = self._files.status(path)
        if found is not None and (found.is_directory or (found.size, found.version) != (size, version)):
            return Deletion.CHANGED
        if found is not None:
            self.delete(path)
        return Deletion.GONE

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        with explaining("list", self._files.where(directory)):
            try:
                return [_entry(found) for found in self._files.namenode.list(self._files.at(directory))]
            except FileNotFoundError:
                return []

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``. What goes wrong later, while it is read, is a ``StorageError``."""
        where = self._files.where(path)
        try:
            file = self._files.namenode.open(self._files.at(check_relative(path)))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(error, "open", where) from error
        return explained_input(file, where)

    def _published_before(self, staged: HiddenFile, target: str) -> bool:
        """Whether the hidden file is gone because it is published; raises if it is gone otherwise."""
        hidden = self._files.identity(staged.path)
        if hidden == staged:
            return False
        if self._files.status(target) is None:
            raise self._lost(staged, hidden)
        if not self.is_published(staged, target):
            raise self._conflict(target)
        return True

    def _rename_put(self, output: HdfsOutput, hidden: HiddenFile, path: str) -> PutResult:
        try:
            self._files.namenode.rename(self._files.at(hidden.path), self._files.at(path))
        except OSError as error:
            try:
                left, found = self._files.status(hidden.path), self._files.status(path)
                ours = left is None and _is(self._files.identity(path), hidden)
                if left is not None and found is None:
                    output.discard()  # a rename that was given up and is done later would find it
            except StorageError as second:
                raise self._unknown(path) from second
            if found is None and left is None:
                raise self._unknown(path) from error
            if found is None:
                raise storage_error(error, "create", self._files.where(path)) from error
            return PutResult.CREATED if ours else PutResult.EXISTS
        return PutResult.CREATED

    def _append(self, output: HdfsOutput, source: HiddenFile, start: int) -> None:
        before = output.tell()
        with self.open_staged(source) as reader:
            reader.seek(start)
            while data := reader.read(_COPY_BYTES):
                output.write(data)
        copied = output.tell() - before
        if copied != source.size - start:
            raise StagedDataLost(
                f"'{self._files.where(source.path)}' has {start + copied} bytes, {source.size} were "
                "recorded; it was changed while it was copied",
                code="STAGED_DATA_LOST",
            )

    def _lost(self, staged: Staged, found: HiddenFile | None) -> StagedDataLost:
        what = "is gone" if found is None else f"is another file, of {found.size} bytes"
        return StagedDataLost(
            f"'{self._files.where(staged.path)}', written with {staged.size} bytes, {what}; something else "
            "removed or changed it. Restore it, or choose with FileSink.recover(lost=...) how to go on",
            code="STAGED_DATA_LOST",
        )

    def _conflict(self, target: str) -> CommitConflictError:
        return CommitConflictError(
            f"'{self._files.where(target)}' exists with other content and was not overwritten; find out who "
            "wrote it, move it away and start again",
            code="EXISTS",
        )

    def _unknown(self, path: str) -> CommitStateUnknown:
        return CommitStateUnknown(
            f"it is not known whether '{self._files.where(path)}' was created. Nothing was removed. Start "
            "again: the next run looks whether the file exists",
            code="UNKNOWN",
        )


def _is(found: HiddenFile | None, staged: HiddenFile) -> bool:
    """Whether a file under another name is ``staged``."""
    return found is not None and (found.size, found.mtime_ns) == (staged.size, staged.mtime_ns)


def _entry(found: HdfsStatus) -> Entry:
    return Entry(
        name=found.name,
        size=0 if found.is_directory else found.size,
        mtime_ms=found.mtime_ms,
        version=found.version,
        kind=Kind.DIRECTORY if found.is_directory else Kind.FILE,
    )
