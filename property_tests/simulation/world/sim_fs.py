"""``Fs`` on a simulated disk: what one process sees of it. Every call may fail, or be the last."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from filesink.storage.api import Entry
from filesink.storage.local.fs import FsStat, Handle
from property_tests.simulation.world.disk import Disk
from property_tests.simulation.world.world import Process, World

NO_COMPONENT = frozenset(("", ".", ".."))


class SimFs:
    """The files of a simulated machine, for one process of it."""

    base = "/sim"

    def __init__(self, world: World, process: Process, disk: Disk) -> None:
        self._world = world
        self._process = process
        self._disk = disk
        self._paths: dict[int, str] = {}

    def make_base(self) -> None:
        """See ``Fs.make_base``; the base of a simulated disk is always there."""
        self._world.step(self._process, "make_base", "", lambda: None)

    def mkdir(self, path: str, /) -> None:
        """See ``Fs.mkdir``."""
        self._world.step(self._process, "mkdir", self._inside(path), self._disk.mkdir, path)

    def create_exclusive(self, path: str, /) -> Handle:
        """See ``Fs.create_exclusive``."""
        try:
            handle = self._world.step(
                self._process,
                "create_exclusive",
                self._inside(path),
                self._create,
                path,
                late=self._create_late,
            )
        except OSError:
            self._forget(path)  # made, but its descriptor never reached the caller
            raise
        return handle

    def write(self, handle: Handle, data: memoryview, /) -> int:
        """See ``Fs.write``."""
        path = self._paths.get(handle, "?")
        return self._world.step(
            self._process, "write", path, self._write, handle, data, partial=self._write_some
        )

    def copy(self, handle: Handle, source: str, start: int, /) -> int:
        """See ``Fs.copy``."""
        arguments = handle, source, start
        return self._world.step(
            self._process, "copy", self._inside(source), self._copy, *arguments, partial=self._copy_some
        )

    def fsync(self, handle: Handle, /) -> None:
        """See ``Fs.fsync``. An error means that the bytes are gone from the page cache's books."""
        try:
            self._world.step(self._process, "fsync", self._paths.get(handle, "?"), self._disk.fsync, handle)
        except OSError:
            self._disk.fail_fsync(handle)
            raise

    def close(self, handle: Handle, /) -> None:
        """See ``Fs.close``."""
        path = self._paths.pop(handle, "?")
        try:
            self._world.step(self._process, "close", path, self._disk.close, handle)
        except OSError:
            if handle in self._disk.handles:
                self._disk.close(handle)
            raise

    def fstat(self, handle: Handle, /) -> FsStat:
        """See ``Fs.fstat``."""
        path = self._paths.get(handle, "?")
        return self._world.step(self._process, "fstat", path, lambda: self._disk.stat(self._disk.of(handle)))

    def stat(self, path: str, /) -> FsStat | None:
        """See ``Fs.stat``."""
        return self._world.step(self._process, "stat", self._inside(path), self._stat, path)

    def link(self, source: str, target: str, /) -> None:
        """See ``Fs.link``."""
        self._inside(source)
        self._world.step(self._process, "link", self._inside(target), self._disk.link, source, target)

    def unlink(self, path: str, /) -> None:
        """See ``Fs.unlink``."""
        self._world.step(self._process, "unlink", self._inside(path), self._disk.unlink, path)

    def fsync_directory(self, path: str, /) -> None:
        """See ``Fs.fsync_directory``."""
        self._world.step(self._process, "fsync_directory", path, self._disk.fsync_directory, path)

    def read(self, path: str, /) -> bytes:
        """See ``Fs.read``."""
        return self._world.step(
            self._process, "read", self._inside(path), lambda: bytes(self._disk.file(path).data)
        )

    def open_read(self, path: str, /) -> BinaryIO:
        """See ``Fs.open_read``."""
        data = self._world.step(
            self._process, "open_read", self._inside(path), lambda: bytes(self._disk.file(path).data)
        )
        return io.BytesIO(data)

    def list(self, path: str, /) -> list[Entry]:
        """See ``Fs.list``. Entries come in a random order, as they do from real directories."""
        entries = self._world.step(self._process, "list", path, self._disk.list, path)
        if len(entries) > 1:
            self._world.random.shuffle(entries)
        return entries

    def scan(self, path: str, /) -> Iterator[Entry]:
        """See ``Fs.scan``."""
        yield from self.list(path)

    # --- effects

    def _create(self, path: str) -> Handle:
        handle = self._disk.create(path, self._process, self._now_ns())
        self._paths[handle] = path
        return handle

    def _create_late(self, path: str) -> None:
        self._disk.close(self._disk.create(path, self._process, self._now_ns()))

    def _forget(self, path: str) -> None:
        for handle in [handle for handle, other in self._paths.items() if other == path]:
            del self._paths[handle]
            self._disk.close(handle)

    def _write(self, handle: Handle, data: memoryview) -> int:
        return self._disk.write(handle, data, self._now_ns())

    def _write_some(self, handle: Handle, data: memoryview) -> int:
        return self._write(handle, data[: max(1, self._world.random.randrange(len(data) + 1))])

    def _copy(self, handle: Handle, source: str, start: int) -> int:
        return self._disk.write(handle, bytes(self._disk.file(source).data[start:]), self._now_ns())

    def _copy_some(self, handle: Handle, source: str, start: int) -> int:
        data = bytes(self._disk.file(source).data[start:])
        return self._disk.write(handle, data[: self._world.random.randrange(len(data))], self._now_ns())

    def _stat(self, path: str) -> FsStat | None:
        node = self._disk.find(path)
        return None if node is None else self._disk.stat(node)

    def _now_ns(self) -> int:
        return self._world.now_ms * 1_000_000 + self._world.operations

    def _inside(self, path: str) -> str:
        """I10: no path leads out of the base."""
        if not NO_COMPONENT.isdisjoint(path.split("/")):
            self._world.fail(f"I10: path {path!r} leaves the base")
        return path
