"""Where files are read from: any store of ours, and read-only every other file system that fsspec knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, BinaryIO, Protocol

from filesink.arguments import has_no_bytes
from filesink.errors import ConfigError
from filesink.naming import shown
from filesink.source.fsspec_directory import FsspecDirectory
from filesink.source.patterns import split_pattern
from filesink.storage.api import Entry
from filesink.storage.base_path import refuse_secrets, spelling
from filesink.storage.open import open_store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OURS = {"file", "memory", "s3", "s3a", "s3n", "az", "abfs", "abfss", "gs", "gcs", "hdfs", "webhdfs"}


class Directory(Protocol):
    """What is needed of a place where files lie; every ``Store`` is one. Paths are relative to its root."""

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """Open a file for reading, seekable. ``FileNotFoundError`` if there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A path that a user has named. Opened anew in each process that needs it.

    Attributes:
        base: a directory, or a file, in its one spelling.
        pattern: names and patterns of what is meant below it; empty for all that is there.
        storage_options: of the store's client; they are never shown.
    """

    base: str
    pattern: tuple[str, ...] = ()
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def open(self) -> Directory:
        """The directory itself."""
        if _scheme(self.base) in _OURS:
            return open_store(self.base, self.storage_options)
        return FsspecDirectory(self.base, self.storage_options)

    @property
    def is_writable(self) -> bool:
        """Whether files can be removed here: fsspec's file systems are only read."""
        return _scheme(self.base) in _OURS

    def full(self, relative: str) -> str:
        """The full path of a file below."""
        return f"{self.base.rstrip('/')}/{relative}"

    def relative(self, path: str) -> str | None:
        """What ``full`` was given; ``None`` if ``path`` is not below this root."""
        below = f"{self.base.rstrip('/')}/"
        return path.removeprefix(below) if path.startswith(below) else None

    def as_file(self) -> Root | None:
        """The same path, as that of a file; ``None`` if it has nothing above it."""
        above, slash, name = self.base.rpartition("/")
        if not slash or not name or above.endswith(":/"):
            return None
        return replace(self, base=above or "/", pattern=(name,))

    def __str__(self) -> str:
        return shown("/".join([self.base.rstrip("/") or "/", *self.pattern]))


def root_of(path: object, storage_options: Mapping[str, Any]) -> Root:
    """The root that a user means by ``path``, which may hold patterns. Asks no store.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``BAD_VALUE``, ``CREDENTIALS``, ``SCHEME``; ``DEPENDENCY`` for a
            file system whose package is missing.
    """
    text: object = fspath(path) if isinstance(path, PathLike) else path
    if not isinstance(text, str) or not text.strip() or has_no_bytes(text):
        raise ConfigError(
            "a source reads paths: a directory, a file, or a pattern such as '/data/*.csv', as text or a "
            f"path; got {repr(path)[:40]}, a value of type {type(path).__name__}",
            code="PATH_REQUIRED",
        )
    if "://" in text:
        refuse_secrets(_scheme(text), text.partition("://")[2])
    base, pattern = split_pattern(text)
    if pattern and not base:
        base = "/" if text.startswith("/") else "."
    if _scheme(base) in _OURS:
        return Root(base=spelling(base), pattern=pattern, storage_options=storage_options)
    FsspecDirectory.check(_scheme(base))
    return Root(base=base.rstrip("/"), pattern=pattern, storage_options=storage_options)


def locate(roots: tuple[Root, ...], path: str) -> tuple[Root, str]:
    """The root to open for a file, and its path there.

    Raises:
        ConfigError: ``BAD_VALUE``; below none of them, as an enumerator of the user's may say.
    """
    for root in sorted(roots, key=lambda root: len(root.base)):  # the outermost, whose partitions count
        relative = root.relative(path)
        if relative is not None:
            return root, relative
        file = root.as_file() if path == root.base else None
        if file is not None:
            return file, file.pattern[0]
    raise ConfigError(
        f"file '{shown(path)}' lies below none of the paths of its source; an enumerator names files below "
        "the roots that it is given",
        code="BAD_VALUE",
    )


def _scheme(path: str) -> str:
    found = _SCHEME.match(path)
    return found[1].lower() if found else "file"
