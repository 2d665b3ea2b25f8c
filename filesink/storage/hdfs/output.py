"""A hidden file on HDFS while it is written, and what the parts of the store share."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from filesink.errors import CommitConflictError, InternalError, StorageError
from filesink.naming import check_relative
from filesink.storage.hdfs.errors import explaining
from filesink.storage.hdfs.namenode import HdfsStatus, HdfsWriter, Namenode
from filesink.storage.staged import HiddenFile

if TYPE_CHECKING:
    from formats.api import Buffer


class HdfsFiles:
    """Files below one base directory of a cluster.

    Args:
        namenode: of the cluster.
        base: the absolute directory on it.
        url: how the user names it, for messages.
    """

    def __init__(self, namenode: Namenode, base: str, *, url: str) -> None:
        self.namenode = namenode
        self._base = base.rstrip("/")
        self._url = url.rstrip("/")

    def at(self, path: str) -> str:
        """The absolute path on the cluster; ``""`` is the base."""
        return f"{self._base}/{check_relative(path)}" if path else self._base or "/"

    def where(self, path: str) -> str:
        """The full path, for messages."""
        return f"{self._url}/{path}" if path else self._url

    def status(self, path: str) -> HdfsStatus | None:
        """What is known of a name."""
        with explaining("look at", self.where(path)):
            return self.namenode.status(self.at(path))

    def identity(self, path: str) -> HiddenFile | None:
        """The file under a name; ``None`` if there is none."""
        found = self.status(path)
        if found is None or found.is_directory:
            return None
        return HiddenFile(path=path, size=found.size, inode=0, mtime_ns=found.mtime_ms * 1_000_000)

    def delete(self, path: str) -> None:
        """Remove a file; that there is none is no error."""
        with explaining("remove", self.where(path)):
            self.namenode.delete(self.at(path))


class HdfsOutput:
    """See ``filesink.storage.api.Output``."""

    def __init__(self, files: HdfsFiles, path: str) -> None:
        self._files = files
        self._path = check_relative(path)
        self._writer: HdfsWriter | None = None
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
            self._open().write(view)
        self._position += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """See ``Output.tell``."""
        return self._position

    def flush(self) -> None:
        """See ``Output.flush``."""

    def close(self) -> HiddenFile:
        """See ``Output.close``. Without a write before, the file is empty."""
        with explaining("close", self._files.where(self._path)):
            self._open().close()
        staged = self._files.identity(self._path)
        if staged is None or staged.size != self._position:
            raise StorageError(
                f"'{self._files.where(self._path)}' does not have the {self._position} bytes that were "
                "written; something else changes it; start the task again",
                code="SIZE",
            )
        self._closed, self._writer = True, None
        return staged

    def discard(self) -> None:
        """See ``Output.discard``."""
        self._closed = True
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):  # nobody wants these bytes
                writer.abandon()
        if self._ours:
            self._files.delete(self._path)

    def _open(self) -> HdfsWriter:
        if self._closed:
            raise InternalError(f"'{self._path}' was written after it was closed", code="CLOSED")
        if self._writer is None:
            # An error may hide that the file was made, so it is ours from before the attempt.
            self._ours = True
            try:
                self._writer = self._files.namenode.create(self._files.at(self._path))
            except FileExistsError as error:
                self._ours = False
                raise CommitConflictError(
                    f"'{self._files.where(self._path)}' exists already and was not overwritten; "
                    "hidden names are never used twice, start the task again",
                    code="EXISTS",
                ) from error
        return self._writer
