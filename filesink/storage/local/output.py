"""A hidden file on a file system while it is written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filesink.errors import CommitConflictError, InternalError, StagedDataLost, StorageError
from filesink.naming import parent
from filesink.storage.local.fs import Fs, Handle
from filesink.storage.local.publish import identify, verify
from filesink.storage.local.sync import Directories, UnsyncedFiles
from filesink.storage.os_errors import explaining
from filesink.storage.staged import HiddenFile

if TYPE_CHECKING:
    from formats.api import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFiles:
    """What the parts of a local store share."""

    fs: Fs
    directories: Directories
    unsynced: UnsyncedFiles

    def create(self, path: str) -> Handle:
        """Open a new file, making its directory if that is missing. Raises plain ``OSError``."""
        try:
            return self.fs.create_exclusive(path)
        except FileNotFoundError:
            self.directories.make(parent(path))
            return self.fs.create_exclusive(path)

    def where(self, path: str) -> str:
        """The full path, for messages."""
        return f"{self.fs.base}/{path}"


class LocalOutput:
    """See ``filesink.storage.api.Output``. Takes a descriptor with its first byte."""

    def __init__(self, files: LocalFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._handle: Handle | None = None
        self._ours = False  # whether a file under this name can only be the one made here
        self._closed = False
        self._position = 0

    @property
    def closed(self) -> bool:
        """See ``Output.closed``."""
        return self._closed

    def write(self, data: Buffer, /) -> int:
        """See ``Output.write``."""
        view = memoryview(data).cast("B")
        with explaining("write", self._files.where(self._path)):
            write_all(self._files.fs, self._open(), view)
        self._position += view.nbytes
        return view.nbytes

    def append_copy(self, source: HiddenFile, start: int = 0) -> None:
        """Append the bytes of a closed file, from ``start`` on, without reading them into this process."""
        verify(self._files.fs, source)
        with explaining("copy to", self._files.where(self._path)):
            copied = self._files.fs.copy(self._open(), source.path, start)
        if copied != source.size - start:
            raise StagedDataLost(
                f"'{self._files.where(source.path)}' has {start + copied} bytes, {source.size} were "
                "recorded; it was changed while it was copied",
                code="STAGED_DATA_LOST",
            )
        self._position += copied

    def tell(self) -> int:
        """See ``Output.tell``."""
        return self._position

    def flush(self) -> None:
        """See ``Output.flush``."""

    def close(self) -> HiddenFile:
        """See ``Output.close``. Without a write before, the file is empty."""
        with explaining("close", self._files.where(self._path)):
            handle = self._open()
            staged = identify(self._path, self._files.fs.fstat(handle))
        if staged.size != self._position:
            raise StorageError(
                f"'{self._files.where(self._path)}' has {staged.size} bytes after {self._position} were "
                "written; an earlier write failed or something else changes it; the task must start anew",
                code="SIZE",
            )
        self._closed, self._handle = True, None
        self._files.unsynced.add(self._path, handle)
        return staged

    def discard(self) -> None:
        """See ``Output.discard``."""
        self._closed = True
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):  # nobody wants these bytes
                self._files.fs.close(handle)
        if self._ours:
            remove(self._files, self._path)

    def _open(self) -> Handle:
        if self._closed:
            raise InternalError(f"'{self._path}' was written after it was closed", code="CLOSED")
        if self._handle is None:
            # An error may hide that the file was made, so it is ours from before the attempt.
            self._ours = True
            try:
                self._handle = self._files.create(self._path)
            except FileExistsError as error:
                self._ours = False
                raise CommitConflictError(
                    f"'{self._files.where(self._path)}' exists already and was not overwritten; "
                    "hidden names are never used twice, start the task again",
                    code="EXISTS",
                ) from error
        return self._handle


def write_all(fs: Fs, handle: Handle, data: memoryview) -> None:
    """Write all of ``data``, going on after short writes. Raises plain ``OSError``."""
    while data.nbytes:
        taken = fs.write(handle, data)
        if taken <= 0:
            raise OSError(None, "the system takes no more bytes")
        data = data[taken:]


def remove(files: LocalFiles, path: str) -> None:
    """Remove a file; that there is none is no error."""
    files.unsynced.forget(path)
    with explaining("remove", files.where(path)), suppress(FileNotFoundError):
        files.fs.unlink(path)
