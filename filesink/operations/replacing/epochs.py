"""An epoch of an operator's: some live files go, and others may come in their place.

    choose    which files, by inventory and ledgers; touches nothing, and is the plan that people see
    make      the new files, hidden
    decide, publish, remove, announce, complete: as any epoch, in the chain of the writes that replace files

Rules:
1. Only files that are live in the inventory are removed, and with them what they stand for: inputs of an
   offline compaction that stay for their readers. What others publish meanwhile stays, and so does a
   stranger's file.
2. A file of an epoch that is decided and not complete stays, too: the driver that completes that epoch looks
   for it. The ledgers are read after the inventory, so none is missed.
3. Of two at a time one finds the slot taken: it raises, and nothing of it was visible. Who dies leaves
   nothing, or a decided epoch that the next operation, or ``recover``, completes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.commit.delete_permission import check_removal
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replaced_files import unfinished
from filesink.commit.replay import EpochOptions
from filesink.errors import StorageError
from filesink.file_sink.tiers import FileTiers
from filesink.inventory.chains import at_work, superseded
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.record import Operation
from filesink.ledger.sweep import visible
from filesink.metastore.partition_committer import DroppingCommitter, PartitionCommitter
from filesink.naming import name_of, parent
from filesink.parts.committables import Committable, HeldFile, PendingFile, ReplacedFile
from filesink.parts.stages.verify import VerifyStage
from filesink.ports import Clock, Ports
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.live_files import LiveFile
from filesink.sink_directory.site import Site
from filesink.sink_directory.snapshot import Snapshot
from filesink.storage.api import Entry, Kind, Store
from filesink.storage.retrying import RetryingStore

#: Makes a hidden file in place of one, in the store it is given; ``None`` if nothing comes in its place.
Make = Callable[[EpochContext, Store, LiveFile], PendingFile | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a path holds when an operation looks.

    Attributes:
        directory: the path.
        snapshot: its newest version.
        busy: names of files of epochs that are decided and not complete.
        store: where they are.
    """

    directory: SinkDirectory
    snapshot: Snapshot
    busy: Collection[str]
    store: Store

    def is_busy(self, file: LiveFile) -> bool:
        """Whether a driver may still look for ``file``."""
        return name_of(file.path) in self.busy

    def is_replaced_since(self, path: str) -> bool:
        """Whether another epoch has replaced a file that was live, or is at it. Looks anew.

        Files go before the inventory says so: hence first what is decided, then what is live.
        """
        is_going = any(path in one.replaced for one in at_work(self.store).values())
        return is_going or all(file.path != path for file in self.directory.snapshot().files)

    def entries(self, files: Sequence[LiveFile]) -> dict[str, Entry]:
        """What a listing of their directories has, by path."""
        return _entries(self.store, {file.bucket for file in files})

    def merged_into(self, files: Sequence[LiveFile]) -> list[str]:
        """Inputs of an offline compaction that stay beside ``files`` for their readers, and go with these.

        Whatever their grace: without what stands for them, they would be data again.
        """
        paths = _standing(self.store, {file.path for file in files})
        return sorted(paths & _entries(self.store, {parent(path) for path in paths}).keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an epoch does.

    Attributes:
        removed: files that are live, and shall not be.
        sources: files of which others are made, by ``make``.
    """

    removed: Sequence[LiveFile] = ()
    sources: Sequence[LiveFile] = ()
    make: Make = lambda _epoch, _store, _file: None


Choose = Callable[[Seen], Change]


def look(tiers: FileTiers, clock: Clock, base_path: str) -> Seen:
    """What the path of ``tiers`` holds now. Touches nothing.

    Raises:
        StateError: ``NO_INVENTORY``, ``ADOPTING``.
        StateCorruptError: the inventory is damaged, or the record of an epoch that is not complete. Other
            records are not asked for: the inventory has their files.
    """
    seen = _seen(tiers, clock, base_path)
    busy = {name_of(path) for one in at_work(seen.store).values() for path in one.paths}
    return Seen(directory=seen.directory, snapshot=seen.snapshot, busy=busy, store=seen.store)


def _seen(tiers: FileTiers, clock: Clock, base_path: str) -> Seen:
    store = RetryingStore(tiers.address(), clock)
    directory = SinkDirectory(_site=Site(base_path=base_path, store=store, clock=clock))
    return Seen(directory=directory, snapshot=directory.snapshot(), busy=(), store=store)


@dataclass(frozen=True, kw_only=True)
class Replacing(FileTiers):
    """A sink without input, whose one epoch replaces or removes files. Its other fields are those of a sink.

    Args:
        what: see ``filesink.ledger.record.Operation``.
        choose: says what is to be done, of what was seen when the epoch began.
        base_path: for messages.
    """

    what: str
    choose: Choose
    base_path: str

    def run(self, ports: Ports) -> Outcome[Committable] | None:
        """One epoch; ``None`` if there is nothing to do.

        Raises:
            ConfigError: ``NO_REMOVAL``; or what ``choose`` raises. Nothing was changed.
            ConcurrentDriverError: another operation, an overwrite or a compaction came first. Nothing
                was changed.
            FilesinkError: nothing was changed, or the epoch is decided and ``recover`` completes it.
        """
        store = self.address()
        store.prepare()
        check_removal(store, self.what)
        with closing(
            EpochLoop(self, self.open_ledger(EXCLUSIVE), ports=ports, options=EpochOptions())
        ) as loop:
            return loop.operate(Operation(what=self.what))

    def partition_committer(self) -> PartitionCommitter | None:
        """Partitions that have no file any more are dropped."""
        told = self.publishing
        return None if told is None else DroppingCommitter(told.commit, self._site)

    def pre_commit_stages(self) -> tuple[PreCommitStage[HeldFile, Committable], ...]:
        """Replace, then look at every new file."""
        return ReplaceChosen(self), VerifyStage(self.address())


def replacing(tiers: FileTiers, what: str, choose: Choose, *, base_path: str) -> Replacing:
    """``tiers`` as the sink of one operation."""
    return Replacing(
        address=tiers.address,
        plan=tiers.plan,
        publishing=tiers.publishing,
        skip=tiers.skip,
        reader_grace_ms=tiers.reader_grace_ms,
        history_ms=tiers.history_ms,
        what=what,
        choose=choose,
        base_path=base_path,
    )


class ReplaceChosen(PreCommitStage[HeldFile, Committable]):
    """Makes new files, and names those that go."""

    def __init__(self, tiers: Replacing) -> None:
        self._tiers = tiers
        self._store = tiers.address()
        self._change = Change()

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether anything is chosen, or an earlier epoch could not remove something."""
        del prepared
        seen = _seen(self._tiers, epoch.clock, self._tiers.base_path)
        # After the inventory: and durable, since what they say to be complete is relied upon.
        busy = unfinished(self._tiers.open_ledger, own=epoch.sink_id)
        self._change = self._tiers.choose(
            Seen(directory=seen.directory, snapshot=seen.snapshot, busy=busy, store=seen.store)
        )
        left = any(isinstance(file, ReplacedFile) and file.is_due(epoch.now_ms) for file in epoch.left)
        return bool(self._change.removed or self._change.sources or left)

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """See ``PreCommitStage.prepare``."""
        made = self._made(epoch)
        # What is left is carried along by itself, and what readers still have time for keeps its time.
        left = {file.path for file in epoch.left if isinstance(file, ReplacedFile)}
        replaced = [file for file in self._replaced() if file.path not in left]
        return Prepared([*prepared.committables, *made, *replaced], prepared.states)

    def _made(self, epoch: EpochContext) -> list[PendingFile]:
        change, made = self._change, list[PendingFile]()
        try:
            for source in change.sources:
                file = change.make(epoch, self._store, source)
                if file is not None:
                    made.append(file)
        except BaseException:  # nothing names them, and who calls again makes others
            with suppress(StorageError):  # what stays has a name of ours, and is swept
                for file in made:
                    self._store.discard(file.staged.path)
            raise
        self._store.sync()  # of the very store that has made them: it knows which are not durable yet
        return made

    def _replaced(self) -> list[ReplacedFile]:
        """Every file that is to be removed, as it is listed now; one that is gone is named all the same."""
        gone = {file.path: file.size for file in self._change.removed}
        paths = {*gone, *_standing(self._store, gone)}
        entries = _entries(self._store, {parent(path) for path in paths})
        found = {
            path: ReplacedFile(
                path=path,
                size=entries[path].size,
                version=entries[path].version,
                grace_ms=self._tiers.reader_grace_ms,
            )
            for path in paths
            if path in entries
        }
        lost = {path: ReplacedFile(path=path, size=size, version="") for path, size in gone.items()}
        return [one for _, one in sorted({**lost, **found}.items())]


def _standing(store: Store, gone: Collection[str]) -> set[str]:
    return {path for path, by in superseded(store).items() if not by.isdisjoint(gone)}


def _entries(store: Store, directories: Collection[str]) -> dict[str, Entry]:
    return {path: entry for path, entry in visible(store, sorted(directories)) if entry.kind is Kind.FILE}
