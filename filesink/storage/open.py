"""Which store serves a base path. The one place that knows all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from filesink.errors import ConfigError, DependencyError
from filesink.storage.api import Store
from filesink.storage.hdfs import HdfsStore
from filesink.storage.hdfs_native import NativeNamenode
from filesink.storage.hdfs_output import HdfsFiles
from filesink.storage.local import LocalStore
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.namenode import Namenode
from filesink.storage.posix import PosixFs
from filesink.storage.webhdfs import WebNamenode
from filesink.system import SystemClock, SystemIds, ThreadRunner

_SUPPORTED = "a local path, file:///…, s3://…, hdfs://… and webhdfs://…"
_S3 = "s3://"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
# Before the first '/', or after a ':' that no port number follows, as secrets may hold a '/'.
_CREDENTIALS = re.compile(r"//(?:[^/@]*@|[^/@]*:(?![0-9]+(?:/|$))[^@]*@)")
_WEB_PORT = 9870  # of a namenode's web interface, since Hadoop 3
#: Protocols of fsspec that lack what the contract of stores needs, and what that is.
_REFUSED = {
    "gs": "its client offers neither an upload that another process completes nor a conditional one; use "
    "the bucket's S3 interface: s3:// with endpoint_url",
    "gcs": "see gs",
    "ftp": "a rename there replaces what exists, or not, as the server likes",
    "sftp": "a rename there replaces what exists, or not, as the server likes",
    "http": "it cannot be written to",
    "https": "it cannot be written to",
    "smb": "its client cannot create without replacing; mount the share and use its local path",
    "dbfs": "its client cannot publish without replacing; use the mounted path, /dbfs/…",
    "viewfs": "a rename may lead from one cluster to another; use the hdfs:// path behind it",
}


def open_store(base_path: str | PathLike[str], storage_options: Mapping[str, Any]) -> Store:
    """The store of everything below ``base_path``. Called once in each process that needs it.

    Args:
        base_path: see ``check_base_path``. ``memory://name`` is accepted here, for tests and notebooks
            that run without Spark: it lives as long as this process, which alone sees it.
        storage_options: settings of the store's client; local paths take none.

    Raises:
        ConfigError: path or options cannot be used.
    """
    path = _spelling(base_path)
    scheme, _, rest = path.partition("://")
    return _OPENERS.get(scheme if rest else "file", _open_local)(path, storage_options)


def check_base_path(base_path: object) -> str:
    """The one spelling of a base path that Spark's tasks can reach: an absolute path or a URI.

    Accepted are local paths, absolute or relative to the current directory, and URIs of the stores
    that there are. As in Spark, a URI is taken literally: ``%20`` stands for itself.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``CREDENTIALS``, ``SCHEME`` or ``BAD_VALUE``. The message
            does not repeat a path that may hold credentials.
    """
    path = _spelling(base_path)
    if path.startswith("memory://"):
        raise ConfigError(
            "'memory:' is not supported here: tasks run in other processes, which would not see the files; "
            f"use {_SUPPORTED}",
            code="SCHEME",
        )
    return path


def _spelling(base_path: object) -> str:
    path: object = fspath(base_path) if isinstance(base_path, PathLike) else base_path
    if path is None or (isinstance(path, str) and not path.strip()):
        raise ConfigError("the base path is required and empty; pass a directory", code="PATH_REQUIRED")
    if not isinstance(path, str) or "\0" in path:
        raise ConfigError(
            f"the base path must be text without NUL, not {type(path).__name__}", code="BAD_VALUE"
        )
    found = _SCHEME.fullmatch(path)
    return _local(path) if found is None else _uri(found["scheme"].lower(), found["rest"])


def _uri(scheme: str, rest: str) -> str:
    if _CREDENTIALS.match(rest):
        raise ConfigError(
            "credentials in the path are not allowed, since paths are logged; "
            "pass them through the client's own configuration",
            code="CREDENTIALS",
        )
    match scheme:
        case "file":
            return _local(_file_path(rest))
        case "memory" | "hdfs" | "webhdfs":
            return _absolute(scheme, rest)
        case "s3" | "s3a" | "s3n":
            return _s3_path(rest)
        case _:
            reason = f": {_REFUSED[scheme]}" if scheme in _REFUSED else ""
            raise ConfigError(
                f"unsupported scheme '{scheme}'{reason}; supported: {_SUPPORTED}", code="SCHEME"
            )


def _file_path(rest: str) -> str:
    """What follows ``file:``: ``/a``, ``///a`` or ``//localhost/a``."""
    path = rest
    if rest.startswith("//"):
        host, slash, below = rest[2:].partition("/")
        path = slash + below if host in {"", "localhost"} else ""
    if not path.startswith("/"):
        raise ConfigError(
            "a file: path must be absolute and without a host, as in 'file:///data/out'", code="BAD_VALUE"
        )
    return path


def _absolute(scheme: str, rest: str) -> str:
    """One spelling of ``//host:port/a/b``; ``hdfs:///a`` is on the configured default cluster."""
    host, _, below = rest.removeprefix("//").partition("/")
    names = [name for name in below.split("/") if name]
    if not rest.startswith("//") or any(name in {".", ".."} or ":" in name for name in names):
        raise ConfigError(
            f"a {scheme}: path must be absolute and without '.', '..' and ':', as in "
            f"'{scheme}://host/data/out'",
            code="BAD_VALUE",
        )
    return f"{scheme}://{host}/{'/'.join(names)}"


def _s3_path(rest: str) -> str:
    """``s3://bucket/path``, of what follows the scheme; the bucket itself may be the base path."""
    bucket, _, path = rest.removeprefix("//").partition("/")
    names = [name for name in path.split("/") if name]
    if not rest.startswith("//") or not _BUCKET.fullmatch(bucket) or {".", ".."} & set(names):
        raise ConfigError(
            "an S3 path must name a bucket and must not hold '.' or '..', as in 's3://bucket/path'",
            code="BAD_VALUE",
        )
    return "/".join([f"{_S3}{bucket}", *names])


def _local(path: str) -> str:
    return str(Path(path).absolute())


def _open_local(path: str, options: Mapping[str, Any]) -> Store:
    _take_none(options, "local paths")
    return LocalStore(PosixFs(path), runner=ThreadRunner(), ids=SystemIds())


def _open_memory(path: str, options: Mapping[str, Any]) -> Store:
    _take_none(options, "memory:")
    return MemoryStore(_memory(path))


@cache  # what makes two stores of one process see the same files
def _memory(path: str) -> MemoryFiles:
    del path
    return MemoryFiles()


def _open_hdfs(path: str, options: Mapping[str, Any]) -> Store:
    host, base = _split(path)
    return _on(NativeNamenode(f"hdfs://{host}", options), base, path)


def _open_webhdfs(path: str, options: Mapping[str, Any]) -> Store:
    host, base = _split(path)
    name, _, port = host.partition(":")
    return _on(WebNamenode(name, int(port or _WEB_PORT), options), base, path)


def _on(namenode: Namenode, base: str, path: str) -> Store:
    return HdfsStore(HdfsFiles(namenode, base, url=path), runner=ThreadRunner(), ids=SystemIds())


def _open_s3(path: str, options: Mapping[str, Any]) -> Store:
    try:
        from filesink.storage import s3_client
    except ImportError as error:
        raise DependencyError(
            f"'{_S3}' needs boto3 ({error.name} is missing); pip install 'filesink[s3]'", code="DEPENDENCY"
        ) from error
    from filesink.storage.s3 import S3Store

    bucket, _, prefix = path.removeprefix(_S3).partition("/")
    checked = s3_client.options_of(options)
    return S3Store(
        s3_client.connect(bucket, checked), prefix, options=checked, clock=SystemClock(), ids=SystemIds()
    )


def _split(path: str) -> tuple[str, str]:
    host, _, below = path.partition("://")[2].partition("/")
    return host, f"/{below}"


def _take_none(options: Mapping[str, Any], what: str) -> None:
    if options:
        raise ConfigError(
            f"storage options {sorted(options)} do not apply to {what}; remove them", code="UNKNOWN_OPTION"
        )


_OPENERS: Mapping[str, Callable[[str, Mapping[str, Any]], Store]] = {
    "memory": _open_memory,
    "s3": _open_s3,
    "hdfs": _open_hdfs,
    "webhdfs": _open_webhdfs,
}
