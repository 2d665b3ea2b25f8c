"""What makes files on a file system survive a power cut; the order is explained here, once.

    write → fsync the file → close → fsync its directory, and those above it   (before *decide*)
    link the final name → fsync its directory → unlink the hidden name         (before *complete*)

Rules:

* An fsync that failed is never repeated: the kernel marks the pages clean and reports once, so the
  second would succeed without the bytes. The file is lost; the error is what remains of it.
* ``fsync`` of a file does not make its name durable; that is the directory's. Whoever made a
  directory may have died before it was durable, so those above are synced too, once per store.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from threading import Lock

from filesink.errors import StorageError
from filesink.naming import parent
from filesink.ports import TaskRunner
from filesink.storage.local.fs import Fs, Handle
from filesink.storage.os_errors import explaining

MAX_UNSYNCED = 64  # descriptors that wait for the end of a task; more are synced early
_MAX_REMEMBERED = 10_000  # directories; beyond that they are synced once more, which does no harm


class Directories:
    """Makes directories and makes them durable. May be used by several threads."""

    def __init__(self, fs: Fs, runner: TaskRunner) -> None:
        self._fs = fs
        self._runner = runner
        self._durable: set[str] = set()  # whose own name, and all names above, are on disk

    def make(self, directory: str) -> None:
        """Make ``directory`` and what is missing above it. Raises plain ``OSError``.

        That something stands there already is fine: walking through it tells what it is.
        """
        for path in reversed(_upwards(directory)):
            if path:
                with suppress(FileExistsError):
                    self._fs.mkdir(path)
                    self._durable.discard(path)

    def sync(self, directories: Iterable[str]) -> None:
        """Make the entries of ``directories`` durable, and the directories themselves.

        Each one is synced once, in parallel.
        """
        touched = set(directories)
        above = {path for each in touched - self._durable for path in _upwards(each)[1:]}
        self._runner.run(self._sync_one, sorted(touched | above))
        if len(self._durable) > _MAX_REMEMBERED:
            self._durable.clear()
        self._durable.update(touched | above)

    def _sync_one(self, directory: str) -> None:
        with explaining("sync the directory", f"{self._fs.base}/{directory}"):
            self._fs.fsync_directory(directory)


class UnsyncedFiles:
    """Files that their writers have closed and whose bytes are not durable yet.

    Their descriptors stay open until then: only the descriptor that wrote is told of a lost page
    for certain. May be used by several threads.
    """

    def __init__(self, fs: Fs, runner: TaskRunner) -> None:
        self._fs = fs
        self._runner = runner
        self._lock = Lock()  # held for the bookkeeping only, never for a system call
        self._handles: dict[str, Handle] = {}
        self._directories: set[str] = set()
        self._lost: StorageError | None = None

    def add(self, path: str, handle: Handle) -> None:
        """Take over a descriptor. Syncs what has come together when that is much."""
        with self._lock:
            self._handles[path] = handle
            self._directories.add(parent(path))
            full = self._take() if len(self._handles) >= MAX_UNSYNCED else {}
        try:
            self._runner.run(self._sync_one, full.items())
        except StorageError as error:
            self._lost = error  # ``sync`` must not call the writer's files durable later
            raise

    def sync(self) -> set[str]:
        """Make everything taken over durable; returns the directories it lies in.

        Raises:
            StorageError: at least one file is lost. All descriptors are closed all the same.
        """
        with self._lock:
            handles = self._take()
            directories, self._directories = self._directories, set()
            lost, self._lost = self._lost, None
        self._runner.run(self._sync_one, handles.items())
        if lost is not None:
            raise lost
        return directories

    def forget(self, path: str) -> None:
        """Close the descriptor of a file that is going to be removed."""
        with self._lock:
            handle = self._handles.pop(path, None)
        if handle is not None:
            with suppress(OSError):  # nobody wants these bytes
                self._fs.close(handle)

    def _take(self) -> dict[str, Handle]:
        handles, self._handles = self._handles, {}
        return handles

    def _sync_one(self, item: tuple[str, Handle]) -> None:
        path, handle = item
        with explaining("sync", f"{self._fs.base}/{path}"):
            try:
                self._fs.fsync(handle)
            finally:
                self._fs.close(handle)


def _upwards(directory: str) -> list[str]:
    """``directory`` and all above it up to the base, which is ``""``."""
    paths = [directory]
    while paths[-1]:
        paths.append(parent(paths[-1]))
    return paths
