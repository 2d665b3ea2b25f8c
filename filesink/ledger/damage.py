"""What is wrong with a chain that is not whole, and what to do about it.

Whoever goes on with a chain looks for damage first: nothing is decided, published or swept on it.
"""

from __future__ import annotations

from filesink.errors import StateCorruptError
from filesink.ledger.directory import COMPACTION, LedgerDirectory, Listing
from filesink.ledger.record import EpochRecord
from filesink.naming import LEDGER_ROOT


def unbroken(directory: LedgerDirectory) -> Listing:
    """What is there, if nothing is missing.

    Raises:
        StateCorruptError: ``NO_RECORD``, ``GAP``.
    """
    listing = directory.listing()
    if not listing.strays() and _missing(directory, listing) is None:
        return listing
    listing = directory.listing()  # a fold may have been at work, and its mark not seen yet
    if strays := listing.strays():
        raise _without_record(directory.path_of(strays[0], "complete"))
    missing = _missing(directory, listing)
    if missing is not None:
        raise _gap(directory, listing, missing)
    return listing


def _missing(directory: LedgerDirectory, listing: Listing) -> int | None:
    """The first slot without its record; of offline compaction there are copies in a few slots only."""
    return None if directory.sink_id == COMPACTION else listing.missing()


def _without_record(path: str) -> StateCorruptError:
    return StateCorruptError(
        f"{path} says that an epoch is done, and its record is not there: it was lost, or this file "
        "was put there by hand. Nothing was published or removed. Bring the directory back from a "
        "backup; only if no such epoch ever was, remove this file",
        code="NO_RECORD",
    )


def _gap(directory: LedgerDirectory, listing: Listing, missing: int) -> StateCorruptError:
    last = listing.records[-1]
    way_out = (
        ""
        if last in listing.complete
        else f", or remove {last:012d}.record, which is not complete, to go on from what is there"
    )
    return StateCorruptError(
        f"{directory.path} has the record of slot {last}, but not that of slot {missing}: the "
        "base path was emptied, unmounted or replaced by an older copy, maybe while a driver was at "
        f"work. Nothing was published. Bring the directory back and start again{way_out}",
        code="GAP",
    )


def no_head(directory: LedgerDirectory) -> StateCorruptError:
    """The error for a chain of which only marks are left."""
    return StateCorruptError(
        f"{directory.path} has folded its records away but the newest is missing; "
        "restore the directory from a backup",
        code="NO_HEAD",
    )


def foreign(record: EpochRecord, path: str, directory: LedgerDirectory) -> StateCorruptError:
    """The error for a record at ``path`` that is one of another slot, or of another sink."""
    return StateCorruptError(
        f"{path} is the record of slot {record.slot} of sink '{record.sink_id}'; it was copied "
        f"here. If '{directory.path}' is a copy, such as a backup, move it out of "
        f"'{LEDGER_ROOT}'; else restore it",
        code="FOREIGN",
    )


def vanished(path: str) -> StateCorruptError:
    """The error for a file that was listed, and is not there."""
    return StateCorruptError(
        f"{path} vanished while it was being read; is another driver at work?", code="VANISHED"
    )
