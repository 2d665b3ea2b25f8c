"""``hdfs://`` through hdfs-native: the namenode's own protocol, without a JVM in every task.

fsspec's own ``hdfs`` goes through pyarrow and libhdfs, which cannot serve here: its move deletes a file
that stands under the new name, and its look at a file takes every error for «absent».
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from filesink.errors import ConfigError, DependencyError
from filesink.naming import name_of
from filesink.storage.hdfs.namenode import HdfsStatus, hadoop_error, host_and_port
from filesink.storage.ranged import RangedFile

if TYPE_CHECKING:
    import hdfs_native

    from formats.api import Buffer

_RPC_ERROR = re.compile(r'RPCError\("(?P<exception>[\w.$]+)"')
_CLIENT_OPTIONS = ("config_dir", "kerberos_principal", "kerberos_keytab", "kerberos_cache")
_NO_HSYNC = "hsync is not supported"  # erasure-coded files: no client can


class NativeNamenode:
    """See ``filesink.storage.hdfs.namenode.Namenode``. To be made after a fork: it has threads.

    Args:
        url: ``hdfs://host:port``, ``hdfs://nameservice``, or ``hdfs://`` for the configured default.
        options: Hadoop settings by their dotted names, and ``config_dir``, ``kerberos_principal``,
            ``kerberos_keytab``, ``kerberos_cache`` for the client itself.

    Raises:
        ConfigError: ``UNKNOWN_OPTION``; ``BAD_VALUE``, the address is none or nothing is configured for it.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        if url != "hdfs://":
            host_and_port(url)
        native = _library()
        self._new_file = native.WriteOptions(overwrite=False, create_parent=True)
        settings = {name: str(value) for name, value in options.items() if name not in _CLIENT_OPTIONS}
        unknown = sorted(name for name in settings if "." not in name)
        if unknown:
            raise ConfigError(
                f"unknown storage options {unknown} for hdfs://; give {', '.join(_CLIENT_OPTIONS)} or Hadoop "
                "settings by their dotted names",
                code="UNKNOWN_OPTION",
            )
        for_client = {name: options[name] for name in _CLIENT_OPTIONS if name in options}
        try:
            with _explained(url):
                self._client = native.Client(url, settings, **for_client)
        except OSError as error:  # nothing was asked of a cluster yet
            raise ConfigError(
                f"'{url}' leads to no cluster: {error.strerror}; check the address and Hadoop's "
                "configuration (HADOOP_CONF_DIR, or the storage options)",
                code="BAD_VALUE",
            ) from error

    def mkdirs(self, path: str, /) -> None:
        """See ``Namenode.mkdirs``. Mode 0755, as Hadoop's default umask has it."""
        with _explained(path):
            self._client.mkdirs(path, create_parent=True)

    def create(self, path: str, /) -> NativeWriter:
        """See ``Namenode.create``."""
        with _explained(path):
            return NativeWriter(self._client.create(path, self._new_file), path)

    def status(self, path: str, /) -> HdfsStatus | None:
        """See ``Namenode.status``."""
        with _explained(path):
            try:
                return _status(self._client.get_file_info(path))
            except FileNotFoundError:
                return None

    def rename(self, source: str, target: str, /) -> None:
        """See ``Namenode.rename``."""
        with _explained(target):
            self._client.rename(source, target, overwrite=False)

    def delete(self, path: str, /) -> None:
        """See ``Namenode.delete``."""
        with _explained(path):
            self._client.delete(path)

    def list(self, path: str, /) -> list[HdfsStatus]:
        """See ``Namenode.list``."""
        with _explained(path):
            return [_status(found) for found in self._client.list_status(path)]

    def open(self, path: str, /) -> BinaryIO:
        """See ``Namenode.open``."""
        with _explained(path):
            raw = _RawReader(self._client.read(path), path)
            return cast("BinaryIO", io.BufferedReader(raw, buffer_size=1 << 20))


class NativeWriter:
    """See ``filesink.storage.hdfs.namenode.HdfsWriter``."""

    def __init__(self, writer: hdfs_native.FileWriter, path: str) -> None:
        self._writer = writer
        self._path = path

    def write(self, data: Buffer, /) -> int:
        """See ``HdfsWriter.write``."""
        with _explained(self._path):
            return self._writer.write(data)

    def close(self) -> None:
        """See ``HdfsWriter.close``. The datanodes sync the last block, which close alone does not ask."""
        with _explained(self._path):
            try:
                self._writer.hsync()
            except Exception as error:
                if _NO_HSYNC not in str(error):
                    raise
            self._writer.close()

    def abandon(self) -> None:
        """See ``HdfsWriter.abandon``."""
        with _explained(self._path):
            self._writer.close()


class _RawReader(RangedFile):
    """With errors that an ``open`` file would have."""

    def __init__(self, reader: hdfs_native.FileReader, path: str) -> None:
        super().__init__(reader.size)
        self._reader = reader
        self._path = path

    def _range(self, start: int, most: int) -> bytes:
        with _explained(self._path):
            return self._reader.read_range(start, most)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn what the library raises inside the block into ``OSError`` with an errno."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise _with_number(error, path) from error
    except (RuntimeError, ValueError, NotImplementedError) as error:
        found = _RPC_ERROR.search(str(error))
        if found is not None:
            raise hadoop_error(found["exception"], path) from error
        raise OSError(errno.EIO, _first_line(error), path) from error


def _with_number(error: OSError, path: str) -> OSError:
    match error:
        case FileNotFoundError():
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        case FileExistsError():
            return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        case _:
            return OSError(errno.EIO, _first_line(error), path)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__


def _status(found: hdfs_native.FileStatus) -> HdfsStatus:
    return HdfsStatus(
        name=name_of(found.path),
        size=found.length,
        mtime_ms=found.modification_time,
        is_directory=found.isdir,
    )


def _library() -> Any:
    try:
        import hdfs_native
    except ImportError as error:
        raise DependencyError(
            "paths on hdfs:// need hdfs-native; install it with: pip install 'filesink[hdfs]'",
            code="DEPENDENCY",
        ) from error
    return hdfs_native
