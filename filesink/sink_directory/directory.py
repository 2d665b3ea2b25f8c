"""A path that sinks have written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from filesink.errors import ConfigError
from filesink.sink_directory.epochs import Epoch, epochs_in
from filesink.sink_directory.feed import FeedEntry, entries
from filesink.sink_directory.live_files import COLUMNS, FileChanges, LiveFiles
from filesink.sink_directory.notebook import shown
from filesink.sink_directory.sink_states import SinkState, sink_states
from filesink.sink_directory.site import Site
from filesink.sink_directory.snapshot import Snapshot, snapshot_of
from filesink.sink_directory.status import PathStatus, status_of
from filesink.sink_directory.waiting import Wait, parse_wait_ms
from filesink.storage.api import Store
from formats.errors import FormatError
from formats.sizes import parse_size


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SinkDirectory:
    """What is known of a path that sinks have written to. Made by ``filesink.open``.

    Every call looks at the path anew. Nothing is ever written; no Spark is needed.

    Raises:
        StateError: ``NO_INVENTORY``, the path was written before there were inventories, see
            ``filesink.adopt``; ``ADOPTING``, its adoption runs or was interrupted; ``HISTORY_EXPIRED``, see
            ``snapshot``.
        StateCorruptError: the inventory is damaged; the message names the file.
    """

    _site: Site = field(repr=False)

    @property
    def path(self) -> str:
        """Its base path."""
        return self._site.base_path

    @property
    def store(self) -> Store:
        """Where it is, for exporters that keep something beside its files."""
        return self._site.store

    @property
    def version(self) -> int:
        """The newest version: how many epochs have become visible so far."""
        return self._site.snapshots().newest()

    @property
    def inventory_id(self) -> str:
        """Tells the versions of this path from those that it has if it is removed and written anew.

        ``""`` before the first epoch.
        """
        return self._site.snapshots().base_id()

    def sinks(self) -> list[SinkState]:
        """The state of each sink of the path, and what it still holds back. Needs no inventory."""
        return sink_states(self._site.store)

    def status(self, *, small_below: int | str = "32MiB") -> PathStatus:
        """How far the path is, and what waits. What is damaged is told, and no error.

        Args:
            small_below: files below this size count as small; bytes or ``"32MiB"``.

        Raises:
            ConfigError: ``BAD_VALUE``.
            StorageError: the store does not answer.
        """
        try:
            size = parse_size(small_below, name="small_below")
        except FormatError as error:
            raise ConfigError(error.message, code="BAD_VALUE") from error
        return status_of(self._site, size)

    def snapshot(self, at: int | datetime | None = None) -> Snapshot:
        """The files that are live at a version.

        Args:
            at: the version, or a moment, with a time zone; ``None`` for the newest version.

        Raises:
            ConfigError: ``BAD_VALUE``; ``NO_VERSION``, that version does not exist yet.
            StateError: ``HISTORY_EXPIRED``, that version is not remembered any more.
        """
        snapshots = self._site.snapshots()
        version = snapshots.version_at(_ms(at)) if isinstance(at, datetime) else _version(at, name="at")
        found = snapshots.files_at(version)
        return snapshot_of(self._site, found.version, found.rows)

    def added(self, after: int, until: int | None = None) -> LiveFiles:
        """The files that became visible above version ``after``, in the order of their paths.

        Those that are not live any more as well: for who follows the path from version to version.

        Args:
            after: a version.
            until: the last version; ``None`` for the newest.

        Raises:
            ConfigError: ``NO_VERSION``, there is none such yet.
            StateError: ``HISTORY_EXPIRED``, some are not remembered any more.
        """
        last = _version(until, name="until")
        found = self._site.snapshots().added(_version(after, name="after") or 0, last)
        return LiveFiles(found.rows.select(list(COLUMNS)))

    def changes(self, after: int, until: int | None = None) -> FileChanges:
        """What two versions differ in: for who keeps a list of the files of his own.

        Args:
            after: the version of that list.
            until: the version it is to have; ``None`` for the newest.

        Raises:
            ConfigError: ``NO_VERSION``, there is none such yet; ``BAD_VALUE``, ``until`` is before ``after``.
            StateError: ``HISTORY_EXPIRED``, ``after`` is not remembered any more.
        """
        first = _version(after, name="after") or 0
        found = self._site.snapshots().changed(first, _version(until, name="until"))
        return FileChanges(
            after=first,
            version=found.version,
            added=LiveFiles(found.added.select(list(COLUMNS))),
            removed=found.removed.select(["path", "removed"]),
        )

    def epochs(self, after: int | None = None) -> Iterator[Epoch]:
        """All epochs above version ``after``, in the order of their versions.

        Args:
            after: a version; ``None`` for all epochs that are remembered.

        Raises:
            StateError: ``HISTORY_EXPIRED``, some are not remembered any more.
        """
        return epochs_in(self._site.snapshots().epochs(_version(after, name="after")))

    def follow(
        self, after: int | None = None, *, until: int | None = None, wait: Wait = 0
    ) -> Iterator[FeedEntry]:
        """What each epoch above version ``after`` has changed, in the order of their versions, none left out.

        To go on later, in this process or another, pass the version of the last entry that is done with.
        The path is asked when the next entry is, and errors come then.

        Args:
            after: a version; ``None`` for all that is remembered.
            until: the last version that is wanted; ``None`` for no end.
            wait: how long to wait for an entry after the newest one; ``"forever"``, or a duration, counted
                anew behind each entry.

        Raises:
            ConfigError: ``NO_VERSION``, there is no version ``after``; ``BAD_VALUE``.
            StateError: ``HISTORY_EXPIRED``, some of what comes next is not remembered any more.
            IdentityError: ``OTHER_INVENTORY``, the path was removed and written anew meanwhile.
        """
        first, last = _version(after, name="after"), _version(until, name="until")
        return entries(self._site, first, last, parse_wait_ms(wait))

    def schema(self) -> pa.Schema:
        """The columns of the newest data, with the partition columns of its directories.

        Raises:
            StateError: ``NO_SCHEMA``, no columns were noted, and the files do not tell.
        """
        return self.snapshot().schema

    def schemas(self) -> Mapping[str, pa.Schema]:
        """The schemas of all remembered epochs, by id, the oldest first."""
        rows = self._site.snapshots().epochs(None)
        names = dict.fromkeys(name for name in rows["schema"].to_pylist() if name)
        return {name: self._site.schema(name) for name in names}

    def __repr__(self) -> str:
        return f"<SinkDirectory '{self.path}'>"

    def _repr_html_(self) -> str:
        return shown(self.path, self.status)


def _version(value: object, *, name: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    also = ", or a datetime" if name == "at" else ""
    raise ConfigError(f"{name} must be a version, 0, 1, 2 …{also}; got {repr(value)[:40]}", code="BAD_VALUE")


def _ms(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise ConfigError(
            "at must be a datetime with a time zone, such as datetime(2026, 1, 31, tzinfo=UTC)",
            code="BAD_VALUE",
        )
    return int(moment.timestamp() * 1000)
