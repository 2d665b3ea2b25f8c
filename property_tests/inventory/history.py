"""One history of an inventory: drivers of several chains, readers, folds, and what goes wrong with all that.

The ledgers are lists here: an epoch is decided when it is in one, and complete when its driver says so. One
integer decides everything. What must hold:

* every epoch gets one version, the same for whoever asks; versions are 1, 2, 3 … without a gap;
* whoever looks sees the files that are live at some version, by the model, and at none before the newest that
  was given when the look began;
* no reader meets an error that stays, and no file is left that nobody needs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from filesink.errors import StateCorruptError, StateError, StorageError
from filesink.inventory import levels, sweeping
from filesink.inventory.appending import Inventory
from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.inventory.names import DIRECTORY, Listing
from filesink.inventory.reading import Reader
from filesink.inventory.snapshots import Snapshots
from filesink.storage.memory import MemoryFiles, MemoryStore
from property_tests.inventory.stepped_store import SteppedStore, StoreTrouble
from property_tests.simulation.world.clock import SimClock, SimIds
from property_tests.simulation.world.world import Killed, Process, Violation, World

_HOUR_MS = 3_600_000
_ENOUGH = 100_000  # calls; a history that needs more is stuck


@dataclass(slots=True)
class Epoch:
    """An epoch that is decided."""

    draft: Draft
    floor: int
    complete: bool = False


@dataclass(slots=True)
class Seen:
    """What a reader has seen."""

    version: int
    paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shape:
    """What is drawn for a history."""

    chains: int
    epochs: int
    readers: int
    fold_every: int
    history_ms: int
    spacing: int
    pace: int
    hours: float
    twins: float
    forgets: float


def draw_shape(random: Random) -> Shape:
    """A history that is not like the last one."""
    return Shape(
        chains=random.choice((1, 2, 3, 4)),
        epochs=random.choice((5, 10, 20)),
        readers=random.choice((1, 2)),
        fold_every=random.choice((1, 2, 3, 5)),
        history_ms=random.choice((6 * _HOUR_MS, 1000 * _HOUR_MS)),
        spacing=random.choice((0, 15, 40, 150)),
        pace=random.choice((1, 1, 3, 10, 40)),
        hours=random.choice((0.0, 0.02, 0.2)),
        twins=random.choice((0.0, 0.3, 0.8)),
        forgets=random.choice((0.0, 0.5)),
    )


class InventoryHistory:
    """Runs one history.

    Args:
        seed: decides everything.
        trace: told of each call.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.random = Random(seed)
        self.shape = draw_shape(self.random)
        trouble = StoreTrouble(self.random, spacing=self.shape.spacing)
        self.world = World(self.random, trouble, pace=self.shape.pace)
        self.world.trace = trace
        self.files = MemoryFiles(now_ms=SimClock(self.world).now_ms)
        self.chains: list[list[Epoch]] = [[] for _ in range(self.shape.chains)]
        self.versions: dict[str, int] = {}
        self.seen: list[Seen] = []
        self.ids = SimIds()
        self.drivers = 0

    def run(self) -> None:
        """The whole history.

        Raises:
            Violation: something does not hold.
        """
        kept = levels.FAN_IN, sweeping._MARKS
        levels.FAN_IN = self.random.choice((2, 3, 8))  # type: ignore[misc]
        sweeping._MARKS = self.random.choice((2, 16))  # type: ignore[misc]
        try:
            for chain in range(self.shape.chains):
                self._start(chain)
            for number in range(self.shape.readers):
                self.world.spawn(f"reader {number}", Process(f"reader {number}"), self._read)
            self.world.run_at_most(_ENOUGH, self._is_over)
            self._peace()
        finally:
            self.world.end()
            levels.FAN_IN, sweeping._MARKS = kept  # type: ignore[misc]

    # --- drivers

    def _start(self, chain: int) -> None:
        self.drivers += 1
        process = Process(f"driver {self.drivers}")
        self.world.spawn(process.name, process, lambda: self._drive(chain))

    def _drive(self, chain: int) -> None:
        """Carry on with a chain, until its quota is there; whoever dies is followed by another."""
        try:
            while len(self.chains[chain]) < self.shape.epochs or not self.chains[chain][-1].complete:
                self._run(chain)
        except Killed:
            if self.world.plan is not None:
                self._start(chain)
            raise

    def _run(self, chain: int) -> None:
        """From one start of a driver to its next."""
        inventory = self._inventory()
        with suppress(StorageError):
            while len(self.chains[chain]) < self.shape.epochs or not self.chains[chain][-1].complete:
                epochs = self.chains[chain]
                if epochs and not epochs[-1].complete:
                    self._append(inventory, epochs[-1])
                    continue
                floor = inventory.newest()
                if epochs is not self.chains[chain] or (epochs and not epochs[-1].complete):
                    continue  # another driver has decided meanwhile
                epochs.append(Epoch(self._draft(chain, len(epochs)), self._told(floor)))
                if self._chance(self.shape.twins / 10):
                    self._start(chain)
                if self._chance(self.shape.hours):
                    self._pass_time()
                if self._chance(0.05):
                    inventory.fold()

    def _append(self, inventory: Inventory, epoch: Epoch) -> None:
        version = inventory.append(epoch.draft, floor=epoch.floor)
        if version is None:
            self.world.fail("a new path has no inventory")
        known = self.versions.setdefault(epoch.draft.nonce, version or 0)
        if known != version:
            self.world.fail(f"{epoch.draft.nonce} has version {known} and version {version}")
        epoch.complete = True

    def _inventory(self) -> Inventory:
        return Inventory(
            SteppedStore(self.files, self.world),
            clock=SimClock(self.world),
            ids=self.ids,
            fold_every=self.shape.fold_every,
            history_ms=self.shape.history_ms,
        )

    def _told(self, floor: int) -> int:
        """What is on record; nothing, if the driver did not look."""
        return 0 if self._chance(self.shape.forgets) else floor

    def _pass_time(self) -> None:
        """No epoch is at work for as long as epochs are remembered."""
        at_work = [epoch.draft for epochs in self.chains for epoch in epochs if not epoch.complete]
        begun_ms = min((draft.decided_ms for draft in at_work), default=self.world.now_ms)
        latest_ms = begun_ms + self.shape.history_ms - _HOUR_MS
        self.world.now_ms = max(
            self.world.now_ms, min(latest_ms, self.world.now_ms + self.random.randrange(3 * _HOUR_MS))
        )

    def _draft(self, chain: int, slot: int) -> Draft:
        files = [self._file(chain, slot, number) for number in range(self.random.choice((0, 1, 1, 2, 5)))]
        others = [file.path for epochs in self.chains for epoch in epochs for file in epoch.draft.added]
        gone = self.random.sample(others, min(len(others), self.random.choice((0, 0, 1, 3))))
        return Draft(
            sink=f"uid-{chain}",
            slot=slot,
            nonce=self.ids.uuid(),
            cause=Cause(kind="micro-batch", query_id="q", batch_id=slot),
            decided_ms=self.world.now_ms,
            visible_ms=self.world.now_ms,
            rows=1,
            size=sum(file.size for file in files),
            added=tuple(files),
            removed=tuple(gone),
        )

    def _file(self, chain: int, slot: int, number: int) -> AddedFile:
        bucket = self.random.choice(("", "k=1/", "k=2/"))
        return AddedFile(path=f"{bucket}part-{self.ids.uuid()}-{chain}-{slot}-{number}", size=1, rows=1)

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # --- readers

    def _read(self) -> None:
        while True:
            self._rest(self.world.operations + self.random.randrange(200))
            reader = Reader(SteppedStore(self.files, self.world), SimClock(self.world))
            with suppress(StorageError):
                self._look(Snapshots(reader, "/base"))

    def _rest(self, until: int) -> None:
        self.world.wait(lambda: self.world.operations >= until)

    def _look(self, snapshots: Snapshots) -> None:
        given = max(self.versions.values(), default=0)
        try:
            at = self.random.randrange(given + 1) if given and self._chance(0.3) else None
            found = snapshots.files_at(at)
        except StateCorruptError as error:
            if error.code != "VANISHED" or not self.world.has_others(self.world.current):
                self.world.fail(f"a reader meets {error}")
            return
        except StateError as error:
            if error.code not in {"NO_INVENTORY", "HISTORY_EXPIRED"}:
                self.world.fail(f"a reader meets {error}")
            return
        if at is None and found.version < given:
            self.world.fail(f"a reader sees version {found.version}, and {given} was there before it came")
        self.seen.append(Seen(found.version, _paths(found.rows)))

    # --- the end

    def _is_over(self) -> bool:
        return all(len(epochs) >= self.shape.epochs and epochs[-1].complete for epochs in self.chains)

    def _peace(self) -> None:
        """No faults any more: everything must have come out right."""
        self.world.plan = None
        self.world.end()
        process = Process("operator")
        done: list[bool] = []
        self.world.spawn("operator", process, lambda: done.append(self._settle()))
        self.world.run_at_most(_ENOUGH, lambda: bool(done))

    def _settle(self) -> bool:
        for late in [late for _, late in self.world.late.waiting]:
            self.world.carry_out(late)
        self.world.late.clear()
        self._check_versions()
        snapshots = Snapshots(Reader(MemoryStore(self.files), SimClock(self.world)), "/base")
        live = self._model()
        newest = snapshots.newest()
        horizon = self._horizon()
        for version in range(horizon, newest + 1):
            found = snapshots.files_at(version)
            self._check(Seen(version, _paths(found.rows)), live)
        for seen in self.seen:
            self._check(seen, live)
        self._check_epochs(snapshots, horizon)
        self._check_garbage()
        return True

    def _check_versions(self) -> None:
        given = sorted(self.versions.values())
        nonces = {epoch.draft.nonce for epochs in self.chains for epoch in epochs}
        if given != list(range(1, len(nonces) + 1)) or set(self.versions) != nonces:
            self.world.fail(f"{len(nonces)} epochs have the versions {given}")

    def _model(self) -> list[frozenset[str]]:
        """Live files by version, straight from the definition."""
        drafts = {self.versions[epoch.draft.nonce]: epoch.draft for epochs in self.chains for epoch in epochs}
        added: set[str] = set()
        removed: set[str] = set()
        live = [frozenset[str]()]
        for version in sorted(drafts):
            added |= {file.path for file in drafts[version].added}
            removed |= set(drafts[version].removed)
            live.append(frozenset(added - removed))
        return live

    def _check(self, seen: Seen, live: list[frozenset[str]]) -> None:
        if seen.paths != live[seen.version]:
            more, less = seen.paths - live[seen.version], live[seen.version] - seen.paths
            self.world.fail(f"version {seen.version} has {sorted(more)} and lacks {sorted(less)}")

    def _horizon(self) -> int:
        found = Reader(MemoryStore(self.files), SimClock(self.world)).look()
        return 0 if found is None else found.mark.horizon

    def _check_epochs(self, snapshots: Snapshots, horizon: int) -> None:
        rows: Any = snapshots.epochs(None).select(["version", "nonce"]).to_pylist()
        known = {version: nonce for nonce, version in self.versions.items() if version >= horizon}
        if {row["version"]: row["nonce"] for row in rows} != known:
            self.world.fail("the history of epochs is another one")

    def _check_garbage(self) -> None:
        """An hour after the last fold there is nothing that nobody needs."""
        store = MemoryStore(self.files)
        clock = SimClock(self.world)
        self.world.now_ms += 2 * _HOUR_MS
        sweeping.Sweeper(store, clock).sweep()
        listing = Listing.of(store.list(DIRECTORY))
        look = Reader(store, clock).look()
        if look is None or list(listing.entries) != list(look.entries):
            self.world.fail(f"entries {listing.entries} are left")
        if len(listing.marks) > sweeping._MARKS + 1:
            self.world.fail(f"marks {listing.marks} are left")
        allowed = sum(len(self._named(store, number)) for number in listing.marks[-2:])
        if len([name for number, name in listing.segments if number <= listing.marks[-1]]) > allowed:
            self.world.fail(f"segments {listing.segments} are left")

    def _named(self, store: MemoryStore, number: int) -> set[str]:
        mark = sweeping.Sweeper(store, SimClock(self.world))._mark(number)
        return {segment.name for segment in mark.segments}


def _paths(rows: Any) -> frozenset[str]:
    paths = rows["path"].to_pylist()
    if len(set(paths)) < len(paths):
        raise AssertionError("a file is there twice")
    return frozenset(paths)


def run_seed(seed: int, trace: Callable[[str], None] | None = None) -> str | None:
    """What does not hold in the history of a seed; ``None`` if everything does."""
    history = InventoryHistory(seed, trace)
    try:
        history.run()
    except Violation as violation:
        return str(violation)
    return None
