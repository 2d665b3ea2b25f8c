"""An open chain: batch writes that append need nothing of each other, and each takes the first free slot."""

from __future__ import annotations

from dataclasses import replace

from filesink.errors import CommitStateUnknown, FilesinkError
from filesink.ledger.damage import unbroken
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord


def append(record: EpochRecord, ledger: Ledger) -> EpochRecord:
    """Create ``record`` in the first free slot of an open chain; return it as it stands there.

    Raises:
        CommitStateUnknown, StorageError: see ``Ledger.decide``.
        StateCorruptError: see ``Ledger.head``.
    """
    while True:
        slot = unbroken(ledger.directory).last_slot() + 1
        while (placed := ledger.place(replace(record, slot=slot))) is None or placed.nonce != record.nonce:
            slot += 1
        if _is_sure_to_count(placed, ledger):
            return placed


def _is_sure_to_count(placed: EpochRecord, ledger: Ledger) -> bool:
    """As ``Ledger.counts``; whoever cannot tell must not take a record that stands for one that does not."""
    try:
        return ledger.counts(placed.slot)
    except FilesinkError as error:
        raise CommitStateUnknown(
            f"{ledger.directory.path_of(placed.slot, 'record')} stands, and whether it counts could not be "
            f"looked at ({error.message}). Nothing was deleted; call recover() later",
            code="DECIDE_UNKNOWN",
        ) from error
