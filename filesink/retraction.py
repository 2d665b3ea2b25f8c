"""Takes back a decided epoch whose bytes are gone, so that its rows can be written once more.

Rules:
1. What the epoch has made goes first, its hidden names before the visible ones, and its record last: dying
   in between leaves an epoch that can be taken back again.
2. An epoch that has begun to remove what its files replace is not taken back: rows of earlier epochs may
   be in its files only.
3. A micro-batch is taken back only if its own checkpoint will replay it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from filesink.committables import Committable, DiscardFile, HeldFile, PendingFile, ReplacedFile
from filesink.epoch_record import EpochRecord, MicroBatch
from filesink.errors import IdentityError
from filesink.gathering import states_of
from filesink.ledger import Ledger
from filesink.naming import join, name_of, parent, parse_ours
from filesink.storage.staged import HiddenFile
from filesink.transactions import forget

if TYPE_CHECKING:
    from filesink.file_tiers import FileTiers
    from filesink.storage.api import Store


class Retraction:
    """Takes back epochs of one sink.

    Args:
        tiers: the sink.
        store: where its files are.
        check_replay: raises unless a micro-batch will be replayed.
    """

    def __init__(self, tiers: FileTiers, store: Store, *, check_replay: Callable[[MicroBatch], None]) -> None:
        self._tiers = tiers
        self._store = store
        self._check_replay = check_replay

    def take_back(self, ledger: Ledger, record: EpochRecord) -> int:
        """Take back ``record``, the newest of ``ledger``; return its slot.

        Raises:
            ConfigError, IdentityError: nothing was taken back, since its rows would not come again.
        """
        if isinstance(record.cause, MicroBatch):
            self._check_replay(record.cause)
        self._check_removed(ledger, record)
        committables = record.committables.decode(self._tiers.committable_codec)
        files = [file for file in committables if isinstance(file, PendingFile)]
        # A publication that was answered with an error may yet be done: not without what it publishes.
        for file in files:
            if _is_new(file, record.slot):
                self._store.discard(file.staged.path)
        published = [file for file in files if self._store.is_published(file.staged, file.target)]
        directories = sorted({parent(file.target) for file in files})
        for file in published:
            self._hide_again(file, record.slot)
        self._store.sync_directories(directories)
        for file in published:
            self._store.delete(file.target)
        # Else a power cut could bring back files whose record is gone.
        self._store.sync_directories(directories)
        forget(record, ledger)
        ledger.retract(record.slot)
        return record.slot

    def removed(self, ledger: Ledger, record: EpochRecord) -> list[str]:
        """Files of earlier epochs that are gone, and whose rows may be in a file of this epoch."""
        committables = record.committables.decode(self._tiers.committable_codec)
        discards = {file.path for file in committables if isinstance(file, DiscardFile)}
        files = [file for file in committables if isinstance(file, PendingFile)]
        # A merge stays in its bucket; where no file is left, nothing can be lost by taking back.
        buckets = {file.bucket for file in files if not self._store.is_lost(file.staged, file.target)}
        merged = [
            held.staged.path
            for held in self._held_before(ledger, record)
            if held.staged.path in discards and held.bucket in buckets and self._store.is_gone(held.staged)
        ]
        return sorted([*replaced_and_gone(self._store, committables), *merged])

    def _check_removed(self, ledger: Ledger, record: EpochRecord) -> None:
        """Raise if rows of earlier epochs may be nowhere but in files that taking back removes."""
        if gone := self.removed(ledger, record):
            raise IdentityError(
                f"epoch {record.slot} has begun to remove what its files replace ('{gone[0]}' is gone): rows "
                "of earlier epochs may be in its files only, so it cannot be taken back, and nothing was. "
                "Restore the lost files, or use lost='accept', which gives up their rows alone. An overwrite "
                "is to be written again after that",
                code="NO_REPLAY",
            )

    def _held_before(self, ledger: Ledger, record: EpochRecord) -> list[HeldFile]:
        """The state that the epoch started from, and that holds again when it is taken back."""
        before = ledger.read(record.slot - 1) if record.slot else None
        states = {} if before is None else states_of(self._tiers, before.states)
        return [held for values in states.values() for held in values]

    def _hide_again(self, file: PendingFile, slot: int) -> None:
        """Give a file that was held since an earlier epoch, whose state still names it, that name back."""
        # An object was copied, and is still held: else nothing is taken back, see ``_check_removed``.
        if not _is_new(file, slot) and isinstance(file.staged, HiddenFile):
            self._store.publish(replace(file.staged, path=file.target), file.staged.path)


def _is_new(file: PendingFile, slot: int) -> bool:
    """Whether the epoch of ``slot`` has made it: its rows will be written again."""
    name = parse_ours(name_of(file.staged.path))
    return name is not None and name.slot == slot


def replaced_and_gone(store: Store, committables: Sequence[Committable]) -> set[str]:
    """Files that the epoch replaces and that are not there any more."""
    replaced = {file.path for file in committables if isinstance(file, ReplacedFile)}
    directories = {parent(path) for path in replaced}
    there = {join(path, entry.name) for path in directories for entry in store.list(path)}
    return replaced - there
