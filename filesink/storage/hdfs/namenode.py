"""The calls to a namenode that a store on HDFS needs, as one small port.

Rules:

* Paths are absolute, as HDFS has them.
* Every method is one call that can fail by itself and raises a plain ``OSError`` with an errno
  where the namenode gave a reason (see ``hadoop_error``); what it means is decided one layer above.
* ``rename`` never replaces and never moves into a directory, whatever the client's own default is.
* A file is found under its name from ``create`` on and has its size and time from ``close`` on.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from filesink.errors import ConfigError

if TYPE_CHECKING:
    from formats.api import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsStatus:
    """What the namenode knows of a file. ``size`` in bytes, ``mtime_ms`` since 1970 UTC."""

    name: str
    size: int
    mtime_ms: int
    is_directory: bool

    @property
    def version(self) -> str:
        """See ``Entry.version``; HDFS tells no more of a file."""
        return str(self.mtime_ms)


class HdfsWriter(Protocol):
    """A new file that is being written."""

    def write(self, data: Buffer, /) -> int:
        """Append all of ``data``; returns its length in bytes."""
        ...

    def close(self) -> None:
        """Make the bytes durable, as far as the cluster can, and end the file."""
        ...

    def abandon(self) -> None:
        """Give up the connection; the file stays as it is, to be deleted."""
        ...


class Namenode(Protocol):
    """One HDFS cluster; may be used by several threads."""

    def mkdirs(self, path: str, /) -> None:
        """Make a directory and those above it; one that exists is no error."""
        ...

    def create(self, path: str, /) -> HdfsWriter:
        """A new file, and the directories above it; ``FileExistsError`` if anything has its name."""
        ...

    def status(self, path: str, /) -> HdfsStatus | None:
        """What is known of a name; ``None`` if there is none."""
        ...

    def rename(self, source: str, target: str, /) -> None:
        """Give a file another name, atomically; ``FileExistsError`` if that is taken."""
        ...

    def delete(self, path: str, /) -> None:
        """Remove a file; none is no error. A directory that is not empty is one."""
        ...

    def list(self, path: str, /) -> list[HdfsStatus]:
        """The entries of a directory; ``FileNotFoundError`` if there is none."""
        ...

    def open(self, path: str, /) -> BinaryIO:
        """Open for reading, with ``seek``; ``FileNotFoundError`` if there is no such file."""
        ...


_ERRNOS = {
    "AccessControlException": errno.EACCES,
    "AlreadyBeingCreatedException": errno.EEXIST,
    "DSQuotaExceededException": errno.EDQUOT,
    "FileAlreadyExistsException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "InvalidPathException": errno.EINVAL,
    "NSQuotaExceededException": errno.EDQUOT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathComponentTooLongException": errno.ENAMETOOLONG,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
    "RetriableException": errno.EAGAIN,
    "SafeModeException": errno.EROFS,
    "SecurityException": errno.EACCES,
    "StandbyException": errno.EAGAIN,
}
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:\s]+)(?::(?P<port>[0-9]{1,5}))?")


def host_and_port(url: str) -> tuple[str, int | None]:
    """The two in ``scheme://host:port``, with the brackets of an IPv6 address; no port is ``None``.

    Raises:
        ConfigError: ``BAD_VALUE``. The message does not repeat what may be a misplaced password.
    """
    scheme, _, address = url.partition("://")
    found = _ADDRESS.fullmatch(address)
    port = int(found["port"]) if found is not None and found["port"] else None
    if found is None or (port is not None and not 0 < port < 1 << 16):
        raise ConfigError(
            f"a {scheme}: path must begin with '{scheme}://host/' or '{scheme}://host:port/', with a port "
            "from 1 to 65535 and an IPv6 address in brackets",
            code="BAD_VALUE",
        )
    return found["host"], port


def hadoop_error(exception: str, path: str) -> OSError:
    """The error for a Java exception that a namenode has answered with.

    Args:
        exception: its class, with or without package and outer class.
        path: what was asked for.
    """
    name = exception.replace("$", ".").rpartition(".")[2]
    code = _ERRNOS.get(name, errno.EIO)
    return OSError(code, f"{os.strerror(code)} ({name})", path)
