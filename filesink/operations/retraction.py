"""Takes back a decided epoch whose bytes are gone, so that its rows can be written once more.

A new epoch says so. It is completed as any other: by the first driver that comes, again if need be.

Rules:
1. Nothing is removed before the new epoch is decided. Until then the old one may still be completed.
2. Neither slot nor names are used a second time: what is held again is copied. So a request of the old
   epoch that a server carries out late meets nobody's files.
3. An epoch that may have begun to remove what its files replace is not taken back: rows of earlier epochs
   may be in its files only. It begins to remove finished files when none of its own has a hidden name any
   more. After that looking does not help, since a server may carry out a removal late.
4. A micro-batch is taken back only if its own checkpoint will replay it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from filesink.commit.task import encode_states
from filesink.commit.task_results import states_of
from filesink.errors import ConcurrentDriverError, IdentityError, SecurityError, StagedDataLost, StorageError
from filesink.ledger.head import Head
from filesink.ledger.identity import queries_of
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite, EpochRecord, MicroBatch, Section, TakenBack
from filesink.naming import join, name_of, parent, parse_hidden
from filesink.operations.sink_ledgers import go_on_with
from filesink.parts.committables import (
    Committable,
    CommittableCodec,
    DiscardFile,
    HeldFile,
    PendingFile,
    ReplacedFile,
    UndoneFile,
)
from filesink.storage.api import Store
from filesink.storage.staged import HiddenFile, Staged

if TYPE_CHECKING:
    from filesink.file_sink.tiers import FileTiers
    from filesink.ports import Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class _Voided:
    """An epoch that is taken back.

    Attributes:
        record: of the epoch.
        before: the record whose state holds again; ``None`` if there is none.
        states: that state.
        copies: of files held in it, by the path they had.
    """

    record: EpochRecord
    before: EpochRecord | None
    states: Mapping[int, Sequence[HeldFile]]
    copies: Mapping[str, Staged]


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

    def decide(self, ledger: Ledger, record: EpochRecord) -> None:
        """Decide that ``record``, the newest of ``ledger``, is void, in an epoch that is not completed here.

        Raises:
            ConfigError, IdentityError: ``record`` stays, since its rows would not come again.
            ConcurrentDriverError: a query is writing to the chain.
        """
        if isinstance(record.cause, MicroBatch):
            self._check_replay(record.cause)
        # The records of an open chain have no state in common.
        before = ledger.read(record.slot - 1) if record.slot and not ledger.is_open else None
        states = {} if before is None else states_of(self._tiers, before.states)
        committables = record.committables.decode(self._tiers.committable_codec)
        held = [one for values in states.values() for one in values]
        copies = self._copied(held, committables, slot=record.slot + 1)
        taken_over = taken_over_by(record, ledger)
        own = [one for one in committables if not _is_of(one, taken_over)]
        if gone := self._removed(held, own, copies):
            with suppress(StorageError):  # they are swept
                for copy in copies.values():
                    self._store.discard(copy.path)
            raise _has_begun_to_remove(record, gone[0])
        self._store.sync()
        voided = _Voided(record=record, before=before, states=states, copies=copies)
        following = self._following(voided, ledger)
        if ledger.history.is_complete(record):  # while files were copied
            raise ConcurrentDriverError(
                f"epoch {record.slot} of sink '{record.sink_id}' has been completed meanwhile, by a query or "
                "by a server that was late; nothing was taken back. Stop the query before recover()",
                code="CONCURRENT_DRIVER",
            )
        go_on_with(following, ledger)

    def _following(self, voided: _Voided, ledger: Ledger) -> EpochRecord:
        """The record that undoes the epoch: the state before it holds again, with the copies in it."""
        record, before = voided.record, voided.before
        sections = self._held_again(voided)
        writer = record.cause.writer if isinstance(record.cause, BatchWrite) else ""
        following = EpochRecord(
            committables=self._undoing(voided, ledger),
            slot=record.slot + 1,
            nonce=self._ports.ids.uuid(),
            sink_id=record.sink_id,
            cause=TakenBack(slot=record.slot, writer=writer),
            last_batch=None,
            decided_ms=self._ports.clock.now_ms(),
            rows=0,
            states={subtask: section for subtask, section in sections.items() if section.data},
        )
        if before is None:
            return following
        return replace(
            following,
            last_batch=before.last_batch,
            waiting=before.waiting,
            schema=before.schema,
            queries=queries_of(before.cause, Head(record=before, complete=True), ledger),
        )

    def _held_again(self, voided: _Voided) -> dict[int, Section]:
        """The states before the epoch, with the copies in place of what was copied."""
        copies = voided.copies
        kept = {
            subtask: [replace(one, staged=copies.get(one.staged.path, one.staged)) for one in values]
            for subtask, values in voided.states.items()
        }
        return {subtask: encode_states(self._tiers, values) for subtask, values in kept.items()}

    def _undoing(self, voided: _Voided, ledger: Ledger) -> Section:
        """The committables that undo the epoch: its files go, and so does everything that was copied."""
        codec = self._tiers.committable_codec
        committables = voided.record.committables.decode(codec)
        # A file that could not be copied does not belong to the epoch: somebody may put it back in its place.
        lost = {one.staged.path for values in voided.states.values() for one in values} - voided.copies.keys()
        undone: list[Committable] = [
            UndoneFile(target=file.target, staged=file.staged)
            for file in committables
            if isinstance(file, PendingFile) and file.staged.path not in lost
        ]
        left = ledger.history.left_before(voided.record.slot)
        kept_on = left.decode(codec) if left.data else []
        return Section.of(codec, [*undone, *(DiscardFile(path=path) for path in voided.copies), *kept_on])

    def _copied(
        self, held: Sequence[HeldFile], committables: Sequence[Committable], *, slot: int
    ) -> dict[str, Staged]:
        """Copies, by old name, of files held before the epoch that are still there, published or not."""
        published = {file.staged.path: file.target for file in committables if isinstance(file, PendingFile)}
        known = published.keys() | {file.path for file in committables if isinstance(file, DiscardFile)}
        copies: dict[str, Staged] = {}
        for staged in (one.staged for one in held if one.staged.path in known):
            sources = [staged]
            if isinstance(staged, HiddenFile) and staged.path in published:
                sources.append(replace(staged, path=published[staged.path]))
            for source in sources:
                try:
                    copies[staged.path] = self._store.concat([source], self._new(staged, slot), target=None)
                    break
                except StagedDataLost:
                    continue
        return copies

    def _new(self, held: Staged, slot: int) -> str:
        """A new name for a copy, which no earlier call can refer to."""
        name = parse_hidden(name_of(held.path))
        if name is None:
            raise SecurityError(f"'{held.path}' is not a name of ours", code="FOREIGN_FILE")
        return join(parent(held.path), str(replace(name, slot=slot, attempt=self._ports.ids.uuid())))

    def _removed(
        self, held: Sequence[HeldFile], committables: Sequence[Committable], copies: Collection[str]
    ) -> list[str]:
        """Files of earlier epochs that are or will be gone, and whose rows may be in a file of this epoch."""
        discards = {file.path for file in committables if isinstance(file, DiscardFile)}
        files = [file for file in committables if isinstance(file, PendingFile)]
        # A merge stays in its bucket; in a bucket without any file left, taking back can lose nothing.
        buckets = {file.bucket for file in files if not self._store.is_lost(file.staged, file.target)}
        merged = {one.staged.path for one in held if one.bucket in buckets} & discards - set(copies)
        begun = buckets and all(self._store.is_gone(file.staged) for file in files)
        replaced = replaced_and_gone(self._store, committables) | (
            _removed_soon(committables) if begun else set()
        )
        return sorted(merged | replaced)


def taken_over_by(record: EpochRecord, ledger: Ledger) -> set[tuple[str, int, str]]:
    """The files that epochs before ``record`` have replaced, and that it has to remove for them."""
    left = ledger.history.left_before(record.slot)
    files = left.decode(CommittableCodec()) if left.data else []
    return {file.identity() for file in files if isinstance(file, ReplacedFile)}


def _is_of(file: Committable, taken_over: Collection[tuple[str, int, str]]) -> bool:
    return isinstance(file, ReplacedFile) and file.identity() in taken_over


def replaced_and_gone(store: Store, committables: Sequence[Committable]) -> set[str]:
    """Files that the epoch replaces and that are not there any more."""
    replaced = _replaced(committables)
    directories = {parent(path) for path in replaced}
    there = {join(path, entry.name) for path in directories for entry in store.list(path)}
    return replaced - there


def _has_begun_to_remove(record: EpochRecord, path: str) -> IdentityError:
    return IdentityError(
        f"epoch {record.slot} has begun to remove what its files replace ('{path}' is gone, or may be "
        "going): rows of earlier epochs may be in its files only, so it cannot be taken back, and nothing "
        "was. Restore the lost files, or use lost='accept', which gives up their rows alone. After that, "
        "write an overwrite again",
        code="NO_REPLAY",
    )


def _removed_soon(committables: Sequence[Committable]) -> set[str]:
    """Of the files that the epoch replaces, those that it removes itself: the others have a grace."""
    return {file.path for file in committables if isinstance(file, ReplacedFile) and not file.grace_ms}


def _replaced(committables: Sequence[Committable]) -> set[str]:
    return {file.path for file in committables if isinstance(file, ReplacedFile)}
