"""The ledger: a durable chain of epoch records, and the three steps decide, publish, complete.

    _filesink/<sink id>/<slot>.record     created if absent: the point of no return of an epoch
                        <slot>.complete   the epoch's files are visible and announced; names its record
                        <slot>.mark       records up to this slot are folded away; void if written again

Rules:
1. Record k+1 is created only by a driver that has read record k and knows it complete. So at most
   one record is ever half done, and two drivers cannot fork the state. Above the newest mark no record
   is missing: a gap says that this is not the directory that was read, but an older copy, say, or what
   is below a mount point.
2. Nothing is ever replaced. Who finds a slot taken reads what stands there.
3. Folding creates the mark before it deletes a record. A record at or below the highest mark is
   void, whoever wrote it and whenever, so a driver that has won a slot looks for marks first.
4. An unreadable record is not an absent one: it stops the sink. So does a ``.complete`` without its record.
5. An *open* chain is that of batch writes which append: none needs what another has done, so each takes the
   first slot that is free, and several may be half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from filesink.errors import (
    CommitStateUnknown,
    ConcurrentDriverError,
    FilesinkError,
    StateCorruptError,
    StorageError,
)
from filesink.ledger.claims import Claims
from filesink.ledger.completion import Completion, End, completion_of
from filesink.ledger.directory import LedgerDirectory, Listing, ledger_ids, twins
from filesink.ledger.record import EMPTY, BatchWrite, EpochRecord, MicroBatch, Section, TakenBack
from filesink.naming import LEDGER_ROOT
from filesink.ports import Clock
from filesink.storage.api import PutResult, Store
from filesink.storage.retrying import RetryingStore

#: How the name of an open chain begins.
APPENDS = "appends"
#: The ledger that holds a copy of each record of offline compaction, in the slots of another chain.
COMPACTION = "compaction"

KEEP_BATCHES = 100  # Spark's own default of spark.sql.streaming.minBatchesToRetain
_FOLD_EVERY = 25  # folding in steps keeps the cost of an epoch flat
_MOST_KEPT = 10  # times the micro-batches to keep: records of all kinds, where few are micro-batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest record of a chain, and whether its epoch is complete.

    ``left``: committables of it that are still to be removed.
    """

    record: EpochRecord
    complete: bool
    left: Section = EMPTY

    @property
    def finished_slot(self) -> int:
        """The newest slot whose epoch is done, and not about to be undone; -1 if there is none."""
        if self.complete:
            return self.record.slot
        cause = self.record.cause
        return (cause.slot if isinstance(cause, TakenBack) else self.record.slot) - 1


class Ledger:
    """The chain of one sink.

    Args:
        store: where it lives.
        sink_id: the name of its directory below ``_filesink``.
        check: raises if a record, that would stand in or was read from a path, is not one that this sink
            could have decided. Asked before it is decided, and whenever it was read.

    Every method looks at the store; a driver that is alone on a sink needs none of them twice.
    """

    def __init__(
        self, store: Store, sink_id: str, *, check: Callable[[EpochRecord, str], None] | None = None
    ) -> None:
        self.sink_id = sink_id
        self._check = check or (lambda _record, _path: None)
        self._store = store
        self.directory = LedgerDirectory(store, sink_id)
        # Of slots whose record was written or read here: whether ``fold`` counts it. Records do not
        # change, and reading a hundred again at each fold is a pause where a store answers slowly.
        self._counted: dict[int, bool] = {}

    @property
    def is_open(self) -> bool:
        """Whether the records of this chain need nothing of each other, see rule 5."""
        return self.sink_id == APPENDS or self.sink_id.startswith(f"{APPENDS}-")

    def head(self) -> Head | None:
        """The newest record, or ``None`` for a new chain. For whoever goes on with the chain.

        Raises:
            StateCorruptError: records are missing, or one cannot be read.
        """
        return self._newest(self._unbroken())

    def newest(self) -> Head | None:
        """As ``head``, for whoever only wants to know how far the chain of another sink is."""
        return self._newest(self.directory.listing())

    def _newest(self, listing: Listing) -> Head | None:
        if not listing.records:
            if listing.marks:
                raise StateCorruptError(
                    f"{self.directory.path} has folded its records away but the newest is missing; "
                    "restore the directory from a backup",
                    code="NO_HEAD",
                )
            return None
        slot = listing.records[-1]
        # Their driver may have died between making a name and the sync of the directory. Whoever goes on
        # because of this record, or because it is complete, must find both again after a power cut.
        self.directory.sync()
        record = self._require(slot)
        if slot not in listing.complete:
            return Head(record=record, complete=False)
        return Head(record=record, complete=True, left=self._completion(record).left)

    def _completion(self, record: EpochRecord) -> Completion:
        """What the mark says that stands beside ``record``."""
        path = self.directory.path_of(record.slot, "complete")
        data = self._store.read(path)
        if data is None:
            raise _vanished(path)
        found = completion_of(record, data, where=path)
        if found.left.data:
            self._check(replace(record, committables=found.left), path)
        return found

    def with_patience(self, clock: Clock) -> Ledger:
        """The same chain, for a driver that waits where trying again may help; see ``RetryingStore``."""
        return Ledger(RetryingStore(self._store, clock), self.sink_id, check=self._check)

    def beside(self, sink_id: str) -> Ledger:
        """The chain of another sink below the same base path."""
        return Ledger(self._store, sink_id, check=self._check)

    def claims(self, name: str) -> Claims:
        """What stands for a ``txn_id`` below the same base path."""
        return Claims(self._store, name, check=self._check)

    def unfinished(self) -> list[EpochRecord]:
        """Every record whose epoch is decided and not done, oldest first; one at most but in an open chain.

        What takes another one back stands before all others, and that other is left out.

        Raises:
            StateCorruptError: see ``head``.
        """
        slots = self._at_work(self._unbroken())
        if slots:
            self.directory.sync()  # see ``_newest``
        records = [self._require(slot) for slot in slots]
        ends = [record for record in records if isinstance(record.cause, TakenBack)]
        undone = {record.cause.slot for record in ends if isinstance(record.cause, TakenBack)}
        return [*ends, *(one for one in records if one not in ends and one.slot not in undone)]

    def unfinished_record(self) -> EpochRecord | None:
        """The newest record if its epoch is not complete. Reads no record where there is none.

        If that takes another one back, the other: it is that one's files that come and go.
        """
        found = self.publishing()
        return found[-1] if found else None

    def publishing(self) -> list[EpochRecord]:
        """Records whose files come or go: those of every epoch that is decided and not done.

        For whoever looks at another sink's chain. Of one that is taken back it is the record that is undone.
        """
        records = [self._require(slot) for slot in self._at_work(self.directory.listing())]
        return [
            self._require(record.cause.slot) if isinstance(record.cause, TakenBack) else record
            for record in records
        ]

    def half_done(self) -> tuple[int, ...]:
        """Slots of ``unfinished``, by what stands in them. Reads no record."""
        return self._at_work(self.directory.listing())

    def _at_work(self, listing: Listing) -> tuple[int, ...]:
        """Slots that are decided and not done. In a chain the last only: those before it were taken back."""
        if self.is_open:
            return listing.unfinished()
        return tuple(slot for slot in listing.records[-1:] if slot not in listing.complete)

    def append(self, record: EpochRecord) -> EpochRecord:
        """Create ``record`` in the first free slot of an open chain; return it as it stands there.

        Raises:
            CommitStateUnknown, StorageError: see ``decide``.
            StateCorruptError: see ``head``.
        """
        while True:
            listing = self._unbroken()
            slot = max([listing.folded_to(), *listing.records[-1:]]) + 1
            while (placed := self._create(replace(record, slot=slot))) is None or (
                placed.nonce != record.nonce
            ):
                slot += 1
            if self._is_sure_to_count(placed):
                return placed

    def _is_sure_to_count(self, placed: EpochRecord) -> bool:
        """As ``counts``; whoever cannot tell must not take a record that stands for one that does not."""
        try:
            return self.counts(placed.slot)
        except FilesinkError as error:
            raise CommitStateUnknown(
                f"{self.directory.path_of(placed.slot, 'record')} stands, and whether it counts could not be "
                f"looked at ({error.message}). Nothing was deleted; call recover() later",
                code="DECIDE_UNKNOWN",
            ) from error

    def decide(self, record: EpochRecord) -> EpochRecord:
        """Create ``record`` in its slot; return the record that stands there now.

        It is the caller's own if the nonces are equal.

        Raises:
            CommitStateUnknown: not known whether it stands. Discard nothing.
            StorageError: it was not created.
        """
        standing = self._create(record)
        if standing is None:
            raise _vanished(self.directory.path_of(record.slot, "record"))
        return standing

    def _create(self, record: EpochRecord) -> EpochRecord | None:
        """As ``decide``; ``None`` if the slot was taken and what stood there has been folded away since."""
        path = self.directory.path_of(record.slot, "record")
        self._check(record, path)
        try:
            result = self._store.put_if_absent(path, record.to_bytes())
        except StorageError as error:
            # A lost reply looks like a failure: only the slot itself can tell.
            standing = self._reread(record.slot, error)
            if standing is None:
                raise
            return standing
        if result is PutResult.CREATED:
            self._counted[record.slot] = _counts(record)
            return record
        return self.read(record.slot)

    def go_on_with(self, record: EpochRecord) -> None:
        """Decide an epoch; for ``recover``, which does not wait for others.

        Raises:
            ConcurrentDriverError: a query goes on with the chain.
        """
        if self.is_open:
            self.append(record)
        elif self.decide(record).nonce != record.nonce:
            raise ConcurrentDriverError(
                f"a query of sink '{record.sink_id}' is running; stop it before recover()",
                code="CONCURRENT_DRIVER",
            )

    def read(self, slot: int) -> EpochRecord | None:
        """The record in ``slot``, or ``None``."""
        path = self.directory.path_of(slot, "record")
        data = self._store.read(path)
        if data is None:
            return None
        record = EpochRecord.from_bytes(data, where=path)
        if record.slot != slot or record.sink_id != self.sink_id:
            raise StateCorruptError(
                f"{path} is the record of slot {record.slot} of sink '{record.sink_id}'; it was copied "
                f"here. If '{self.directory.path}' is a copy, such as a backup, move it out of "
                f"'{LEDGER_ROOT}'; else restore it",
                code="FOREIGN",
            )
        self._check(record, path)
        return record

    def _reread(self, slot: int, failed: StorageError) -> EpochRecord | None:
        try:
            standing = self.read(slot)
            if standing is not None:
                # It may be the sync of its name that failed, and what follows must not outlive it.
                self.directory.sync()
        except StorageError as error:
            raise CommitStateUnknown(
                f"creating {self.directory.path_of(slot, 'record')} failed ({failed.message}), and making "
                f"sure that it stands did too ({error.message}). Nothing was deleted; restart later",
                code="DECIDE_UNKNOWN",
            ) from failed
        return standing

    def last_slot(self) -> int:
        """The newest slot that is decided; -1 for a new chain."""
        listing = self.directory.listing()
        return max([listing.folded_to(), *listing.records[-1:]])

    def is_void(self, slot: int) -> bool:
        """Whether ``slot`` has been folded away."""
        return self.directory.listing().has_folded(slot)

    def counts(self, slot: int) -> bool:
        """Whether the record that was just created in ``slot`` is not void. Asked by whoever has won it.

        Raises:
            StateCorruptError: ``GAP``, the record before it is not there. Publish nothing.
        """
        return not self._unbroken().has_folded(slot)

    def is_complete(self, record: EpochRecord) -> bool:
        """Whether the epoch of ``record`` is done. Asked when it cannot be published."""
        listing = self.directory.listing()
        if listing.has_folded(record.slot):
            return True
        return record.slot in listing.complete and self._completion(record).end is End.DONE

    def complete(self, record: EpochRecord, *, left: Section = EMPTY, end: End = End.DONE) -> None:
        """Mark the epoch of ``record`` as done, but for what is ``left`` to be removed by the next one."""
        mark = Completion(nonce=record.nonce, left=left, end=end)
        self._store.put_if_absent(self.directory.path_of(record.slot, "complete"), mark.to_bytes())

    def left_before(self, slot: int) -> Section:
        """What the epoch before ``slot`` could not remove, for one in ``slot`` that removes nothing."""
        before = None if self.is_open or not slot else self.read(slot - 1)
        if before is None or before.slot not in self.directory.listing().complete:
            return EMPTY
        return self._completion(before).left

    def find(self, query_id: str, batch_id: int) -> EpochRecord | None:
        """The record of a micro-batch, if it is still kept."""
        for record in self.newest_first():
            match record.cause:
                case MicroBatch(query_id=query, batch_id=batch) if (query, batch) == (query_id, batch_id):
                    return record
                case _:
                    continue
        return None

    def last_batch_of(self, query_id: str) -> MicroBatch | None:
        """The newest micro-batch of one query among the records that are kept."""
        for record in self.newest_first():
            if record.last_batch is not None and record.last_batch.query_id == query_id:
                return record.last_batch
        return None

    def newest_first(self) -> Iterator[EpochRecord]:
        """All records that are kept and were not taken back, the newest first."""
        undone: set[int] = set()
        for slot in reversed(self.directory.listing().records):
            if slot in undone:
                continue
            record = self._require(slot)
            if isinstance(record.cause, TakenBack):
                undone.add(record.cause.slot)
            yield record

    def has_folded(self) -> bool:
        """Whether records have been folded away, so that not all of the past is known."""
        return bool(self.directory.listing().marks)

    def neighbours(self) -> list[str]:
        """Ids of the other sinks that have a ledger below the same base path."""
        return [name for name in ledger_ids(self._store) if name != self.sink_id]

    def twins(self, sink_id: str) -> list[str]:
        """See ``ledger_directory.twins``."""
        return twins(self._store, sink_id)

    def fold(self, *, newest: int, keep: int = KEEP_BATCHES) -> None:
        """Fold old records away, every so often.

        Called after an epoch is complete. Keeps the records of at least the last ``keep``
        micro-batches; upkeep and finish epochs do not count, up to ten times as many.

        Args:
            newest: the slot just completed; ``0`` to look in any case.
            keep: micro-batches whose records must stay.
        """
        if newest % _FOLD_EVERY:
            return
        listing = self.directory.listing()
        self._counted = {slot: self._counted[slot] for slot in listing.records if slot in self._counted}
        mark = self._last_to_fold(listing, keep)
        if mark is not None:
            self._store.put_if_absent(self.directory.path_of(mark, "mark"), b"")
        self._delete_folded(self.directory.listing() if mark is not None else listing)

    def sweep(self, newest: int) -> None:
        """Remove what crashes inside ``put_if_absent`` have left for slots up to ``newest``, durably.

        Nobody may write into this directory again, and so nobody would find what a power cut gave back.
        """
        if self.is_open:  # others may be at work for any slot that is kept
            newest = self.directory.listing().folded_to()
        dead = [path for path, slot, _ in self.directory.unfinished() if slot <= newest]
        for path in dead:
            self._store.discard(path)
        if dead:
            self.directory.sync()

    def retract(self, slot: int) -> None:
        """Remove the copy of a record that is taken back, durably. Its slot will not be used again.

        That there is none is no error.
        """
        if self.sink_id not in ledger_ids(self._store):
            return  # a copy that was never made
        self._store.delete(self.directory.path_of(slot, "complete"))
        self._store.delete(self.directory.path_of(slot, "record"))
        # Else a power cut could bring back the copy of an epoch whose own record is gone.
        self.directory.sync()
        self._counted.pop(slot, None)

    def _last_to_fold(self, listing: Listing, keep: int) -> int | None:
        if len(listing.records) <= keep + _FOLD_EVERY:
            return None  # cheap: no record needs to be read
        seen, settled = 0, listing.settled()
        for kept, slot in enumerate(reversed(listing.records)):
            is_due = slot <= settled if self.is_open else slot in listing.complete
            if is_due and (seen >= keep or kept >= keep * _MOST_KEPT):
                return slot
            seen += self._is_counted(slot)
        return None

    def _is_counted(self, slot: int) -> bool:
        if slot not in self._counted:
            self._counted[slot] = _counts(self._require(slot))
        return self._counted[slot]

    def _delete_folded(self, listing: Listing) -> None:
        # A record may be deleted only below a mark that is durable; the newest mark stays.
        if not listing.marks:
            return
        dead = self.directory.folded(listing.marks[-1])
        if dead:
            # The mark may be that of a driver which died before its name was durable.
            self.directory.sync()
        for path in dead:
            self._store.delete(path)

    def _unbroken(self) -> Listing:
        """What is there, if nothing is missing."""
        listing = self.directory.listing()
        if self._is_whole(listing):
            return listing
        listing = self.directory.listing()  # a fold may have been at work, and its mark not seen yet
        if strays := listing.strays():
            path = self.directory.path_of(strays[0], "complete")
            raise StateCorruptError(
                f"{path} says that an epoch is done, and its record is not there: it was lost, or this file "
                "was put there by hand. Nothing was published or removed. Bring the directory back from a "
                "backup; only if no such epoch ever was, remove this file",
                code="NO_RECORD",
            )
        missing = None if self.sink_id == COMPACTION else listing.missing()
        if missing is not None:
            last = listing.records[-1]
            way_out = (
                ""
                if last in listing.complete
                else f", or remove {last:012d}.record, which is not complete, to go on from what is there"
            )
            raise StateCorruptError(
                f"{self.directory.path} has the record of slot {last}, but not that of slot {missing}: the "
                "base path was emptied, unmounted or replaced by an older copy, maybe while a driver was at "
                f"work. Nothing was published. Bring the directory back and start again{way_out}",
                code="GAP",
            )
        return listing

    def _is_whole(self, listing: Listing) -> bool:
        """Whether no record is missing; copies of offline compaction stand in some slots of another chain."""
        return not listing.strays() and (self.sink_id == COMPACTION or listing.missing() is None)

    def _require(self, slot: int) -> EpochRecord:
        record = self.read(slot)
        if record is None:
            raise _vanished(self.directory.path_of(slot, "record"))
        return record


def _vanished(path: str) -> StateCorruptError:
    return StateCorruptError(
        f"{path} vanished while it was being read; is another driver at work?", code="VANISHED"
    )


def _counts(record: EpochRecord) -> bool:
    """Whether a record is one of those that must be kept; batch writes only where no stream is."""
    return isinstance(record.cause, MicroBatch) or (
        record.last_batch is None and isinstance(record.cause, BatchWrite)
    )
