"""Any file system that fsspec knows, for reading only: what our stores promise is not asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, BinaryIO, cast

import fsspec

from filesink.errors import ConfigError, DependencyError, StorageError
from filesink.naming import name_of
from filesink.storage.api import Entry, Kind

_TIMES = ("mtime", "LastModified", "last_modified", "modified", "modify", "updated", "created")


class FsspecDirectory:
    """Files below ``base``, a URI. Made anew in every process that needs it, never pickled."""

    def __init__(self, base: str, storage_options: Mapping[str, Any]) -> None:
        self._base = base
        try:
            self._fs, self._root = fsspec.core.url_to_fs(base, **storage_options)
        except Exception as error:  # each protocol has errors of its own; this one is told, and is the cause
            raise StorageError(
                f"'{base}' cannot be opened: fsspec raised {type(error).__name__}; check path and storage "
                "options",
                code="FSSPEC",
            ) from error

    @staticmethod
    def check(scheme: str) -> None:
        """Raise ``ConfigError`` unless fsspec has a file system of that name, and its package is there."""
        try:
            fsspec.get_filesystem_class(scheme)
        except ImportError as error:
            raise DependencyError(
                f"paths that begin with '{scheme}://' need a package that fsspec names: {error}",
                code="DEPENDENCY",
            ) from error
        except ValueError as error:
            raise ConfigError(
                f"no file system is known by '{scheme}://'; read from a local path, s3://, az://, hdfs:// or "
                "what fsspec lists in its registry",
                code="SCHEME",
            ) from error

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``."""
        path = self._at(directory)
        try:
            self._fs.invalidate_cache(path)  # not all know ls(refresh=True)
            found = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return
        except NotADirectoryError as error:
            raise StorageError(f"'{path}' is a file", code="WRONG_KIND") from error
        for info in found:
            if info["name"].rstrip("/") != path.rstrip("/"):  # some list a directory, or a file, as itself
                yield _entry(info)

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        return cast("BinaryIO", self._fs.open(self._at(path), "rb"))

    def _at(self, relative: str) -> str:
        return f"{self._root.rstrip('/')}/{relative}" if relative else self._root


def _entry(info: Mapping[str, Any]) -> Entry:
    is_directory = info.get("type") == "directory"
    return Entry(
        name=name_of(info["name"].rstrip("/")),
        size=int(info.get("size") or 0),
        mtime_ms=_milliseconds(next((info[name] for name in _TIMES if info.get(name)), 0)),
        kind=Kind.DIRECTORY if is_directory else Kind.FILE,
    )


def _milliseconds(time: object) -> int:
    """Of a time, however a file system tells it; 0 if in a way that is not known."""
    match time:
        case datetime():
            return int(time.timestamp() * 1000)
        case str():
            try:
                return int(datetime.fromisoformat(_iso(time)).timestamp() * 1000)
            except ValueError:
                return 0
        case int() | float():
            return int(time * 1000)
        case _:
            return 0


def _iso(time: str) -> str:
    """As ISO 8601: servers of FTP say 20260131235959, in UTC."""
    return f"{time[:8]}T{time[8:]}+00:00" if time[:14].isdigit() else time
