"""The port ``Fs`` on a POSIX file system; it, ``posix_copy`` and ``write_back`` talk to the system here.

Rules:

* A path is walked component by component from the base, each opened with ``O_NOFOLLOW``, and the
  last step is taken relative to the directory that was opened: a link that somebody swaps in
  cannot lead us out of the base, whenever it is done (the kernel alone does not prevent it).
* The base itself is the user's word and may be a link. Its own entries need no walk, which spares
  two of three system calls.
* Nothing is decided here. Errors are the system's own; only a link on the way is ours.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filesink.errors import SecurityError
from filesink.naming import check_relative, parent
from filesink.storage.api import Entry, Kind
from filesink.storage.local import posix_copy, write_back
from filesink.storage.local.fs import FsStat, Handle

# O_PATH (Linux) passes through directories that may be searched but not listed.
_WALK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
# Without O_NONBLOCK a named pipe planted under one of our names would block us for ever.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

#: How systems refuse to sync a directory that is not ours: no permission, or no disk behind it.
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL}


class PosixFs:
    """Files below ``base``, an absolute path. Keeps no descriptor of its own between calls."""

    def __init__(self, base: str) -> None:
        self._base = base

    @property
    def base(self) -> str:
        """See ``Fs.base``."""
        return self._base

    def make_base(self) -> None:
        """See ``Fs.make_base``. Raises ``FileExistsError`` or ``NotADirectoryError`` for a file."""
        missing: list[Path] = []
        directory = Path(self._base)
        while not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        _fsync_name(directory)
        for directory in reversed(missing):
            try:
                directory.mkdir()
            except FileExistsError:
                if not directory.is_dir():  # else another process was faster
                    raise
            _fsync_directory(os.open(directory.parent, _LIST))

    def mkdir(self, path: str, /) -> None:
        """See ``Fs.mkdir``. Mode 0777 less the umask."""
        with self._at(path) as (directory, name):
            os.mkdir(name, dir_fd=directory)

    def create_exclusive(self, path: str, /) -> Handle:
        """See ``Fs.create_exclusive``. Mode 0666 less the umask, as any other file of the user."""
        with self._at(path) as (directory, name):
            return os.open(name, _CREATE, 0o666, dir_fd=directory)

    def write(self, handle: Handle, data: memoryview, /) -> int:
        """See ``Fs.write``."""
        taken = os.write(handle, data)
        write_back.begin(handle, taken)
        return taken

    def copy(self, handle: Handle, source: str, start: int, /) -> int:
        """See ``Fs.copy``."""
        with self.open_read(source) as reader:
            size = os.fstat(reader.fileno()).st_size - os.lseek(reader.fileno(), start, os.SEEK_SET)
            return posix_copy.copy(reader.fileno(), handle, size=size)

    def fsync(self, handle: Handle, /) -> None:
        """See ``Fs.fsync``."""
        os.fsync(handle)

    def close(self, handle: Handle, /) -> None:
        """See ``Fs.close``."""
        os.close(handle)

    def fstat(self, handle: Handle, /) -> FsStat:
        """See ``Fs.fstat``."""
        return _fs_stat(os.fstat(handle))

    def stat(self, path: str, /) -> FsStat | None:
        """See ``Fs.stat``."""
        try:
            with self._at(path) as (directory, name):
                return _fs_stat(os.stat(name, dir_fd=directory, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def link(self, source: str, target: str, /) -> None:
        """See ``Fs.link``."""
        with self._at(source) as (directory, name):
            if parent(source) == parent(target):  # always so for part files: one walk
                self._link(directory, name, directory, self._name(target))
                return
            with self._at(target) as (target_directory, target_name):
                self._link(directory, name, target_directory, target_name)

    def unlink(self, path: str, /) -> None:
        """See ``Fs.unlink``."""
        with self._at(path) as (directory, name):
            os.unlink(name, dir_fd=directory)

    def fsync_directory(self, path: str, /) -> None:
        """See ``Fs.fsync_directory``."""
        _fsync_directory(self._open_directory(path, _LIST))

    def read(self, path: str, /) -> bytes:
        """See ``Fs.read``."""
        with self.open_read(path) as reader:
            return reader.read()

    def open_read(self, path: str, /) -> BinaryIO:
        """See ``Fs.open_read``. Anything but a regular file is an ``OSError``."""
        with self._at(path) as (directory, name):
            try:
                handle = os.open(name, _READ, dir_fd=directory)
            except OSError as error:
                self._refuse_symlink(error, name, directory)
                raise
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EISDIR, "Not a regular file", path)
        return os.fdopen(handle, "rb")

    def list(self, path: str, /) -> list[Entry]:
        """See ``Fs.list``."""
        return [*self.scan(path)]

    def scan(self, path: str, /) -> Iterator[Entry]:
        """See ``Fs.scan``."""
        directory = self._open_directory(path, _LIST)
        try:
            with os.scandir(directory) as found:
                for entry in found:
                    with suppress(FileNotFoundError):  # removed since it was listed
                        yield _entry(entry)
        finally:
            os.close(directory)

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[int | None, str]]:
        """The directory of ``path``, opened, and the name in it; or no directory and a full path."""
        check_relative(path)
        above = parent(path)
        if not above:
            yield None, self._name(path)
            return
        directory = self._open_directory(above, _WALK)
        try:
            yield directory, self._name(path)
        finally:
            os.close(directory)

    def _name(self, path: str) -> str:
        check_relative(path)
        above, _, name = path.rpartition("/")
        return name if above else f"{self._base}/{name}"

    def _open_directory(self, path: str, flags: int) -> int:
        if not path:
            return os.open(self._base, flags)
        names = check_relative(path).split("/")
        names[0] = f"{self._base}/{names[0]}"
        directory: int | None = None
        for depth, name in enumerate(names, start=1):
            above = directory
            try:
                directory = self._step(name, above, flags if depth == len(names) else _WALK)
            finally:
                if above is not None:
                    os.close(above)
        assert directory is not None  # noqa: S101 - names is not empty; mypy cannot know
        return directory

    def _step(self, name: str, directory: int | None, flags: int) -> int:
        try:
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
        except OSError as error:
            self._refuse_symlink(error, name, directory)
            raise

    def _refuse_symlink(self, error: OSError, name: str, directory: int | None) -> None:
        """Raise ``SecurityError`` if ``error`` came from a symbolic link; else the error stands."""
        if error.errno not in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:  # how systems refuse links
            return
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:
            return  # the caller raises the error that it has
        if stat.S_ISLNK(found.st_mode):
            raise SecurityError(
                f"'{name}' in '{self._base}' is a symbolic link; links below the base path are not "
                "followed, replace it by a directory or use its target as the base path",
                code="SYMLINK",
            ) from error

    def _link(self, directory: int | None, name: str, target_directory: int | None, target: str) -> None:
        os.link(name, target, src_dir_fd=directory, dst_dir_fd=target_directory, follow_symlinks=False)


def _fsync_directory(directory: int) -> None:
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _fsync_name(directory: Path) -> None:
    """Make the name of a directory durable: the process that made it may have died before it did."""
    try:
        _fsync_directory(os.open(directory.parent, _LIST))
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return Kind.FILE
    return Kind.DIRECTORY if stat.S_ISDIR(mode) else Kind.OTHER


def _fs_stat(found: os.stat_result) -> FsStat:
    return FsStat(
        size=found.st_size,
        inode=found.st_ino,
        mtime_ns=found.st_mtime_ns,
        nlink=found.st_nlink,
        kind=_kind(found.st_mode),
    )


def _entry(entry: os.DirEntry[str]) -> Entry:
    found = _fs_stat(entry.stat(follow_symlinks=False))
    return Entry(
        name=entry.name,
        size=found.size,
        mtime_ms=found.mtime_ns // 1_000_000,
        kind=found.kind,
        version=found.version,
    )
