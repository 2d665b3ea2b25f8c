"""Looks at a chain. Of another sink's, damage is none of our business: that stops whoever goes on with it."""

from __future__ import annotations

from collections.abc import Iterator

from filesink.ledger.completion import End
from filesink.ledger.damage import unbroken
from filesink.ledger.directory import Listing
from filesink.ledger.head import Head, newest
from filesink.ledger.record import EMPTY, EpochRecord, MicroBatch, Section, TakenBack
from filesink.ledger.slots import Slots


class ChainHistory:
    """The records of one chain that are kept. Every method looks at the store.

    Args:
        slots: of the chain.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._directory = slots.directory

    def newest(self) -> Head | None:
        """As ``Ledger.head``, for whoever only wants to know how far the chain of another sink is."""
        return newest(self._slots, self._directory.listing())

    def newest_first(self) -> Iterator[EpochRecord]:
        """All records that are kept and were not taken back, the newest first."""
        undone: set[int] = set()
        for slot in reversed(self._directory.listing().records):
            if slot in undone:
                continue
            record = self._slots.require(slot)
            if isinstance(record.cause, TakenBack):
                undone.add(record.cause.slot)
            yield record

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

    def unfinished(self) -> list[EpochRecord]:
        """Every record whose epoch is decided and not done, oldest first; one at most but in an open chain.

        For whoever carries them through. What takes another one back stands before all others, and that
        other is left out.

        Raises:
            StateCorruptError: see ``Ledger.head``.
        """
        slots = self._at_work(unbroken(self._directory))
        if slots:
            self._directory.sync()  # see ``newest``
        records = [self._slots.require(slot) for slot in slots]
        ends = [record for record in records if isinstance(record.cause, TakenBack)]
        undone = {record.cause.slot for record in ends if isinstance(record.cause, TakenBack)}
        return [*ends, *(one for one in records if one not in ends and one.slot not in undone)]

    def publishing(self) -> list[EpochRecord]:
        """Records whose files come or go: those of every epoch that is decided and not done.

        For whoever looks at another sink's chain. Of one that is taken back it is the record that is undone.
        """
        records = [self._slots.require(slot) for slot in self._at_work(self._directory.listing())]
        return [
            self._slots.require(record.cause.slot) if isinstance(record.cause, TakenBack) else record
            for record in records
        ]

    def half_done(self) -> tuple[int, ...]:
        """Slots that are decided and not done, by what stands in them. Reads no record."""
        return self._at_work(self._directory.listing())

    def _at_work(self, listing: Listing) -> tuple[int, ...]:
        """Slots that are decided and not done. In a chain the last only: those before it were taken back."""
        if self._directory.is_open:
            return listing.unfinished()
        return tuple(slot for slot in listing.records[-1:] if slot not in listing.complete)

    def is_complete(self, record: EpochRecord) -> bool:
        """Whether the epoch of ``record`` is done. Asked when it cannot be published."""
        listing = self._directory.listing()
        if listing.has_folded(record.slot):
            return True
        return record.slot in listing.complete and self._slots.completion(record).end is End.DONE

    def left_before(self, slot: int) -> Section:
        """What the epoch before ``slot`` could not remove, for one in ``slot`` that removes nothing."""
        before = None if self._directory.is_open or not slot else self._slots.read(slot - 1)
        if before is None or before.slot not in self._directory.listing().complete:
            return EMPTY
        return self._slots.completion(before).left

    def has_folded(self, slot: int = 0) -> bool:
        """Whether ``slot`` has been folded away; by default whether any has, so that some is not known."""
        return self._directory.listing().has_folded(slot)
