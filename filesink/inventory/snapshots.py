"""Which files are live at a version, and which epochs there were: what readers of an inventory ask for.

Every call looks at the store, and answers from one moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa

from filesink.errors import ConfigError, StateError
from filesink.inventory import chains
from filesink.inventory.entry import Entry
from filesink.inventory.mark import MarkKind, first_mark
from filesink.inventory.reading import Look, Reader
from filesink.inventory.rows.epochs import epochs_of, in_order
from filesink.inventory.rows.files import FILES, between, files_of, gone, live
from filesink.inventory.rows.merging import merge
from filesink.inventory.versions import Versions, versions_after
from formats.arrow import pc

T = TypeVar("T")

_NO_ENTRIES: Final = 1 << 62  # a version above all
#: Where sinks have begun and no epoch is complete.
_NOTHING: Final = Look(mark=first_mark(MarkKind.FRESH, now_ms=0, base_id=""), data=b"", newest=0, seen_ms=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files that are live at ``version``: ``rows`` of ``rows.files.FILES``, sorted by path."""

    version: int
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What two versions differ in: rows of ``rows.files.FILES``, sorted by path.

    ``removed`` has no more than path and version of a file whose own row is elsewhere.
    """

    version: int
    added: pa.Table
    removed: pa.Table


class Snapshots:
    """Answers of one inventory.

    Args:
        reader: of that inventory.
        path: the base path, for messages.
    """

    def __init__(self, reader: Reader, path: str) -> None:
        self._reader = reader
        self._path = path

    def newest(self) -> int:
        """The newest version.

        Raises:
            StateError: ``NO_INVENTORY``, the path has none; ``ADOPTING``, it is being adopted.
            StateCorruptError: it is damaged, and the message names the file. All calls raise these.
        """
        return self._steady(lambda look, _: look.newest, after=_NO_ENTRIES)

    def base_id(self) -> str:
        """What tells this inventory from another one at the same path; ``""`` before the first epoch."""
        return self._steady(lambda look, _: look.mark.base_id, after=_NO_ENTRIES)

    def files_at(self, version: int | None) -> Files:
        """The files that are live at ``version``; ``None`` for the newest.

        Raises:
            ConfigError: ``NO_VERSION``, there is none such yet.
            StateError: ``HISTORY_EXPIRED``, it is older than what is remembered.
        """

        def ask(look: Look, entries: list[Entry]) -> Files:
            wanted = look.newest if version is None else self._checked(look, version)
            above = files_of([entry for entry in entries if entry.version <= wanted])
            pieces = [*self._reader.pieces(look, "files"), iter([above])]
            return Files(version=wanted, rows=_joined([live(rows, wanted) for rows in merge(pieces)]))

        return self._steady(ask)

    def added(self, after: int, until: int | None) -> Files:
        """The files that became visible above version ``after`` and up to ``until``, live still or not.

        Reads no more than what is newer than ``after``.

        Raises:
            ConfigError: ``NO_VERSION``, ``until`` is none yet.
            StateError: ``HISTORY_EXPIRED``, some are not remembered.
        """

        def ask(look: Look, entries: list[Entry]) -> Files:
            wanted = look.newest if until is None else self._checked(look, until)
            if after + 1 < look.mark.horizon:
                raise self._expired(look, after + 1)
            pieces = [*self._reader.pieces(look, "files", after=after), iter([files_of(entries)])]
            return Files(
                version=wanted, rows=_joined([between(rows, after, wanted) for rows in merge(pieces)])
            )

        return self._steady(ask, after=after)

    def changed(self, after: int, until: int | None) -> Change:
        """Which files are live at ``until`` and not at ``after``, and the other way round.

        Reads no more than what is newer than ``after``. Raises as ``added``.
        """

        def ask(look: Look, entries: list[Entry]) -> Change:
            wanted = look.newest if until is None else self._checked(look, until)
            if self._checked(look, after) > wanted:
                raise ConfigError(f"version {after} is newer than {wanted}", code="BAD_VALUE")
            pieces = [*self._reader.pieces(look, "files", after=after), iter([files_of(entries)])]
            rows = list(merge(pieces))
            came = [live(between(one, after, wanted), wanted) for one in rows]
            went = [gone(one, after, wanted) for one in rows]
            return Change(version=wanted, added=_joined(came), removed=_joined(went))

        return self._steady(ask, after=after)

    def epochs(self, after: int | None) -> pa.Table:
        """Rows of all epochs above version ``after``, in their order; ``None`` for all that are remembered.

        Raises:
            StateError: ``HISTORY_EXPIRED``, some are not.
        """

        def ask(look: Look, entries: list[Entry]) -> pa.Table:
            first = look.mark.horizon if after is None else after + 1
            if first < look.mark.horizon:
                raise self._expired(look, first)
            pieces = [
                rows for piece in self._reader.pieces(look, "epochs", after=first - 1) for rows in piece
            ]
            rows = in_order([*pieces, epochs_of(entries)])
            return rows.filter(pc.greater_equal(rows["version"], first))

        return self._steady(ask)

    def versions(self, after: int | None, until: int | None = None) -> Versions:
        """What the next versions above ``after`` have changed, some at a time; see ``Versions``.

        Args:
            after: a version; ``None`` for all that is remembered.
            until: no version above it is wanted.

        Raises:
            ConfigError: ``NO_VERSION``; ``after`` does not exist.
            StateError: ``HISTORY_EXPIRED``; some of the next epoch is not remembered.
        """

        def ask(look: Look, entries: list[Entry]) -> Versions:
            horizon = look.mark.horizon
            first = max(horizon, 1) if after is None else after + 1
            if first > look.newest + 1:
                raise self._not_yet(look, first - 1)
            last = look.newest if until is None else until
            if first >= horizon:
                found = versions_after(self._reader, look, entries, after=first - 1, until=last)
                # What was removed at the horizon is forgotten with what was removed before it.
                if first > horizon or not horizon or not pc.sum(found.epochs["removed"].slice(0, 1)).as_py():
                    return found
            if after is None:
                return versions_after(self._reader, look, entries, after=horizon, until=last)
            raise StateError(
                f"what came after version {after} of '{self._path}' is not remembered any more. Take "
                f"filesink.open('{self._path}').snapshot(), and follow what comes after its version",
                code="HISTORY_EXPIRED",
            )

        return self._steady(ask, after=after or 0)

    def version_at(self, moment_ms: int) -> int:
        """The newest version that was visible at ``moment_ms``, milliseconds since 1970 UTC.

        Raises:
            StateError: ``HISTORY_EXPIRED``, that was before everything that is remembered.
        """

        def ask(look: Look, entries: list[Entry]) -> int:
            pieces = [rows for piece in self._reader.pieces(look, "epochs") for rows in piece]
            rows = in_order([*pieces, epochs_of(entries)])
            found = rows.filter(pc.less_equal(rows["visible_ms"], moment_ms))["version"]
            version = pc.max(found).as_py() if len(found) else 0
            if version < look.mark.horizon:
                raise self._expired(look, version)
            return int(version)

        return self._steady(ask)

    def _checked(self, look: Look, version: int) -> int:
        if version > look.newest:
            raise self._not_yet(look, version)
        if version < look.mark.horizon:
            raise self._expired(look, version)
        return version

    def _not_yet(self, look: Look, version: int) -> ConfigError:
        return ConfigError(
            f"'{self._path}' has no version {version} yet; the newest is {look.newest}", code="NO_VERSION"
        )

    def _expired(self, look: Look, version: int) -> StateError:
        return StateError(
            f"version {version} of '{self._path}' has expired; the oldest version that is still available is "
            f"{look.mark.horizon}",
            code="HISTORY_EXPIRED",
        )

    def _steady(self, ask: Callable[[Look, list[Entry]], T], *, after: int = 0) -> T:
        def checked(look: Look, entries: list[Entry]) -> list[T]:
            if look.mark.kind is MarkKind.ADOPTING:
                raise StateError(
                    f"'{self._path}': its adoption is running, or was interrupted. Wait, or call "
                    "filesink.adopt() again",
                    code="ADOPTING",
                )
            return [ask(look, entries)]

        found = self._reader.steady(checked, after=after)
        if found is None and chains.are_all_new(self._reader.store):
            return ask(_NOTHING, [])
        found = found or self._reader.steady(checked, after=after)
        if found is None:
            raise StateError(
                f"'{self._path}' has no inventory: a release without inventories wrote it, or it was "
                f"removed. Call filesink.adopt('{self._path}') once, with the right to write there, to make "
                "one",
                code="NO_INVENTORY",
            )
        return found[0]


def _joined(pieces: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(pieces) if pieces else FILES.empty_table()
