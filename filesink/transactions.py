"""Where a batch write with a ``txn_id`` is found again, and the last offline compaction.

A write that appends stands in a ledger of its own, made from its ``txn_id``: that it is there says
that it is decided. Writes in any other mode share one ledger, so that they exclude each other
(``filesink.identity``); there a ``txn_id`` would be folded away with its record. So the epoch, before
it is complete, leaves a copy of its record in the ledger where the ``txn_id`` is looked for. Offline
compaction shares that ledger, and leaves its copies in one of its own, in the same slots.
"""

from __future__ import annotations

from dataclasses import replace

from filesink.epoch_record import EMPTY, BatchWrite, EpochRecord, OfflineCompaction, TakenBack
from filesink.errors import ConcurrentDriverError
from filesink.ledger import COMPACTION, Ledger
from filesink.save_mode import SaveMode


def find_write(cause: BatchWrite, ledger: Ledger, *, exclusive: Ledger) -> EpochRecord | None:
    """The record of a batch write with the ``txn_id`` of ``cause``, if it is decided.

    Args:
        cause: the write.
        ledger: its own; whoever writes there carries through what stands in it undone.
        exclusive: the ledger of the writes that do not append. If ``cause`` does, nobody carries through
            what stands there, nor the other way round.

    Raises:
        ConcurrentDriverError: ``OTHER_MODE``, it is decided in the other ledger and not complete.
    """
    memory = _memory(cause, ledger)
    head = memory.head()
    if head is None or isinstance(head.record.cause, TakenBack):
        if not cause.remembered_in:
            _check_undone(exclusive, ledger.sink_id)
        return None
    # A copy says that all files are visible; the record of an append does so when it is complete.
    appended = head.record.cause == BatchWrite(txn_id=cause.txn_id)
    if cause.remembered_in and appended and not head.complete:
        raise _other_mode(SaveMode.APPEND, head.record)
    memory.sweep(head.record.slot)  # a driver that died while it came late with the same record
    return head.record


def remember(record: EpochRecord, ledger: Ledger) -> None:
    """Have ``record`` found, or what it takes back no more. Called before it is complete; replayable."""
    match record.cause:
        case BatchWrite(remembered_in=name) as cause if name:
            memory = ledger.beside(name)
            head = memory.head()
            slot = 0 if head is None else head.record.slot
            if head is not None and isinstance(head.record.cause, TakenBack):
                slot += 1
            copy = replace(record, sink_id=name, slot=slot, cause=replace(cause, remembered_in=""))
        case OfflineCompaction():
            memory = ledger.beside(COMPACTION)
            copy = replace(record, sink_id=COMPACTION)
        case TakenBack(slot=slot):
            undone = ledger.read(slot)
            if undone is not None:
                _forget(undone, record, ledger)
            return
        case _:
            return
    if memory.decide(copy).nonce != copy.nonce:
        return  # another write of the same txn_id stands there, or what says that this one is void
    memory.complete(copy.slot)
    # Its slots are a few of another chain's, and need not be among those at which a chain is folded.
    memory.fold(newest=0, keep=1)
    memory.sweep(copy.slot)  # no epoch of its own will


def _forget(undone: EpochRecord, taken_back: EpochRecord, ledger: Ledger) -> None:
    """Have nobody find ``undone``, be its copy there, or come late. Replayable."""
    match undone.cause:
        case BatchWrite(remembered_in=name) if name:
            _fill(ledger.beside(name), undone, taken_back)
        case OfflineCompaction():
            ledger.beside(COMPACTION).retract(undone.slot)
        case _:
            pass


def _fill(memory: Ledger, undone: EpochRecord, taken_back: EpochRecord) -> None:
    """Take back the copy of ``undone``, or take the slot that it would be put into."""
    blank = replace(
        taken_back, sink_id=memory.sink_id, last_batch=None, waiting=EMPTY, schema=EMPTY, states={}
    )
    while True:
        head = memory.head()
        newest = None if head is None else head.record
        if newest is not None and newest.nonce == taken_back.nonce:
            void = newest  # an earlier call has got so far
        elif newest is None or isinstance(newest.cause, TakenBack):
            slot = 0 if newest is None else newest.slot + 1
            void = replace(blank, slot=slot, cause=TakenBack(slot=slot))
        elif newest.nonce == undone.nonce:
            void = replace(blank, slot=newest.slot + 1, cause=TakenBack(slot=newest.slot))
        else:
            return  # the same txn_id was written meanwhile
        if memory.decide(void).nonce == void.nonce:
            break
    memory.complete(void.slot)
    memory.sweep(void.slot)


def _check_undone(exclusive: Ledger, name: str) -> None:
    """Raise if what stands undone there will be remembered in ``name``: appended too, it comes twice."""
    record = exclusive.unfinished_record()
    match record.cause if record else None:
        case BatchWrite(mode=mode, remembered_in=where) if record and where == name:
            raise _other_mode(mode, record)
        case _:
            pass


def _other_mode(mode: SaveMode, record: EpochRecord) -> ConcurrentDriverError:
    return ConcurrentDriverError(
        f"the write of this txn_id is decided in mode '{mode.value}' (slot {record.slot} of sink "
        f"'{record.sink_id}') and not complete: its driver is at work, or has died. Nothing was written. "
        "Call recover(), or repeat the write in that mode",
        code="OTHER_MODE",
    )


def _memory(cause: BatchWrite, ledger: Ledger) -> Ledger:
    return ledger.beside(cause.remembered_in) if cause.remembered_in else ledger
