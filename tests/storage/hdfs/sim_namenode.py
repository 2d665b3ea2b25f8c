"""A namenode in memory, with the rules of the real one; the mini cluster's tests hold it to them."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import BinaryIO

from filesink.storage.faulty import Fault, perform
from filesink.storage.hdfs.namenode import HdfsStatus


@dataclass(slots=True, eq=False)
class SimFile:
    """One file; it keeps its time when it is renamed."""

    content: bytes = b""
    mtime_ms: int = 0
    is_open: bool = True


@dataclass(slots=True)
class Cluster:
    """What all clients see. ``plan`` is asked before each call with its name and path.

    ``tick_ms`` passes between two changes; with 0 they fall into the same millisecond.
    """

    plan: Callable[[str, str], Fault | None] = lambda _operation, _path: None
    files: dict[str, SimFile] = field(default_factory=dict)
    directories: set[str] = field(default_factory=lambda: {"/"})
    lock: RLock = field(default_factory=RLock)
    now_ms: int = 1_700_000_000_000
    tick_ms: int = 1

    def make_directories(self, path: str) -> None:
        above = ""
        for name in path.strip("/").split("/"):
            above += f"/{name}"
            if above in self.files:
                raise _error(errno.ENOTDIR, above)
            self.directories.add(above)

    def has(self, path: str) -> bool:
        return path in self.files or path in self.directories


class SimNamenode:
    """A client of one cluster; see ``filesink.storage.hdfs.namenode.Namenode``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def mkdirs(self, path: str, /) -> None:
        self._do("mkdirs", path, lambda: self._cluster.make_directories(path))

    def create(self, path: str, /) -> SimWriter:
        def effect() -> SimWriter:
            if self._cluster.has(path):
                raise _error(errno.EEXIST, path)
            self._cluster.make_directories(path.rpartition("/")[0])
            file = self._cluster.files[path] = SimFile(mtime_ms=self._tick())
            return SimWriter(self, path, file)

        return self._do("create", path, effect)

    def append(self, path: str, data, /) -> None:
        """What only the REST interface does: to a closed file, which is closed again."""

        def effect() -> None:
            if path not in self._cluster.files:
                raise _error(errno.ENOENT, path)
            file = self._cluster.files[path]
            file.content += bytes(data)
            file.mtime_ms = self._tick()

        self._do("append", path, effect)

    def status(self, path: str, /) -> HdfsStatus | None:
        return self._do("status", path, lambda: self._status(path) if self._cluster.has(path) else None)

    def rename(self, source: str, target: str, /) -> None:
        def effect() -> None:
            files = self._cluster.files
            if source not in files:
                raise _error(errno.ENOENT, source)
            if self._cluster.has(target):
                raise _error(errno.EEXIST if target in files else errno.EIO, target)
            if target.rpartition("/")[0] not in self._cluster.directories:
                raise _error(errno.ENOENT, target)
            files[target] = files.pop(source)

        self._do("rename", target, effect)

    def delete(self, path: str, /) -> None:
        def effect() -> None:
            if any(other.startswith(f"{path}/") for other in self._cluster.files):
                raise _error(errno.ENOTEMPTY, path)
            self._cluster.files.pop(path, None)

        self._do("delete", path, effect)

    def list(self, path: str, /) -> list[HdfsStatus]:
        def effect() -> list[HdfsStatus]:
            if not self._cluster.has(path):
                raise _error(errno.ENOENT, path)
            names = [*self._cluster.files, *self._cluster.directories]
            inside = path.rstrip("/")
            return [self._status(name) for name in names if name != "/" and name.rpartition("/")[0] == inside]

        return self._do("list", path, effect)

    def open(self, path: str, /) -> BinaryIO:
        def effect() -> BinaryIO:
            if path not in self._cluster.files:
                raise _error(errno.ENOENT, path)
            return io.BytesIO(self._cluster.files[path].content)

        return self._do("open", path, effect)

    def _status(self, path: str) -> HdfsStatus:
        name = path.rpartition("/")[2]
        file = self._cluster.files.get(path)
        if file is None:
            return HdfsStatus(name=name, size=0, mtime_ms=0, is_directory=True)
        size = 0 if file.is_open else len(file.content)
        return HdfsStatus(name=name, size=size, mtime_ms=file.mtime_ms, is_directory=False)

    def _do(self, operation, path, effect):  # type: ignore[no-untyped-def]
        with self._cluster.lock:
            return perform(self._cluster.plan, (operation, path), effect)

    def _tick(self) -> int:
        self._cluster.now_ms += self._cluster.tick_ms
        return self._cluster.now_ms


class SimWriter:
    """See ``filesink.storage.hdfs.namenode.HdfsWriter``."""

    def __init__(self, namenode: SimNamenode, path: str, file: SimFile) -> None:
        self._namenode = namenode
        self._path = path
        self._file = file

    def write(self, data, /) -> int:
        piece = bytes(data)

        def effect() -> int:
            self._file.content += piece
            return len(piece)

        return self._namenode._do("write", self._path, effect)

    def close(self) -> None:
        def effect() -> None:
            if self._file not in self._namenode._cluster.files.values():
                raise _error(errno.ENOENT, self._path)
            self._file.is_open = False
            self._file.mtime_ms = self._namenode._tick()

        self._namenode._do("close", self._path, effect)

    def abandon(self) -> None:
        """The lease runs out some day; the file is deleted before."""


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
