"""Takes back a decided epoch whose bytes are gone, so that its rows can be written once more.

Rules:
1. What the epoch has made goes first, its hidden names before the visible ones. Then an epoch of its own
   undoes it: dying before leaves an epoch that can be taken back again. Neither slot nor names are used a
   second time, so what a slow server does late meets nobody's.
2. An epoch that may have begun to remove what its files replace is not taken back: rows of earlier epochs
   may be in its files only. Finished files go when none of its own has a hidden name any more; after that
   no look tells, since a server may carry a removal out late.
3. A micro-batch is taken back only if its own checkpoint will replay it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from filesink.committables import Committable, DiscardFile, HeldFile, PendingFile, ReplacedFile
from filesink.epoch_record import EMPTY, EpochRecord, MicroBatch, Section, TakenBack
from filesink.errors import IdentityError
from filesink.gathering import states_of
from filesink.ledger import COMPACTION, Ledger
from filesink.naming import join, name_of, parent, parse_hidden, parse_ours
from filesink.storage.staged import HiddenFile, Staged
from filesink.task import encode_states
from filesink.transactions import remembered

if TYPE_CHECKING:
    from filesink.file_tiers import FileTiers
    from filesink.ports import Ports
    from filesink.storage.api import Store


class Retraction:
    """Takes back epochs of one sink.

    Args:
        tiers: the sink.
        store: where its files are.
        ports: of the driver that does it.
        check_replay: raises unless a micro-batch will be replayed.
    """

    def __init__(
        self, tiers: FileTiers, store: Store, ports: Ports, *, check_replay: Callable[[MicroBatch], None]
    ) -> None:
        self._tiers = tiers
        self._store = store
        self._ports = ports
        self._check_replay = check_replay

    def take_back(self, ledger: Ledger, record: EpochRecord) -> int:
        """Take back ``record``, the newest of ``ledger``; return its slot.

        Raises:
            ConfigError, IdentityError: nothing was taken back, since its rows would not come again.
            ConcurrentDriverError: a query goes on with the chain.
        """
        if isinstance(record.cause, MicroBatch):
            self._check_replay(record.cause)
        self._check_removed(ledger, record)
        committables = record.committables.decode(self._tiers.committable_codec)
        files = [file for file in committables if isinstance(file, PendingFile)]
        moved = self._moved(ledger, record, committables)
        self._store.sync_directories(sorted({parent(path) for path in moved}))
        # A publication that was answered with an error may yet be done: not without what it publishes.
        made = [file.staged.path for file in files if _is_new(file, record.slot)]
        for path in (*made, *moved):
            self._store.discard(path)
        directories = sorted({parent(file.target) for file in files})
        for file in files:
            if self._store.is_published(file.staged, file.target):
                self._store.delete(file.target)
        # Else a power cut could bring back files of an epoch that is undone.
        self._store.sync_directories(directories)
        copy = remembered(record, ledger)
        if copy is not None:
            self._undo(*copy, {})
        self._undo(ledger, record, moved)
        return record.slot

    def _moved(
        self, ledger: Ledger, record: EpochRecord, committables: Sequence[Committable]
    ) -> dict[str, HiddenFile]:
        """What is held again, by the name it had, under one that no call of the epoch's drivers is for.

        An object has been copied, and is still held: else nothing is taken back, see ``_check_removed``.
        """
        targets = {file.staged.path: file.target for file in committables if isinstance(file, PendingFile)}
        known = targets.keys() | {file.path for file in committables if isinstance(file, DiscardFile)}
        moved: dict[str, HiddenFile] = {}
        for held in self._held_before(ledger, record):
            old, new = held.staged, _moved_to(held.staged, record.slot)
            if old.path not in known or new is None or not isinstance(old, HiddenFile):
                continue
            if self._store.is_gone(new):  # else a call that died has got so far
                target = targets.get(old.path, "")
                if not self._store.is_gone(old):
                    self._store.publish(old, new.path)
                elif target and self._store.is_published(old, target):
                    self._store.publish(replace(old, path=target), new.path)
                else:
                    continue  # lost
            moved[old.path] = new
        return moved

    def _is_gone(self, held: HeldFile, slot: int) -> bool:
        moved = _moved_to(held.staged, slot)
        return self._store.is_gone(held.staged) and (moved is None or self._store.is_gone(moved))

    def _undo(self, ledger: Ledger, record: EpochRecord, moved: Mapping[str, HiddenFile]) -> None:
        """Decide that ``record``, the newest, is void, and that the state before it holds again."""
        if ledger.sink_id == COMPACTION:
            ledger.retract(record.slot)
            return
        before = ledger.read(record.slot - 1) if record.slot else None
        states = {} if before is None else states_of(self._tiers, before.states)
        held = {
            subtask: [replace(one, staged=moved.get(one.staged.path, one.staged)) for one in values]
            for subtask, values in states.items()
        }
        following = EpochRecord(
            slot=record.slot + 1,
            nonce=self._ports.ids.uuid(),
            sink_id=record.sink_id,
            cause=TakenBack(slot=record.slot),
            last_batch=None if before is None else before.last_batch,
            decided_ms=self._ports.clock.now_ms(),
            rows=0,
            committables=Section.of(self._tiers.committable_codec, []),
            waiting=EMPTY if before is None else before.waiting,
            schema=EMPTY if before is None else before.schema,
            states={subtask: encode_states(self._tiers, values) for subtask, values in held.items()},
        )
        ledger.go_on_with(following)

    def removed(self, ledger: Ledger, record: EpochRecord) -> list[str]:
        """Files of earlier epochs that are gone or going, and whose rows may be in a file of this epoch."""
        committables = record.committables.decode(self._tiers.committable_codec)
        discards = {file.path for file in committables if isinstance(file, DiscardFile)}
        files = [file for file in committables if isinstance(file, PendingFile)]
        # A merge stays in its bucket; where no file is left, nothing can be lost by taking back.
        buckets = {file.bucket for file in files if not self._store.is_lost(file.staged, file.target)}
        merged = [
            held.staged.path
            for held in self._held_before(ledger, record)
            if held.staged.path in discards and held.bucket in buckets and self._is_gone(held, record.slot)
        ]
        begun = buckets and all(self._store.is_gone(file.staged) for file in files)
        replaced = _replaced(committables) if begun else replaced_and_gone(self._store, committables)
        return sorted([*replaced, *merged])

    def _check_removed(self, ledger: Ledger, record: EpochRecord) -> None:
        """Raise if rows of earlier epochs may be nowhere but in files that taking back removes."""
        if gone := self.removed(ledger, record):
            raise IdentityError(
                f"epoch {record.slot} has begun to remove what its files replace ('{gone[0]}' is gone, or "
                "may be going): rows of earlier epochs may be in its files only, so it cannot be taken back, "
                "and nothing was. Restore the lost files, or use lost='accept', which gives up their rows "
                "alone. An overwrite is to be written again after that",
                code="NO_REPLAY",
            )

    def _held_before(self, ledger: Ledger, record: EpochRecord) -> list[HeldFile]:
        """The state that the epoch started from, and that holds again when it is taken back."""
        before = ledger.read(record.slot - 1) if record.slot else None
        states = {} if before is None else states_of(self._tiers, before.states)
        return [held for values in states.values() for held in values]


def _moved_to(staged: Staged, slot: int) -> HiddenFile | None:
    """What ``staged`` becomes when the epoch of ``slot`` is taken back; of any call for it."""
    name = parse_hidden(name_of(staged.path))
    if name is None or not isinstance(staged, HiddenFile):
        return None
    return replace(staged, path=join(parent(staged.path), str(replace(name, slot=slot + 1))))


def _is_new(file: PendingFile, slot: int) -> bool:
    """Whether the epoch of ``slot`` has made it: its rows will be written again."""
    name = parse_ours(name_of(file.staged.path))
    return name is not None and name.slot == slot


def replaced_and_gone(store: Store, committables: Sequence[Committable]) -> set[str]:
    """Files that the epoch replaces and that are not there any more."""
    replaced = _replaced(committables)
    directories = {parent(path) for path in replaced}
    there = {join(path, entry.name) for path in directories for entry in store.list(path)}
    return replaced - there


def _replaced(committables: Sequence[Committable]) -> set[str]:
    return {file.path for file in committables if isinstance(file, ReplacedFile)}
