"""What no reader needs any more: entries that are folded, segments and marks that are superseded.

Rules:
1. Nothing goes before the mark that makes it needless is durable.
2. What a mark names stays an hour after the next mark has come, for readers who have begun with it; what the
   two newest name stays in any case.
3. A segment made for a mark that is still to come is somebody's work. One made for a number that is taken is
   that of a fold that has lost.
4. The newest sixteen marks stay, however old: a driver that was away for some minutes looks for the number
   after the one it knows, and must find it, whatever the clocks of others say. The first one stays for ever:
   it says that the path has an inventory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from filesink.durations import has_passed
from filesink.errors import StateCorruptError, StateError
from filesink.inventory.mark import Mark
from filesink.inventory.names import DIRECTORY, Listing, entry_path, mark_path, segment_path
from filesink.ledger.sweep import Leftover
from filesink.ports import Clock
from filesink.storage.api import Store

_GRACE_MS: Final = 3_600_000
_NEWEST: Final = 2  # marks whose segments stay, however old
_MARKS: Final = 16  # marks that stay, however old


class Sweeper:
    """Sweeps the inventory of one base path.

    Args:
        store: where it lives.
        clock: says which marks are old.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._marks: dict[int, Mark] = {}  # which were read; they do not change

    def sweep(self) -> None:
        """Remove what is needless. Called after a fold; may be interrupted anywhere.

        Raises:
            StorageError: something is left, for the next fold.
            StateCorruptError: the newest mark is damaged.
        """
        listing = Listing.of(self._store.list(DIRECTORY))
        if not listing.marks:
            return
        # The newest may be that of a driver which died before its name was durable.
        self._store.sync_directories([DIRECTORY])
        newest = self._mark(listing.marks[-1])
        needed = list(self._needed(listing.marks))
        named = {segment.name for mark in needed for segment in mark.segments}
        dead = [entry_path(version) for version in listing.entries if version <= newest.version]
        dead += [
            segment_path(name)
            for number, name in listing.segments
            if number <= newest.number and name not in named
        ]
        self._store.runner.run(self._store.delete, dead)
        for leftover in unfinished(listing, newest.version):
            self._store.discard(leftover.path)
        first_needed = min(mark.number for mark in needed)
        for number in listing.marks[:-_MARKS]:
            if 0 < number < first_needed:
                self._store.delete(mark_path(number))
                self._marks.pop(number, None)
        self._store.sync_directories([DIRECTORY])

    def _needed(self, numbers: Sequence[int]) -> Iterator[Mark]:
        """Marks that readers may have begun with, the newest first; see rule 2."""
        now_ms = self._clock.now_ms()
        after: Mark | None = None
        for age, number in enumerate(reversed(numbers)):
            if after is not None and age >= _NEWEST and has_passed(after.folded_ms, now_ms, _GRACE_MS):
                return
            try:
                after = self._mark(number)
            except StateError:
                if after is None:
                    raise
                continue  # nobody can have begun with it
            yield after

    def _mark(self, number: int) -> Mark:
        if number not in self._marks:
            path = mark_path(number)
            data = self._store.read(path)
            if data is None:
                raise StateCorruptError(f"{path} vanished while it was being read", code="VANISHED")
            self._marks[number] = Mark.from_bytes(data, where=path)
        return self._marks[number]


def unfinished(listing: Listing, version: int) -> Iterator[Leftover]:
    """What crashes have left of files that were being put, and that count no more at ``version``."""
    for entry, target in listing.hidden:
        if listing.is_settled(target, version=version):
            path = f"{DIRECTORY}/{entry.name}"
            yield Leftover(path=path, size=entry.size, reason=f"{target} is there, or not needed any more")


def dead(store: Store, oldest: int | None) -> Iterator[Leftover]:
    """What crashes have left of files that were being put: not needed any more, or from before ``oldest``.

    Args:
        store: where the inventory lives.
        oldest: milliseconds since 1970 UTC, by the clock of the store; ``None`` where age tells nothing.
    """
    listing = Listing.of(store.list(DIRECTORY))
    if not listing.hidden:
        return
    version = max([_folded_to(store, listing), *listing.entries])
    yield from unfinished(listing, version)
    for entry, target in listing.hidden:
        old = oldest is not None and entry.mtime_ms < oldest
        if old and not listing.is_settled(target, version=version):
            path = f"{DIRECTORY}/{entry.name}"
            yield Leftover(path=path, size=entry.size, reason="it has not changed for a long time")


def _folded_to(store: Store, listing: Listing) -> int:
    """The version of the newest mark; 0 where it cannot be told, so that nothing is taken for needless."""
    path = mark_path(listing.marks[-1]) if listing.marks else ""
    data = store.read(path) if path else None
    return 0 if data is None else Mark.from_bytes(data, where=path).version
