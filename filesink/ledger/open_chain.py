"""An open chain: appending batch writes do not depend on each other, and each takes the first free slot.

Rule: no record is created above one whose name may not be durable yet, as that of another driver that is at
work or has died. Otherwise a power cut could take the lower one alone, and leave a gap for good.
"""

from __future__ import annotations

from dataclasses import replace

from filesink.errors import CommitStateUnknown, FilesinkError
from filesink.ledger.damage import unbroken
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord


def append(record: EpochRecord, ledger: Ledger) -> EpochRecord:
    """Create ``record`` in the first free slot of an open chain; return it as it is there.

    Raises:
        CommitStateUnknown, StorageError: see ``Ledger.decide``.
        StateCorruptError: see ``Ledger.head``.
    """
    while True:
        listing = unbroken(ledger.directory)
        if listing.unfinished():
            ledger.directory.sync()
        slot = listing.last_slot() + 1
        while (placed := ledger.place(replace(record, slot=slot))) is None or placed.nonce != record.nonce:
            ledger.directory.sync()
            slot += 1
        if _is_sure_to_count(placed, ledger):
            return placed


def _is_sure_to_count(placed: EpochRecord, ledger: Ledger) -> bool:
    """As ``Ledger.counts``, but raises if that cannot be told: the record must not be taken for absent."""
    try:
        return ledger.counts(placed.slot)
    except FilesinkError as error:
        raise CommitStateUnknown(
            f"{ledger.directory.path_of(placed.slot, 'record')} exists, but whether it counts could not be "
            f"checked ({error.message}). Nothing was deleted; call recover() later",
            code="DECIDE_UNKNOWN",
        ) from error
