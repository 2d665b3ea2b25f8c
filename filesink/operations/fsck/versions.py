"""Compares ledgers with the inventory: an epoch has one version, a version one epoch. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from filesink.inventory.names import DIRECTORY
from filesink.ledger.directory import COMPACTION
from filesink.ledger.record import EpochRecord
from filesink.naming import LEDGER_ROOT, is_data
from filesink.operations.fsck.seen import Draft, Look, SeenInventory
from filesink.parts.committables import CommittableCodec, PendingFile


def compare_versions(look: Look, inventory: SeenInventory) -> Iterator[Draft]:
    """What one knows and the other does not."""
    epochs = inventory.epochs.select(["version", "sink", "slot", "nonce"]).to_pylist()
    yield from _doubled(epochs)
    yield from _unknown_to_ledgers(epochs, look)
    nonces = {epoch["nonce"] for epoch in epochs}
    files = _files(inventory)
    for record in _published(look):
        if record.nonce in nonces:
            yield from _disagreeing(record, files)


def without_version(
    look: Look,
    inventory: SeenInventory,
    explained: Collection[str],
    lost_claim: Callable[[EpochRecord], bool],
) -> Iterator[tuple[Draft, frozenset[str]]]:
    """Complete epochs that the inventory does not know, though it does not know their visible files either.

    Old epochs are forgotten, and so are those before an adoption: but their files are known. Returns what is
    wrong, and those files.

    Args:
        look: what was seen.
        inventory: that of ``look``.
        explained: paths that may be there for other reasons: others have their rows, say.
        lost_claim: whether another write has the ``txn_id`` of a record, so that it was never visible.
    """
    nonces = set(inventory.epochs["nonce"].to_pylist())
    places = set(zip(inventory.epochs["sink"].to_pylist(), inventory.epochs["slot"].to_pylist(), strict=True))
    known = {*inventory.files["path"].to_pylist(), *explained}
    for record in _published(look):
        if record.nonce in nonces or (record.sink_id, record.slot) in places:
            continue
        unknown = frozenset(
            file.target
            for file in _data_files(record)
            if file.target in look.files.visible and file.target not in known
        )
        if unknown and not lost_claim(record):
            detail = f"epoch {record.slot} of '{record.sink_id}' has {len(unknown):,} files without a version"
            yield Draft("VERSION_MISSING", _path_of(record), detail), unknown


def _published(look: Look) -> Iterator[EpochRecord]:
    """The record of each epoch that is complete and stands."""
    for chain in look.chains:
        for slot, record in chain.records.items():
            is_done = slot in chain.listing.complete and slot not in chain.done_unpublished
            if is_done and slot not in chain.undone and chain.sink_id != COMPACTION:
                yield record


def _path_of(record: EpochRecord) -> str:
    return f"{LEDGER_ROOT}/{record.sink_id}/{record.slot:012d}.record"


def _data_files(record: EpochRecord) -> Iterator[PendingFile]:
    for file in record.committables.decode(CommittableCodec()):
        if isinstance(file, PendingFile) and is_data(file.bucket):
            yield file


def _doubled(epochs: Sequence[dict[str, Any]]) -> Iterator[Draft]:
    for nonce, times in Counter(epoch["nonce"] for epoch in epochs).items():
        if times > 1:
            versions = [epoch["version"] for epoch in epochs if epoch["nonce"] == nonce]
            yield Draft("VERSION_DOUBLED", DIRECTORY, f"versions {versions} are of one epoch")


def _unknown_to_ledgers(epochs: Sequence[dict[str, Any]], look: Look) -> Iterator[Draft]:
    newest: dict[str, int] = {}
    records = {chain.sink_id: chain.records for chain in look.chains}
    for epoch in epochs:
        sink, slot = epoch["sink"], epoch["slot"]
        if not sink:  # an adoption
            continue
        newest[sink] = max(slot, newest.get(sink, -1))
        record = records.get(sink, {}).get(slot)
        if record is not None and record.nonce != epoch["nonce"]:
            path = f"{LEDGER_ROOT}/{sink}/{slot:012d}.record"
            yield Draft("LEDGER_REPLACED", path, f"version {epoch['version']} is of another record")
    for sink, slot in newest.items():
        path = f"{LEDGER_ROOT}/{sink}"
        if sink not in look.decided:
            yield Draft("LEDGER_LOST", path, f"the inventory knows its epoch {slot}")
        elif slot > look.decided[sink]:
            detail = f"the inventory knows epoch {slot}, and the ledger ends with {look.decided[sink]}"
            yield Draft("TAIL_LOST", path, detail)


def _files(inventory: SeenInventory) -> dict[str, tuple[int | None, int | None]]:
    rows = inventory.files
    values = zip(*(rows[name].to_pylist() for name in ("path", "size", "rows", "added")), strict=True)
    return {path: (size, count) for path, size, count, added in values if added is not None}


def _disagreeing(record: EpochRecord, files: dict[str, tuple[int | None, int | None]]) -> Iterator[Draft]:
    for file in _data_files(record):
        size, rows = files.get(file.target, (file.size, file.rows))
        if size != file.size or rows not in {None, file.rows}:
            detail = f"{rows} rows of {size} bytes; the record says {file.rows} rows of {file.size} bytes"
            yield Draft("INVENTORY_DISAGREES", file.target, detail)
