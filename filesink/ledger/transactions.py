"""Where a batch write with a ``txn_id`` is found again, however long ago it was, and in whatever mode.

Its record says what it would publish, and its claim (``filesink.ledger.claims``) that it may. Who finds
another's claim there has lost, and publishes nothing. The last offline compaction is found here, too: it
shares the chain of writes that replace files, and leaves copies of its records in one of its own, in the
same slots.
"""

from __future__ import annotations

from dataclasses import replace

from filesink.errors import ConcurrentDriverError
from filesink.ledger.directory import COMPACTION
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite, EpochRecord, OfflineCompaction, TakenBack

_LAST_WITH_LEDGERS = 2


def find_write(cause: BatchWrite, ledger: Ledger) -> EpochRecord | None:
    """The record of a batch write with the ``txn_id`` of ``cause``, if it may be published.

    Of earlier releases it may still have to be carried through.
    """
    claims = ledger.claims(cause.remembered_in)
    found = claims.standing()
    if found is None:
        found = _of_earlier_release(ledger.beside(cause.remembered_in))
    else:
        claims.sweep()  # a driver that died while it came late
    return None if found is None or found.nonce == cause.supersedes else found


def is_valid(record: EpochRecord, ledger: Ledger) -> bool:
    """Whether ``record``, which is decided, may be published. Replayable; asked before it is."""
    match record.cause:
        case BatchWrite(remembered_in=name, writer=writer) if name and writer:
            claims = ledger.claims(name)
            is_ours = claims.claim(record)
            claims.sweep()
            return is_ours
        case _:
            return True


def remember(record: EpochRecord, ledger: Ledger) -> None:
    """Have what ``record`` takes back be found no more, and offline compaction be found. Replayable.

    Called when everything else of the epoch is done, before it is complete.
    """
    match record.cause:
        case OfflineCompaction():
            memory = ledger.beside(COMPACTION)
            copy = replace(record, sink_id=COMPACTION)
            if memory.decide(copy).nonce == copy.nonce:
                memory.complete(copy)
                # Its slots are a few of another chain's, maybe none at which a chain is folded.
                memory.folding.fold(newest=0, keep=1)
                memory.folding.sweep(copy.slot)  # no epoch of its own will
        case TakenBack(slot=slot):
            undone = ledger.read(slot)
            if undone is not None:
                _forget(undone, ledger)
        case BatchWrite(remembered_in=name, writer="") if name:  # decided by an earlier release
            ledger.claims(name).claim(record)
        case BatchWrite(remembered_in=name) if name:
            ledger.claims(name).done(record)
        case _:
            pass


def _forget(undone: EpochRecord, ledger: Ledger) -> None:
    match undone.cause:
        case BatchWrite(remembered_in=name) if name:
            ledger.claims(name).take_back(undone)
        case OfflineCompaction():
            ledger.beside(COMPACTION).folding.retract(undone.slot)
        case _:
            pass


def other_mode(record: EpochRecord) -> ConcurrentDriverError:
    """The error for a write whose ``txn_id`` is decided in another chain, and not carried through."""
    mode = record.cause.mode.value if isinstance(record.cause, BatchWrite) else ""
    return ConcurrentDriverError(
        f"the write of this txn_id is decided in mode '{mode}' (slot {record.slot} of '{record.sink_id}') "
        "and not complete: its driver is at work, or has died. Nothing was written. Call recover(), or "
        "repeat the write in that mode",
        code="OTHER_MODE",
    )


def decided_by_earlier_release(record: EpochRecord) -> str:
    """The ledger of its own that a ``txn_id`` had up to records of version 2; ``""`` for later ones."""
    return record.sink_id if record.version <= _LAST_WITH_LEDGERS else ""


def _of_earlier_release(memory: Ledger) -> EpochRecord | None:
    """Up to records of version 2 a ``txn_id`` had a ledger of its own."""
    head = memory.head()
    if head is None or isinstance(head.record.cause, TakenBack):
        return None
    return head.record
