"""The newest record of a chain: what the next epoch starts from."""

from __future__ import annotations

from dataclasses import dataclass

from filesink.ledger.damage import no_head
from filesink.ledger.directory import Listing
from filesink.ledger.record import EMPTY, EpochRecord, Section, TakenBack
from filesink.ledger.slots import Slots


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


def newest(slots: Slots, listing: Listing) -> Head | None:
    """That of ``listing``; ``None`` for a new chain."""
    if not listing.records:
        if listing.marks:
            raise no_head(slots.directory)
        return None
    slot = listing.records[-1]
    # Their driver may have died between making a name and the sync of the directory. Whoever goes on
    # because of this record, or because it is complete, must find both again after a power cut.
    slots.directory.sync()
    record = slots.require(slot)
    if slot not in listing.complete:
        return Head(record=record, complete=False)
    return Head(record=record, complete=True, left=slots.completion(record).left)


def next_slot(head: Head | None) -> int:
    """The slot after the newest record; 0 in a new chain."""
    return 0 if head is None else head.record.slot + 1
