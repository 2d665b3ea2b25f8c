"""Files on local disks and mounted network file systems (NFS).

Hidden files lie in the directory of the part file they become. See ``local_publish`` for how they
get their names, ``local_sync`` for what makes them durable, ``local_put`` for create-if-absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

from filesink.errors import ConfigError
from filesink.naming import LEDGER_ROOT, name_of, parent
from filesink.ports import Ids, TaskRunner
from filesink.storage.api import Deletion, Entry, Kind, PutResult, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.local.fs import Fs
from filesink.storage.local.output import LocalFiles, LocalOutput, remove
from filesink.storage.local.publish import is_published, prove_links, publish, verify
from filesink.storage.local.put import put_if_absent
from filesink.storage.local.sync import Directories, UnsyncedFiles
from filesink.storage.os_errors import explaining, storage_error
from filesink.storage.staged import HiddenFile, Piece, Staged, Tail, own

_LONGEST_PATH = 4095  # bytes; PATH_MAX of Linux counts the NUL at the end


class LocalStore(Store):
    """A store on a file system with hard links. May be used by several threads.

    Between calls it keeps open only the files that are being written and at most 64 that wait for
    ``sync``; it has no threads of its own.

    Args:
        fs: the file system below the base path.
        runner: runs the fsyncs; many small files are several times faster in a few threads.
        ids: makes names for files that are not yet what they will be.
    """

    name = "local"

    def __init__(self, fs: Fs, *, runner: TaskRunner, ids: Ids) -> None:
        self._fs = fs
        self._ids = ids
        self._files = LocalFiles(
            fs=fs, directories=Directories(fs, runner), unsynced=UnsyncedFiles(fs, runner)
        )

    def prepare(self) -> None:
        """See ``Store.prepare``."""
        try:
            self._fs.make_base()
        except (FileExistsError, NotADirectoryError) as error:
            raise ConfigError(
                f"'{self._fs.base}', or a part of it, exists and is not a directory; choose another path",
                code="PATH_NOT_DIR",
            ) from error
        except OSError as error:
            raise storage_error(error, "create", self._fs.base) from error
        # From now on a sink with a base path above this one sees that what lies here is not its own.
        directories = self._files.directories
        with explaining("create", self._files.where(LEDGER_ROOT)):
            directories.make(LEDGER_ROOT)
        directories.sync([parent(LEDGER_ROOT)])
        prove_links(self._fs, LEDGER_ROOT, self._ids.uuid())

    def create(self, path: str, *, target: str | None) -> LocalOutput:
        """See ``Store.create``."""
        del target  # the final name is given by ``publish``
        return LocalOutput(self._files, path)

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``. Directories are gone through one by one here, and as one path by readers."""
        if len(f"{self._fs.base}/{path}".encode(errors="surrogateescape")) <= _LONGEST_PATH:
            return None
        return Refusal(
            code="TOO_LONG",
            why=f"makes, below this base path, a path of more than {_LONGEST_PATH} bytes, which Spark and "
            "DuckDB pass over",
        )

    def sync(self) -> None:
        """See ``Store.sync``."""
        self._files.directories.sync(self._files.unsynced.sync())

    def promote(self, held: Staged, target: str) -> Staged:
        """See ``Store.promote``."""
        del target
        return held

    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """See ``Store.concat``."""
        output = self.create(path, target=target)
        try:
            for piece in pieces:
                match piece:
                    case bytes():
                        output.write(piece)
                    case Tail(staged=staged, start=start):
                        output.append_copy(own(staged, HiddenFile), start)
                    case _:
                        output.append_copy(own(piece, HiddenFile))
            return output.close()
        except BaseException:
            with suppress(OSError):  # what is left has a hidden name of ours and is swept later
                output.discard()
            raise

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        verify(self._fs, own(staged, HiddenFile))

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``."""
        publish(self._fs, own(staged, HiddenFile), target)

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return is_published(self._fs, own(staged, HiddenFile), target)

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        self._files.directories.sync(directories)

    def release(self, staged: Staged) -> None:
        """See ``Store.release``."""
        remove(self._files, staged.path)

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        remove(self._files, path)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return put_if_absent(self._files, self._ids, path, data)

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        with explaining("read", self._files.where(path)):
            try:
                return self._fs.read(path)
            except FileNotFoundError:
                return None

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        remove(self._files, path)

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``."""
        found = self.find(path)
        if found is not None and (found.kind, found.size, found.version) != (Kind.FILE, size, version):
            return Deletion.CHANGED
        if found is not None:
            remove(self._files, path)
        return Deletion.GONE

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        with explaining("list", self._files.where(directory)):
            try:
                return self._fs.list(directory)
            except FileNotFoundError:
                return []

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``."""
        with explaining("list", self._files.where(directory)), suppress(FileNotFoundError):
            yield from self._fs.scan(directory)

    def find(self, path: str) -> Entry | None:
        """See ``Store.find``."""
        with explaining("look at", self._files.where(path)):
            found = self._fs.stat(path)
        if found is None:
            return None
        size, mtime_ms = found.size, found.mtime_ns // 1_000_000
        return Entry(name=name_of(path), size=size, mtime_ms=mtime_ms, kind=found.kind, version=found.version)

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        try:
            return self._fs.open_read(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(error, "open", self._files.where(path)) from error
