"""A disk in memory that knows what would survive a power cut.

Rules:

* Bytes of a file are durable as far as ``fsync`` has taken them; a name is durable once its directory
  was synced. Everything else is volatile and may be lost, in any legal combination, by ``cut``.
* An fsync that fails marks the pages clean, as Linux does: a later one succeeds without the bytes.
* Descriptors hold inodes, not names; numbers of inodes are used again, as on real disks.
* Nothing here knows of faults, processes or filesink: see ``sim_fs`` and ``observer``.
"""

from __future__ import annotations

import errno
import os
from enum import Enum
from random import Random

from filesink.storage.api import Entry, Kind
from filesink.storage.local.fs import FsStat, version_of
from property_tests.simulation.world.nodes import Change, Directory, Inode


class Cut(Enum):
    """What a power cut may do to names and bytes that were not synced.

    ``ORDERED`` is a journaling file system: of each directory a prefix of its changes survives, of
    each file a prefix of its bytes. ``WEAK``: any subset of a directory's changes, so that a file
    whose name was changed may have both, either or none, and bytes may be zeros.
    """

    ORDERED = "ordered"
    WEAK = "weak"


class Disk:
    """One file system.

    ``changed`` collects what has happened to files since somebody last looked: (``"made"``,
    ``"removed"`` or ``"bytes"``, path or ``""``, file).
    """

    def __init__(self) -> None:
        self.root = Directory(1)
        self.changed: list[tuple[str, str, Inode | None]] = []
        self.handles: dict[int, Inode] = {}
        self._next_handle = 3
        self._next_inode = 2
        self._free: list[int] = []
        self._known: dict[str, Directory] = {"": self.root}  # only a power cut takes a directory away

    def mount(self, root: Directory) -> Directory:
        """Show another directory under the same path; returns the one that was there. Descriptors stay."""
        shown, self.root = self.root, root
        self._known = {"": root}
        return shown

    # --- names

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        above, name = self._above(path)
        if name in above.entries:
            raise _error(errno.EEXIST, path)
        self._set(above, name, Directory(self._number()))

    def create(self, path: str, owner: object, now_ns: int) -> int:
        """A new file, open for writing; returns its descriptor."""
        above, name = self._above(path)
        if name in above.entries:
            raise _error(errno.EEXIST, path)
        inode = Inode(self._number(), owner, mtime_ns=now_ns, links=1)
        self._set(above, name, inode)
        self.changed.append(("made", path, inode))
        return self.open(inode)

    def link(self, source: str, target: str) -> None:
        """A second name for a file."""
        self._above(source)
        above, name = self._above(target)
        inode = self.find(source)
        if inode is None:
            raise _error(errno.ENOENT, source)
        if name in above.entries:
            raise _error(errno.EEXIST, target)
        if isinstance(inode, Directory):
            raise _error(errno.EPERM, source)
        inode.links += 1
        self._set(above, name, inode)
        self.changed.append(("made", target, inode))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        inode = self.file(path)
        above, name = self._above(path)
        del above.entries[name]
        above.changes.append(Change(name, inode, made=False))
        inode.links -= 1
        self.changed.append(("removed", path, inode))

    def find(self, path: str) -> Inode | Directory | None:
        """What stands under a name."""
        above, _, name = path.rpartition("/")
        directory = self._known.get(above) or self._look_up(above)
        if isinstance(directory, Directory):
            return directory.entries.get(name) if name else directory
        if directory is not None:
            raise _error(errno.ENOTDIR, path)
        return None

    def find_synced(self, path: str) -> Inode | Directory | None:
        """What would certainly stand under a name after a power cut."""
        node: Inode | Directory | None = self.root
        for name in path.split("/"):
            if not isinstance(node, Directory):
                return None
            node = node.synced.get(name)
        return node

    def file(self, path: str) -> Inode:
        """The file under a name."""
        node = self.find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Directory):
            raise _error(errno.EISDIR, path)
        return node

    def directory(self, path: str) -> Directory:
        """The directory under a name."""
        known = self._known.get(path)
        if known is not None:
            return known
        node = self._look_up(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Inode):
            raise _error(errno.ENOTDIR, path)
        return node

    def list(self, path: str) -> list[Entry]:
        """The entries of a directory."""
        return [_entry(name, node) for name, node in self.directory(path).entries.items()]

    def stat(self, node: Inode | Directory) -> FsStat:
        """What ``stat`` says of a node."""
        if isinstance(node, Directory):
            return FsStat(size=0, inode=node.number, mtime_ns=0, nlink=1, kind=Kind.DIRECTORY)
        return FsStat(
            size=len(node.data), inode=node.number, mtime_ns=node.mtime_ns, nlink=node.links, kind=Kind.FILE
        )

    # --- bytes

    def open(self, inode: Inode) -> int:
        """A descriptor of a file."""
        handle = self._next_handle
        self._next_handle += 1
        inode.handles += 1
        self.handles[handle] = inode
        return handle

    def write(self, handle: int, data: bytes | memoryview, now_ns: int) -> int:
        """Append bytes."""
        inode = self.of(handle)
        inode.data += data
        inode.mtime_ns = now_ns
        self.changed.append(("bytes", "", inode))
        return len(data)

    def of(self, handle: int) -> Inode:
        """The file of a descriptor."""
        inode = self.handles.get(handle)
        if inode is None:
            raise _error(errno.EBADF, str(handle))
        return inode

    def close(self, handle: int) -> None:
        """Give up a descriptor."""
        inode = self.of(handle)
        del self.handles[handle]
        inode.handles -= 1

    def fsync(self, handle: int) -> None:
        """Make bytes durable, unless an earlier fsync of them has failed."""
        inode = self.of(handle)
        if not inode.clean:
            inode.synced = bytes(inode.data)

    def fail_fsync(self, handle: int) -> None:
        """What the kernel does when it cannot write pages: it forgets that they are dirty."""
        self.of(handle).clean = True

    def fsync_directory(self, path: str) -> None:
        """Make the names of a directory durable."""
        directory = self.directory(path)
        directory.synced = dict(directory.entries)
        for change in directory.changes:
            self._release(change.node)
        directory.changes.clear()

    # --- power cut

    def cut(self, policy: Cut, random: Random) -> None:
        """Lose what a power cut may lose; descriptors are gone, the rest is on disk."""
        self.handles.clear()
        self._known = {"": self.root}
        seen: dict[Inode, int] = {}
        self._cut_directory(self.root, policy, random, seen)
        for inode, links in seen.items():
            inode.data = bytearray(_remains(inode, policy, random))
            inode.synced = bytes(inode.data)
            inode.links, inode.handles, inode.clean = links, 0, False

    def _cut_directory(
        self, directory: Directory, policy: Cut, random: Random, seen: dict[Inode, int]
    ) -> None:
        entries = dict(directory.synced)
        for change in _surviving(directory.changes, policy, random):
            if change.made:
                entries[change.name] = change.node
            else:
                entries.pop(change.name, None)
        directory.entries, directory.synced, directory.changes = entries, dict(entries), []
        for node in entries.values():
            if isinstance(node, Directory):
                self._cut_directory(node, policy, random, seen)
            else:
                seen[node] = seen.get(node, 0) + 1

    # --- inside

    def _look_up(self, path: str) -> Inode | Directory | None:
        node: Inode | Directory | None = self.root
        for name in path.split("/") if path else ():
            if not isinstance(node, Directory):
                raise _error(errno.ENOTDIR, path)
            node = node.entries.get(name)
            if node is None:
                return None
        if isinstance(node, Directory):
            self._known[path] = node
        return node

    def _above(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        return self.directory(above), name

    def _set(self, above: Directory, name: str, node: Inode | Directory) -> None:
        above.entries[name] = node
        above.changes.append(Change(name, node, made=True))

    def _release(self, node: Inode | Directory) -> None:
        """Use the number of a file again once its removal is certain."""
        if isinstance(node, Inode) and not node.links and not node.handles and not node.gone:
            node.gone = True
            self._free.append(node.number)

    def _number(self) -> int:
        if self._free:
            return self._free.pop()
        self._next_inode += 1
        return self._next_inode


def _surviving(changes: list[Change], policy: Cut, random: Random) -> list[Change]:
    if not changes:
        return []
    if policy is Cut.ORDERED:
        return changes[: random.randint(0, len(changes))]
    return [change for change in changes if random.random() < 0.5]


def _remains(inode: Inode, policy: Cut, random: Random) -> bytes:
    if inode.durable:
        return inode.synced
    end = random.randint(len(inode.synced), len(inode.data)) if not inode.clean else len(inode.synced)
    rest = bytes(inode.data[len(inode.synced) : end])
    if policy is Cut.WEAK and random.random() < 0.5:
        rest = bytes(len(rest))
    return inode.synced + rest


def _entry(name: str, node: Inode | Directory) -> Entry:
    """A line of a listing; that of the last listing again if nothing has changed."""
    if isinstance(node, Directory):
        size = mtime_ns = 0
    else:
        size, mtime_ns = len(node.data), node.mtime_ns
    known, mtime_ms = node.listed, mtime_ns // 1_000_000
    if known is None or known.name != name or known.size != size or known.mtime_ms != mtime_ms:
        kind = Kind.DIRECTORY if isinstance(node, Directory) else Kind.FILE
        version = version_of(node.number, mtime_ns)
        known = Entry(name=name, size=size, mtime_ms=mtime_ms, kind=kind, version=version)
        node.listed = known
    return known


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
