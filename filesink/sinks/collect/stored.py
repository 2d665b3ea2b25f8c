"""Which rows a path holds, version by version, as client and driver see them.

Rules:
1. A version keeps all of its files until all of it is acknowledged. So a place inside it means the same row
   whoever looks, and whenever.
2. Rows of other sinks are passed over, and their files are never touched.
3. Versions in which others have moved rows about cannot be counted by places: an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from filesink.errors import IdentityError, StateCorruptError, StateError
from filesink.ledger.directory import ledger_ids
from filesink.ledger.identity import is_collected
from filesink.ports import Clock
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.epochs import Epoch
from filesink.sink_directory.live_files import LiveFile
from filesink.sink_directory.site import Site
from filesink.sinks.collect.position import CollectPosition, short
from filesink.storage.api import Store

_OURS: Final = frozenset({"micro-batch", "batch-write", "upkeep", "finish"})
_APPENDS: Final = frozenset({None, "append"})


@dataclass(frozen=True, slots=True)
class Version:
    """A version that has rows, and its files in the order of their rows."""

    number: int
    files: Sequence[LiveFile]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(file.rows or 0 for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of its files together."""
        return sum(file.size for file in self.files)


class Stored:
    """What a path holds. Every method looks anew.

    Args:
        store: of the path.
        clock: waits before something is looked at again.
        path: for messages.
    """

    def __init__(self, store: Store, clock: Clock, path: str) -> None:
        self.path = path
        self._store = store
        self._directory = SinkDirectory(_site=Site(base_path=path, store=store, clock=clock))

    def newest(self) -> int:
        """The newest version; 0 before the first epoch is complete."""
        try:
            return self._directory.version
        except StateError as error:
            if error.code == "NO_INVENTORY" and not ledger_ids(self._store):
                return 0
            raise

    def inventory(self) -> str:
        """Which inventory counts the versions, as a position has it; ``""`` before the first."""
        return short(self._directory.inventory_id) if self.newest() else ""

    def look(self, position: CollectPosition) -> tuple[CollectPosition, int]:
        """``position``, with the inventory if it has none yet, and the newest version.

        Raises:
            IdentityError: ``OTHER_INVENTORY``; it is of another path, or this one was written anew.
            StateCorruptError: ``GAP``; that version was there once.
        """
        newest = self.newest()
        inventory = short(self._directory.inventory_id) if newest else ""
        if position.inventory and position.inventory != inventory:
            raise IdentityError(
                f"'{position}' is no position of '{self.path}': it belongs to another path, or this one was "
                "removed and written anew since. Begin again without a position",
                code="OTHER_INVENTORY",
            )
        if position.version > newest:
            raise StateCorruptError(
                f"'{position}' is beyond the newest version of '{self.path}', which is {newest}: its "
                "inventory is an older copy. Bring back a newer one, or begin again without a position",
                code="GAP",
            )
        return CollectPosition(position.version, position.row, inventory), newest

    def live(self) -> list[Version]:
        """Those of which no file is removed."""
        return _versions(self._directory.snapshot().files)

    def added(self, after: int, until: int) -> list[Version]:
        """Those above one version and up to another that have rows, removed or not.

        Raises:
            StateError: ``HISTORY_EXPIRED``; nobody has asked for weeks.
        """
        return _versions(self._directory.added(after, until))

    def since(self, position: CollectPosition, until: int) -> list[Version]:
        """Those that have rows, from that of ``position`` on and up to ``until``.

        Raises:
            StateError: ``REWRITTEN``; others have moved rows about.
        """
        if not until:
            return []
        after = max(position.version - 1, 0)
        try:
            epochs, found = self._directory.epochs(after), self.added(after, until)
        except StateError as error:
            if error.code != "HISTORY_EXPIRED":
                raise
            epochs, found = self._directory.epochs(), self.live()
        self._check(epochs, position.version, until)
        return [version for version in found if after < version.number <= until]

    def _check(self, epochs: Iterable[Epoch], after: int, until: int) -> None:
        for epoch in epochs:
            is_ours = epoch.kind in _OURS and (epoch.mode in _APPENDS or not epoch.removed)
            if after < epoch.version <= until and not is_ours:
                raise StateError(
                    f"version {epoch.version} of '{self.path}' is no work of this sink ({epoch.kind}): it "
                    "has moved rows about, and nobody knows which of them a client has taken. Read the path "
                    "with FileSource, and collect into another one to which only this sink writes",
                    code="REWRITTEN",
                )


def _versions(files: Iterable[LiveFile]) -> list[Version]:
    """Those of ``files`` that are ours, by version, if it has rows."""
    wanted = sorted((one for one in files if is_collected(one.sink)), key=lambda one: (one.added, one.path))
    found = (Version(number, [*some]) for number, some in groupby(wanted, key=lambda one: one.added))
    return [version for version in found if version.rows]
