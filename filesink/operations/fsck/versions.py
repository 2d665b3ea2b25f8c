"""Compares ledgers with the inventory: an epoch has one version, a version one epoch. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from filesink.inventory.names import DIRECTORY
from filesink.ledger.directory import COMPACTION
from filesink.ledger.record import EpochRecord
from filesink.naming import LEDGER_ROOT, is_data
from filesink.operations.fsck.seen import Draft, Look, SeenChain, SeenInventory
from filesink.parts.committables import CommittableCodec, PendingFile


def compare_versions(
    look: Look, inventory: SeenInventory, lost_claim: Callable[[EpochRecord], bool]
) -> Iterator[Draft]:
    """What one knows and the other does not.

    Args:
        look: what was seen.
        inventory: that of ``look``.
        lost_claim: whether another write has the ``txn_id`` of a record, so that it was never visible.
    """
    epochs = inventory.epochs.select(["version", "sink", "slot", "nonce"]).to_pylist()
    yield from _doubled(epochs)
    yield from _unknown_to_ledgers(epochs, look)
    nonces = {epoch["nonce"] for epoch in epochs}
    places = {(epoch["sink"], epoch["slot"]) for epoch in epochs}  # another record there is told by itself
    files = _files(inventory)
    for chain in look.chains:
        if chain.sink_id == COMPACTION:
            continue
        for slot, record in chain.records.items():
            if _is_published(chain, slot):
                path = f"{LEDGER_ROOT}/{chain.sink_id}/{slot:012d}.record"
                # Of versions up to the horizon epochs may be forgotten; adoption forgets those before it.
                if record.after_version >= inventory.horizon and record.nonce not in nonces:
                    if (chain.sink_id, slot) not in places and not lost_claim(record):
                        yield Draft("VERSION_MISSING", path, f"epoch {slot} of '{chain.sink_id}'")
                    continue
                yield from _disagreeing(record, files)


def _is_published(chain: SeenChain, slot: int) -> bool:
    is_done = slot in chain.listing.complete and slot not in chain.done_unpublished
    return is_done and slot not in chain.undone


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
    for file in record.committables.decode(CommittableCodec()):
        if not isinstance(file, PendingFile) or not is_data(file.bucket) or file.target not in files:
            continue
        size, rows = files[file.target]
        if size != file.size or rows not in {None, file.rows}:
            detail = f"{rows} rows of {size} bytes; the record says {file.rows} rows of {file.size} bytes"
            yield Draft("INVENTORY_DISAGREES", file.target, detail)
