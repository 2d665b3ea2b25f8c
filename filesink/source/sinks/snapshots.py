"""What a sink's directory holds, as files of a source. Nothing is listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from filesink.errors import ConfigError, StateError
from filesink.naming import name_of
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.live_files import LiveFile
from filesink.sink_directory.opening import is_sink_directory
from filesink.sink_directory.opening import open as open_directory
from filesink.sink_directory.snapshot import Snapshot
from filesink.source.directories import Root
from filesink.source.enumerators import FileEnumerator, RecursiveFileEnumerator
from filesink.source.files import SourceFile
from filesink.source.patterns import compiled
from filesink.source.reading.codes import format_of
from filesink.source.reading.plan import Reading, Union
from formats.text.line_format import TextLineFormat


@dataclass(frozen=True, slots=True)
class SinkRoot:
    """A root that sinks have written to.

    Attributes:
        root: as the user has named it.
        directory: what is known of it.
        name_pattern: of the files that are wanted; ``None`` for all.
    """

    root: Root
    directory: SinkDirectory
    name_pattern: str | None

    @property
    def has_inventory(self) -> bool:
        """Whether its versions are known: a path that an older release has written has none."""
        try:
            self.directory.version  # noqa: B018 - asked for what it raises
        except StateError as error:
            if error.code != "NO_INVENTORY":
                raise
            return False
        return True

    def snapshot(self, at: int | datetime | None) -> Snapshot:
        """See ``SinkDirectory.snapshot``."""
        return self.directory.snapshot(at)

    def is_emptied(self, at: int | datetime | None) -> bool:
        """Whether there were epochs up to a snapshot, and it has no file."""
        found = self.snapshot(at)
        return found.version > 0 and not found.files

    def first_gone(self, at: int | datetime) -> SourceFile | None:
        """A wanted file of a snapshot that is not there any more; only those removed since are looked at."""
        version = at if isinstance(at, int) else self.snapshot(at).version
        removed = set(self.directory.changes(version).removed["path"].to_pylist())
        if not removed:  # as of the newest version, which most readers want
            return None
        store, files = self.directory.store, self.snapshot(version).files
        suspects = [live for live in files if live.path in removed and self.wanted(live) is not None]
        there = store.runner.run(lambda live: store.find(live.path) is not None, suspects)
        gone = next((live for live, is_there in zip(suspects, there, strict=True) if not is_there), None)
        return None if gone is None else self.wanted(gone)

    def files(self, at: int | datetime | None) -> Iterator[SourceFile]:
        """Those of a snapshot that are wanted, in the order of their paths."""
        return (file for live in self.snapshot(at).files if (file := self.wanted(live)) is not None)

    def wanted(self, live: LiveFile) -> SourceFile | None:
        """``live`` as a file of a source; ``None`` if it is not wanted."""
        if self.name_pattern is not None and not compiled(self.name_pattern)(name_of(live.path)):
            return None
        return SourceFile(self.root.full(live.path), live.size, 0, live.added, live.bucket)


def sink_at(root: Root, enumerator: FileEnumerator) -> SinkRoot | None:
    """``root`` as the directory of sinks; ``None`` for any other, and where the user lists by himself.

    Raises:
        ConfigError: ``CONFLICT``; files are chosen by what an inventory does not know.
    """
    if root.pattern or not root.is_writable or not isinstance(enumerator, RecursiveFileEnumerator):
        return None
    if not is_sink_directory(root.base, root.storage_options):
        return None
    known = RecursiveFileEnumerator(name_pattern=enumerator.name_pattern, splitting=enumerator.splitting)
    if enumerator != known:
        raise ConfigError(
            f"'{root}' is the directory of a sink, and is read by its versions: choose by names of files, by "
            "a version or by a time, not by depth, by times of files or by a function",
            code="CONFLICT",
        )
    directory = open_directory(root.base, root.storage_options)
    return SinkRoot(root, directory, enumerator.name_pattern)


def columns_of(snapshot: Snapshot, reading: Reading) -> pa.Schema:
    """The columns of the records of a snapshot.

    Raises:
        SchemaError: ``TWO_SCHEMAS``; two sinks of the path have other columns, and no union was asked for.
        StateError: ``NO_SCHEMA``.
    """
    found = snapshot.columns(on_other_schema="union" if reading.union is Union.ALL else "refuse")
    first = next(iter(snapshot.files), None)
    is_text = isinstance(reading.code, TextLineFormat) or (first and format_of(first.path) == "text")
    if not is_text:
        return found
    in_path = {part.partition("=")[0] for file in snapshot.files for part in file.bucket.split("/")}
    # Whatever the value was, a line is text.
    return pa.schema([field if field.name in in_path else field.with_type(pa.string()) for field in found])
