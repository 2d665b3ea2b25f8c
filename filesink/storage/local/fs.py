"""The system calls that a store on a file system needs, as one small port.

Rules:

* Paths are relative to the base, ``/`` between components, ``""`` is the base itself.
* Every method is one step that can fail by itself. It raises the plain ``OSError`` of the system;
  what an error means is decided one layer above.
* No method follows a symbolic link below the base (``SecurityError``); the base may be one.
* Nothing is durable before ``fsync`` of the file and ``fsync_directory`` of the directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from filesink.storage.api import Entry, Kind

#: A descriptor of a file that is open for writing.
Handle = int


@dataclass(frozen=True, slots=True, kw_only=True)
class FsStat:
    """What is known of a file. ``size`` in bytes, ``mtime_ns`` in nanoseconds since 1970 UTC."""

    size: int
    inode: int
    mtime_ns: int
    nlink: int
    kind: Kind

    @property
    def version(self) -> str:
        """See ``Entry.version``."""
        return version_of(self.inode, self.mtime_ns)


def version_of(inode: int, mtime_ns: int) -> str:
    """What tells a file from any other that ever had its name; see ``Entry.version``."""
    return f"{inode}.{mtime_ns}"


class Fs(Protocol):
    """A file system below one base directory; may be used by several threads."""

    @property
    def base(self) -> str:
        """The base directory, for messages."""
        ...

    def make_base(self) -> None:
        """Make the base directory and the directories above it that are missing, durably."""
        ...

    def mkdir(self, path: str, /) -> None:
        """Make one directory; ``FileExistsError`` if anything stands under its name."""
        ...

    def create_exclusive(self, path: str, /) -> Handle:
        """Open a new file for writing; ``FileExistsError`` if anything stands under its name."""
        ...

    def write(self, handle: Handle, data: memoryview, /) -> int:
        """Append bytes and return how many were taken, which may be less than given."""
        ...

    def copy(self, handle: Handle, source: str, start: int, /) -> int:
        """Append another file from byte ``start`` on, in the kernel where it can; returns bytes copied."""
        ...

    def fsync(self, handle: Handle, /) -> None:
        """Make the bytes of a file durable."""
        ...

    def close(self, handle: Handle, /) -> None:
        """Give up a descriptor; it is gone even if this raises."""
        ...

    def fstat(self, handle: Handle, /) -> FsStat:
        """What is known of an open file."""
        ...

    def stat(self, path: str, /) -> FsStat | None:
        """What is known of a name, links not followed; ``None`` if there is none."""
        ...

    def link(self, source: str, target: str, /) -> None:
        """A second name for a file; ``FileExistsError`` if anything stands under ``target``."""
        ...

    def unlink(self, path: str, /) -> None:
        """Remove a name; ``FileNotFoundError`` if there is none."""
        ...

    def fsync_directory(self, path: str, /) -> None:
        """Make the entries of a directory durable."""
        ...

    def read(self, path: str, /) -> bytes:
        """The whole content; ``FileNotFoundError`` if there is no such file."""
        ...

    def open_read(self, path: str, /) -> BinaryIO:
        """Open for reading; ``FileNotFoundError`` if there is no such file."""
        ...

    def list(self, path: str, /) -> list[Entry]:
        """The entries of a directory, in no order; ``FileNotFoundError`` if there is none."""
        ...

    def scan(self, path: str, /) -> Iterator[Entry]:
        """As ``list``, one entry after the other; the directory is open until the last."""
        ...
