"""What the observer asks of ledgers: records, completions, marks and claims (I1, I2, I4, I5, I9, I13)."""

from __future__ import annotations

import re
from typing import Any

from property_tests.simulation.observer.graces import Graces
from property_tests.simulation.observer.inventory_watch import InventoryWatch
from property_tests.simulation.observer.reading import (
    Chain,
    Record,
    read_completion,
    read_record,
    read_times,
    staged_path,
)
from property_tests.simulation.observer.replacements import Replacements
from property_tests.simulation.observer.superseded import Superseded
from property_tests.simulation.observer.view import EXCLUSIVE, View
from property_tests.simulation.world.listing import all_files
from property_tests.simulation.world.nodes import Directory, Inode
from property_tests.simulation.world.world import Process

_LEDGER = re.compile(r"_filesink/(?P<sink>[^/]+)/(?P<slot>[0-9]{12})\.(?P<kind>record|complete|mark)")
_CLAIM = re.compile(r"_filesink/_txns/(?P<name>[^/]+)/(?P<number>[0-9]{6})\.claim")


class LedgerWatch:
    """Belongs to one observer. Takes each file of a ledger apart when it appears."""

    def __init__(
        self,
        view: View,
        replacements: Replacements,
        superseded: Superseded,
        graces: Graces,
        inventory: InventoryWatch,
    ) -> None:
        self._view = view
        self._replacements = replacements
        self._superseded = superseded
        self._graces = graces
        self._inventory = inventory

    def look(self, process: Process, path: str, *, made: bool) -> bool:
        """A file was made or removed; whether it is one of a ledger."""
        if claim := _CLAIM.fullmatch(path):
            self._claimed(claim["name"], path, made=made)
        elif ledger := _LEDGER.fullmatch(path):
            self._ledger(process, ledger, made=made)
        else:
            return False
        return True

    def _claimed(self, txn: str, path: str, *, made: bool) -> None:
        """Of all writes of one txn_id the first that claims it is published, and no other ever."""
        if not made:
            self._view.world.fail(f"I5: {path} was removed")
        elif txn in self._view.claims:
            self._view.world.fail(f"I2: {path} is claimed twice")
        else:
            self._view.claims[txn] = self._view.read(path).nonce

    def reread_claims(self) -> None:
        """A power cut may have taken one that nobody had been told of."""
        files = all_files(self._view.world.disk.root).items()
        found = ((match["name"], inode) for path, inode in files if (match := _CLAIM.fullmatch(path)))
        self._view.claims = {name: read_record(name, inode).nonce for name, inode in found}

    def _ledger(self, process: Process, found: re.Match[str], *, made: bool) -> None:
        sink, slot, kind = found["sink"], int(found["slot"]), found["kind"]
        record = self._view.read(found[0]) if kind == "record" and made else None
        if self._replacements.is_copy(sink, record):
            return
        chain = self._view.chains.get(sink) or self._view.chains.setdefault(
            sink, Chain(is_open=sink.startswith("appends"))
        )
        if not made:
            self._removed_from_ledger(sink, chain, slot, kind)
        elif record is not None:
            self._decided(sink, chain, record)
            if sink == EXCLUSIVE and slot > chain.mark:
                self._replacements.decided(process, chain.records[slot])
        elif kind == "complete":
            self._completed(chain, slot, found[0])
        else:
            if slot not in chain.complete:
                self._view.world.fail(f"I5: slot {slot} is folded away and not complete")
            chain.mark = max(chain.mark, slot)

    def _decided(self, sink: str, chain: Chain, record: Record) -> None:
        slot = record.slot
        if slot in chain.records:
            self._view.world.fail(f"I4: record {slot} was replaced")
        chain.records[slot] = record
        if slot <= chain.mark:
            return  # void; its driver finds out
        if slot and slot - 1 > chain.mark and slot - 1 not in chain.complete and not chain.is_open:
            self._view.world.fail(f"I9: slot {slot} is decided before slot {slot - 1} is complete")
        for target, entry in record.pending.items():
            self._check_staged(target, entry)
            if target in self._view.decided:
                self._view.world.fail(f"I4: {target} is decided twice")
            self._view.decided[target] = (sink, record)
        for name, entry in record.held.items():
            self._check_staged(name, entry)
        self._check_batch_once(chain, record)
        self._view.on_decided(record)

    def _check_batch_once(self, chain: Chain, record: Record) -> None:
        if record.cause["kind"] != "micro-batch":
            return
        for other in chain.records.values():
            if other is not record and other.slot > chain.mark and other.cause == record.cause:
                self._view.world.fail(
                    f"I2: {record.cause} is decided in slots {other.slot} and {record.slot}"
                )

    def _check_staged(self, name: str, entry: dict[str, Any]) -> None:
        path = staged_path(entry)
        if self._view.staged_bytes(entry) is None:
            self._view.world.fail(f"I1: {name} is decided and {path} is not there as it was closed")
            return
        node = self._view.world.disk.find(path)
        if isinstance(node, Inode):
            self._view.check_durable(path, node, "a decided file")

    def _completed(self, chain: Chain, slot: int, path: str) -> None:
        record = chain.records.get(slot)
        nonce, left = read_completion(self._view.world.disk.file(path))
        if record is None or nonce != record.nonce:
            # A driver that slept while it published may wake up after others have folded the slot, and
            # another one, which slept while it decided, may have won it meanwhile: all of it is void.
            if slot > chain.mark:
                what = "complete without a record" if record is None else "that of another record"
                self._view.world.fail(f"I9: {path} is {what}")
            return
        if self._view.is_void(record):
            if self._replacements.is_forgotten(record, left):
                self._view.world.fail(f"I15: {path} forgets what the epochs before it have left")
            chain.complete.add(slot)
            return
        self._inventory.completed(record)
        for target in record.pending:
            if target not in self._view.visible and target not in self._view.replaced.files:
                self._view.world.fail(f"I1: slot {slot} is complete and {target} is not visible")
            if target in self._view.visible:
                self._view.check_durable(target, self._view.visible[target].inode, "a published file")
        if record.path.startswith(f"_filesink/{EXCLUSIVE}/"):
            self._replacements.completed(record, left)
            self._graces.completed(record, read_times(self._view.world.disk.file(path)))
        chain.complete.add(slot)
        self._view.on_complete(chain, slot)

    def _removed_from_ledger(self, sink: str, chain: Chain, slot: int, kind: str) -> None:
        ledger = self._view.world.disk.directory(f"_filesink/{sink}")
        marks = [
            int(name[:12]) for name in ledger.synced if name.endswith(".mark") and name in ledger.entries
        ]
        if slot > max(marks, default=-1) or (kind == "mark" and slot == max(marks)):
            self._view.world.fail(f"I5: {kind} of slot {slot} was removed without a durable mark")
        if kind == "record":
            chain.records.pop(slot, None)

    # --- after a power cut

    def reread(self) -> None:
        """What was complete must still be there; what was not may be gone, but not by halves."""
        for sink, chain in self._view.chains.items():
            self._reread(sink, chain)

    def _reread(self, sink: str, chain: Chain) -> None:
        directory = self._view.world.disk.find(f"_filesink/{sink}")
        names = directory.entries if isinstance(directory, Directory) else {}
        done = {slot for slot in chain.complete if f"{slot:012d}.complete" in names or slot <= chain.mark}
        if sink == EXCLUSIVE:
            for slot in chain.complete - done:
                self._graces.begin_anew(chain.records[slot])
        marks = [int(name[:12]) for name in names if name.endswith(".mark")]
        chain.mark = max(marks, default=-1)
        for slot in [slot for slot in chain.records if f"{slot:012d}.record" not in names]:
            record = chain.records.pop(slot)
            self._replacements.taken_back(record)
            if sink == EXCLUSIVE:
                self._superseded.taken_back(record)
            if slot in chain.complete and slot > chain.mark:
                self._view.world.fail(f"I1: record {slot} was complete and is gone after a power cut")
            for target in record.pending:
                if slot > chain.mark:
                    self._view.decided.pop(target, None)
        chain.complete = done
