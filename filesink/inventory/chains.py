"""What the chains of a base path tell an inventory.

Rules:
1. Nothing is decided, published or completed here.
2. An epoch is complete only after its driver has looked for an inventory and got a version, if there was one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from filesink.ledger.directory import COMPACTION, LedgerDirectory, ledger_ids
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord
from filesink.parts.committables import CommittableCodec, PendingFile, ReplacedFile, SupersededFile
from filesink.parts.recorded_paths import check_record
from filesink.storage.api import Store


def is_new(store: Store) -> bool:
    """Whether no epoch of any chain is complete."""
    listings = (LedgerDirectory(store, sink_id).listing() for sink_id in ledger_ids(store))
    return not any(listing.complete or listing.marks for listing in listings)


def are_all_new(store: Store) -> bool:
    """Whether there is a chain, and no epoch of any is complete."""
    return bool(ledger_ids(store)) and is_new(store)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """An epoch that is decided and not complete.

    Attributes:
        name: in messages.
        paths: of the files that it makes visible.
        replaced: of those that it replaces; they may stay for a while.
    """

    name: str
    paths: frozenset[str]
    replaced: frozenset[str] = frozenset()


def at_work(store: Store) -> dict[str, AtWork]:
    """Every epoch that is decided and not complete, by its nonce."""
    found: dict[str, AtWork] = {}
    for sink_id in ledger_ids(store):
        ledger = _ledger(store, sink_id)
        for slot in ledger.history.half_done():
            record = ledger.read(slot)
            if record is not None:
                files = record.committables.decode(CommittableCodec())
                found[record.nonce] = AtWork(
                    name=f"epoch {slot} of '{sink_id}'",
                    paths=frozenset(file.target for file in files if isinstance(file, PendingFile)),
                    replaced=frozenset(file.path for file in files if isinstance(file, ReplacedFile)),
                )
    return found


def superseded(store: Store) -> dict[str, set[str]]:
    """Files that stay for readers' sake though others have their rows: each, and those that have them.

    By the last offline compaction that is complete; one that is at work will say so itself.
    """
    head = _ledger(store, EXCLUSIVE).history.newest()
    finished = -1 if head is None else head.finished_slot
    for record in _ledger(store, COMPACTION).history.newest_first():
        if record.slot <= finished:
            found: dict[str, set[str]] = {}
            for file in record.committables.decode(CommittableCodec()):
                if isinstance(file, SupersededFile):
                    found.setdefault(file.path, set()).add(file.by)
            return found
    return {}


def left_files(ledger: Ledger) -> list[ReplacedFile]:
    """What the complete epochs of a chain have replaced and left to be removed; there or not.

    Raises:
        StateError, SecurityError: the chain is damaged.
    """
    head = ledger.history.newest()
    if head is None:
        return []
    left = head.left if head.complete else ledger.history.left_before(head.finished_slot + 1)
    files = left.decode(CommittableCodec()) if left.data else []
    return [file for file in files if isinstance(file, ReplacedFile)]


def kept_rows(store: Store) -> dict[str, int]:
    """Number of rows of each file that a record names, as long as records are kept."""
    return {file.target: file.rows for record in _kept(store) for file in _pending(record)}


def newest_columns(store: Store) -> bytes:
    """Columns of the newest input of any chain, as Arrow serialises them; ``b""`` if none are known."""
    heads = (_ledger(store, sink_id).history.newest() for sink_id in ledger_ids(store))
    known = [head.record for head in heads if head is not None and head.record.schema.data]
    newest = max(known, key=lambda record: record.decided_ms, default=None)
    return b"" if newest is None else newest.schema.data


def _kept(store: Store) -> Iterator[EpochRecord]:
    for sink_id in ledger_ids(store):
        yield from _ledger(store, sink_id).history.newest_first()


def _pending(record: EpochRecord) -> list[PendingFile]:
    files = record.committables.decode(CommittableCodec())
    return [file for file in files if isinstance(file, PendingFile)]


def _ledger(store: Store, sink_id: str) -> Ledger:
    return Ledger(store, sink_id, check=check_record)
