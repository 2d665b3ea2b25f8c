"""Where a batch write with a ``txn_id`` is found again.

A write that appends stands in a ledger of its own, made from its ``txn_id``: that it is there says
that it is decided. Writes in any other mode share one ledger, so that they exclude each other
(``filesink.identity``); there a ``txn_id`` would be folded away with its record. So the epoch, before
it is complete, leaves a copy of its record in the ledger where the ``txn_id`` is looked for.
"""

from __future__ import annotations

from dataclasses import replace

from filesink.epoch_record import BatchWrite, EpochRecord
from filesink.ledger import Ledger


def find_write(cause: BatchWrite, ledger: Ledger) -> EpochRecord | None:
    """The record of a batch write with the ``txn_id`` of ``cause``, if it is decided.

    The epochs of ``ledger`` are complete.
    """
    head = _memory(cause, ledger).head()
    return None if head is None else head.record


def remember(record: EpochRecord, ledger: Ledger) -> None:
    """Have the ``txn_id`` of ``record`` found. Called before the epoch is complete; replayable."""
    if isinstance(record.cause, BatchWrite) and record.cause.remembered_in:
        memory = _memory(record.cause, ledger)
        cause = replace(record.cause, remembered_in="")
        memory.decide(replace(record, sink_id=memory.sink_id, slot=0, cause=cause))
        memory.complete(0)
        memory.sweep(0)  # no epoch of its own will


def forget(record: EpochRecord, ledger: Ledger) -> None:
    """Undo ``remember``, because the epoch is taken back."""
    if isinstance(record.cause, BatchWrite) and record.cause.remembered_in:
        _memory(record.cause, ledger).retract(0)


def _memory(cause: BatchWrite, ledger: Ledger) -> Ledger:
    return ledger.beside(cause.remembered_in) if cause.remembered_in else ledger
