"""What is removed from the directory of a chain: old records, what crashes have left, copies taken back.

Rules:
1. A mark stands, durably, before a record that it voids goes; the newest mark stays.
2. The records of the last micro-batches stay: a replay needs them.
"""

from __future__ import annotations

from filesink.ledger.directory import Listing
from filesink.ledger.record import BatchWrite, EpochRecord, MicroBatch
from filesink.ledger.slots import Slots

KEEP_BATCHES = 100  # Spark's own default of spark.sql.streaming.minBatchesToRetain
_FOLD_EVERY = 25  # folding in steps keeps the cost of an epoch flat
_MOST_KEPT = 10  # times the micro-batches to keep: records of all kinds, where few are micro-batches


class Folding:
    """Keeps the directory of one chain small.

    Args:
        slots: of the chain.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._store = slots.store
        self._directory = slots.directory
        # Of slots whose record was written or read here: whether ``fold`` counts it. Records do not
        # change, and reading a hundred again at each fold is a pause where a store answers slowly.
        self._counted: dict[int, bool] = {}

    def note(self, record: EpochRecord) -> None:
        """``record`` was created here, so it need not be read."""
        self._counted[record.slot] = _counts(record)

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
        listing = self._directory.listing()
        self._counted = {slot: self._counted[slot] for slot in listing.records if slot in self._counted}
        mark = self._last_to_fold(listing, keep)
        if mark is not None:
            self._store.put_if_absent(self._directory.path_of(mark, "mark"), b"")
        self._delete_folded(self._directory.listing() if mark is not None else listing)

    def _last_to_fold(self, listing: Listing, keep: int) -> int | None:
        if len(listing.records) <= keep + _FOLD_EVERY:
            return None  # cheap: no record needs to be read
        seen, settled = 0, listing.settled()
        for kept, slot in enumerate(reversed(listing.records)):
            is_due = slot <= settled if self._directory.is_open else slot in listing.complete
            if is_due and (seen >= keep or kept >= keep * _MOST_KEPT):
                return slot
            seen += self._is_counted(slot)
        return None

    def _is_counted(self, slot: int) -> bool:
        if slot not in self._counted:
            self._counted[slot] = _counts(self._slots.require(slot))
        return self._counted[slot]

    def _delete_folded(self, listing: Listing) -> None:
        # A record may be deleted only below a mark that is durable; the newest mark stays.
        if not listing.marks:
            return
        dead = self._directory.folded(listing.marks[-1])
        if dead:
            # The mark may be that of a driver which died before its name was durable.
            self._directory.sync()
        for path in dead:
            self._store.delete(path)

    def sweep(self, newest: int) -> None:
        """Remove what crashes inside ``put_if_absent`` have left for slots up to ``newest``, durably.

        Nobody may write into this directory again, and so nobody would find what a power cut gave back.
        """
        if self._directory.is_open:  # others may be at work for any slot that is kept
            newest = self._directory.listing().folded_to()
        dead = [path for path, slot, _ in self._directory.unfinished() if slot <= newest]
        for path in dead:
            self._store.discard(path)
        if dead:
            self._directory.sync()

    def retract(self, slot: int) -> None:
        """Remove the copy of a record that is taken back, durably. Its slot will not be used again.

        That there is none is no error.
        """
        if not self._directory.is_there():
            return  # a copy that was never made
        self._store.delete(self._directory.path_of(slot, "complete"))
        self._store.delete(self._directory.path_of(slot, "record"))
        # Else a power cut could bring back the copy of an epoch whose own record is gone.
        self._directory.sync()
        self._counted.pop(slot, None)


def _counts(record: EpochRecord) -> bool:
    """Whether a record is one of those that must be kept; batch writes only where no stream is."""
    return isinstance(record.cause, MicroBatch) or (
        record.last_batch is None and isinstance(record.cause, BatchWrite)
    )
