"""An inventory in memory, whose calls are counted and may fail, and epochs to put into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from filesink.inventory.appending import Inventory
from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.inventory.names import DIRECTORY, Listing
from filesink.inventory.reading import Reader
from filesink.inventory.snapshots import Snapshots
from filesink.storage.faulty import Fault, FaultyStore
from filesink.storage.memory import MemoryFiles, MemoryStore
from tests.fakes import CountingIds, SettableClock

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass
class Place:
    """One base path, and drivers that append to its inventory."""

    clock: SettableClock = field(default_factory=lambda: SettableClock(now=1_700_000_000_000))
    ids: CountingIds = field(default_factory=CountingIds)
    calls: list[tuple[str, str]] = field(default_factory=list)
    fault: Callable[[str, str], Fault | None] = lambda _operation, _path: None
    before: Callable[[str, str], None] = lambda _operation, _path: None
    drafts: list[Draft] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = MemoryFiles(now_ms=self.clock.now_ms)

    def store(self) -> FaultyStore:
        return FaultyStore(MemoryStore(self.files), self._plan)

    def _plan(self, operation: str, path: str) -> Fault | None:
        self.before(operation, path)
        self.calls.append((operation, path.rpartition("/")[2]))
        return self.fault(operation, path)

    def inventory(self, *, fold_every: int = 1000, history_ms: int = 30 * DAY_MS) -> Inventory:
        """That of a driver which has just started."""
        return Inventory(
            self.store(), clock=self.clock, ids=self.ids, fold_every=fold_every, history_ms=history_ms
        )

    def draft(self, *added: str, removed: tuple[str, ...] = (), sink: str = "uid-u", **more: Any) -> Draft:
        """An epoch that adds and removes files of these names."""
        files = tuple(AddedFile(path=path, size=10, rows=2) for path in added)
        made = Draft(
            **{
                "sink": sink,
                "slot": len(self.drafts),
                "nonce": self.ids.uuid(),
                "cause": Cause(kind="micro-batch", query_id="q", batch_id=len(self.drafts)),
                "decided_ms": self.clock.now,
                "visible_ms": self.clock.now,
                "rows": 2 * len(files),
                "size": 10 * len(files),
                "added": files,
                "removed": removed,
                **more,
            }
        )
        self.drafts.append(made)
        return made

    def filled(self, versions: int, *, fold_every: int = 1000) -> Inventory:
        """An inventory with so many epochs, each of one file ``part-<version>``."""
        inventory = self.inventory(fold_every=fold_every)
        for version in range(1, versions + 1):
            assert inventory.append(self.draft(f"part-{version}"), floor=inventory.newest()) == version
        return inventory

    def reader(self) -> Reader:
        return Reader(self.store(), self.clock)

    def snapshots(self) -> Snapshots:
        return Snapshots(self.reader(), "/base")

    def live(self, version: int | None = None) -> set[str]:
        paths = self.snapshots().files_at(version).rows["path"].to_pylist()
        assert len(set(paths)) == len(paths)
        return set(paths)

    def listing(self) -> Listing:
        return Listing.of(MemoryStore(self.files).list(DIRECTORY))

    def names(self) -> list[str]:
        """Everything in the directory."""
        return sorted(path.rpartition("/")[2] for path in self.files.files if path.startswith(DIRECTORY))

    def counted(self, act: Callable[[], object]) -> list[str]:
        """The calls that ``act`` makes."""
        self.calls.clear()
        act()
        return [operation for operation, _ in self.calls]
