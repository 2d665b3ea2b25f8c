"""Where a batch write with a ``txn_id`` is found again, and the last offline compaction.

A write that appends stands in a ledger of its own, made from its ``txn_id``: that it is there says
that it is decided. Writes in any other mode share one ledger, so that they exclude each other
(``filesink.identity``); there a ``txn_id`` would be folded away with its record. So the epoch, before
it is complete, leaves a copy of its record in the ledger where the ``txn_id`` is looked for. Offline
compaction shares that ledger, and leaves its copies in one of its own, in the same slots.
"""

from __future__ import annotations

from dataclasses import replace

from filesink.epoch_record import BatchWrite, EpochRecord, OfflineCompaction
from filesink.ledger import Ledger

#: The ledger that holds a copy of each record of offline compaction.
COMPACTION = "compaction"


def find_write(cause: BatchWrite, ledger: Ledger) -> EpochRecord | None:
    """The record of a batch write with the ``txn_id`` of ``cause``, if it is decided.

    The epochs of ``ledger`` are complete.
    """
    memory = _memory(cause, ledger)
    head = memory.head()
    if head is None:
        return None
    memory.sweep(head.record.slot)  # a driver that died while it came late with the same record
    return head.record


def remember(record: EpochRecord, ledger: Ledger) -> None:
    """Have ``record`` found. Called before the epoch is complete; replayable."""
    match record.cause:
        case BatchWrite(remembered_in=name) as cause if name:
            memory = ledger.beside(name)
            copy = replace(record, sink_id=name, slot=0, cause=replace(cause, remembered_in=""))
        case OfflineCompaction():
            memory = ledger.beside(COMPACTION)
            copy = replace(record, sink_id=COMPACTION)
        case _:
            return
    memory.decide(copy)
    memory.complete(copy.slot)
    memory.fold(newest=copy.slot, keep=1)
    memory.sweep(copy.slot)  # no epoch of its own will


def forget(record: EpochRecord, ledger: Ledger) -> None:
    """Undo ``remember``, because the epoch is taken back."""
    match record.cause:
        case BatchWrite(remembered_in=name) if name:
            ledger.beside(name).retract(0)
        case OfflineCompaction():
            ledger.beside(COMPACTION).retract(record.slot)
        case _:
            pass


def _memory(cause: BatchWrite, ledger: Ledger) -> Ledger:
    return ledger.beside(cause.remembered_in) if cause.remembered_in else ledger
