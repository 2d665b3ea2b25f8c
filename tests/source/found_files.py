"""A directory, a state location and a checkpoint that live in memory: what a stream of files lives on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from filesink.source.discovery.discovery import Discovery, Pace
from filesink.source.discovery.log import DiscoveryLog
from filesink.source.files import SourceFile
from filesink.source.streams import FoundFiles, Limit, Offset
from filesink.storage.api import Store
from filesink.storage.faulty import FaultyStore, Plan
from filesink.storage.memory import MemoryFiles, MemoryStore
from tests.fakes import CountingIds, SettableClock

ROOT = "/in"


@dataclass
class Checkpoint:
    """What Spark would keep: the offsets of each batch, and how many batches are done."""

    offsets: list[tuple[Offset, Offset]] = field(default_factory=list)
    done: int = 0
    read: list[list[str]] = field(default_factory=list)


@dataclass
class Place:
    """Files by path, with their times; the state location; clock and ids."""

    files: dict[str, int] = field(default_factory=dict)
    state: MemoryFiles = field(default_factory=MemoryFiles)
    clock: SettableClock = field(default_factory=SettableClock)
    ids: CountingIds = field(default_factory=CountingIds)
    listings: int = 0

    def enumerate_files(self) -> Iterator[SourceFile]:
        """All files, as a listing has them."""
        self.listings += 1
        for path, mtime in list(self.files.items()):
            yield SourceFile(f"{ROOT}/{path}", 10, mtime)

    def log(self, plan: Plan | None = None, **limits: int) -> DiscoveryLog:
        """The log as a new process sees it, not yet opened."""
        store: Store = MemoryStore(self.state)
        if plan is not None:
            store = FaultyStore(store, plan)
        return DiscoveryLog(store, ids=self.ids, **limits)

    def stream(self, plan: Plan | None = None, *, pace: Pace | None = None, **limits: int) -> FoundFiles:
        """The stream of a new process."""
        log = self.log(plan, **limits)
        discovery = Discovery(log, self.enumerate_files, clock=self.clock, pace=pace)
        return FoundFiles(discovery, open_log=partial(log.open, [ROOT]))


def run(
    checkpoint: Checkpoint,
    stream: FoundFiles,
    *,
    limit: Limit | None = None,
    most: int = 1_000,
    before_commit: Callable[[], None] = lambda: None,
) -> int:
    """Run batches as Spark does, until nothing is new; returns how many.

    Args:
        checkpoint: is changed.
        stream: of this process.
        limit: of a batch.
        most: batches.
        before_commit: called when a batch was read, before it is done.
    """
    for count in range(most):
        if len(checkpoint.offsets) == checkpoint.done:
            start = checkpoint.offsets[-1][1] if checkpoint.offsets else stream.initial()
            end = stream.latest(start, limit or Limit())
            if end == start:
                return count
            checkpoint.offsets.append((start, end))
        paths = [file.path for file in stream.files(*checkpoint.offsets[-1])]
        if len(checkpoint.read) < len(checkpoint.offsets):
            checkpoint.read.append(paths)
        assert checkpoint.read[-1] == paths  # a replay reads the same
        before_commit()
        checkpoint.done += 1
        stream.finish(checkpoint.offsets[-1][1])
    return most


def all_read(checkpoint: Checkpoint) -> list[str]:
    """The paths of all batches that are done."""
    return [path for batch in checkpoint.read[: checkpoint.done] for path in batch]
