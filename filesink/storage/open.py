"""Which store serves a base path. The one place that knows all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from filesink.errors import ConfigError
from filesink.storage.api import Store
from filesink.storage.local import LocalStore
from filesink.storage.posix import PosixFs
from filesink.system import SystemIds, ThreadRunner

_SUPPORTED = "a local path, file:///…"
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
# Before the first '/', or after a ':' that no port number follows, as secrets may hold a '/'.
_CREDENTIALS = re.compile(r"//(?:[^/@]*@|[^/@]*:(?![0-9]+(?:/|$))[^@]*@)")


def open_store(base_path: str | PathLike[str], storage_options: Mapping[str, Any]) -> Store:
    """The store of everything below ``base_path``. Called once in each process that needs it.

    Args:
        base_path: see ``check_base_path``.
        storage_options: settings of the store's client; local paths take none.

    Raises:
        ConfigError: path or options cannot be used.
    """
    path = check_base_path(base_path)
    if storage_options:
        raise ConfigError(
            f"storage options {sorted(storage_options)} do not apply to local paths; remove them",
            code="UNKNOWN_OPTION",
        )
    return LocalStore(PosixFs(path), runner=ThreadRunner(), ids=SystemIds())


def check_base_path(base_path: object) -> str:
    """The one spelling of a base path: an absolute local path.

    Accepted are local paths, absolute or relative to the current directory, and ``file:`` URIs.
    As in Spark, a URI is taken literally: ``%20`` stands for itself.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``CREDENTIALS``, ``SCHEME`` or ``BAD_VALUE``. The message
            does not repeat a path that may hold credentials.
    """
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
        case "memory":
            raise ConfigError(
                "'memory:' is not supported: tasks run in other processes, which would not see the files; "
                f"use {_SUPPORTED}",
                code="SCHEME",
            )
        case _:
            raise ConfigError(f"unsupported scheme '{scheme}'; supported: {_SUPPORTED}", code="SCHEME")


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


def _local(path: str) -> str:
    return str(Path(path).absolute())
