"""An outside reader that looks at every change, and knows by other means than filesink what is right.

Whenever a file appears, disappears or changes, it lists and reads the tree as any reader would, takes
the ledger's records apart by itself, and checks the invariants of ``docs/reliability.md``. The code
under test is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from property_tests.simulation.graces import Graces
from property_tests.simulation.inventory_watch import InventoryWatch
from property_tests.simulation.nodes import Inode
from property_tests.simulation.operations import Operations
from property_tests.simulation.power_cut import look_after_power_cut
from property_tests.simulation.reading import (
    Chain,
    Record,
    Seen,
    all_files,
    is_hidden,
    read_completion,
    read_record,
    read_staged,
    read_times,
    staged_path,
    tag_of,
    visible_files,
)
from property_tests.simulation.replacements import EXCLUSIVE, Replacements
from property_tests.simulation.superseded import CAUSE, Superseded
from property_tests.simulation.uploads import UploadWatch
from property_tests.simulation.workload import Source, rows_in, rows_in_segment
from property_tests.simulation.world import Process, World

_LEDGER = re.compile(r"_filesink/(?P<sink>[^/]+)/(?P<slot>[0-9]{12})\.(?P<kind>record|complete|mark)")
_CLAIM = re.compile(r"_filesink/_txns/(?P<name>[^/]+)/(?P<number>[0-9]{6})\.claim")
_PUT = re.compile(r"_filesink/(?P<sink>[^/]+)/\.(?P<name>(?P<slot>[0-9]+)\.(record|complete))\.put\..*")
_HIDDEN = re.compile(r"(?:.*/)?\..+\.inprogress\.(?P<tag>[0-9a-f]{8})\.(?P<slot>[0-9]+)\.[^/]+")


class Observer:
    """Watches one disk.

    Args:
        world: whose disk.
        sources: all rows that are ever written.
    """

    def __init__(self, world: World, sources: list[Source]) -> None:
        self.world = world
        self.sources = sources
        self.visible: dict[str, Seen] = {}
        self.shown: dict[str, list[str]] = {}  # rows of every file that was ever seen
        self.rows: dict[str, str] = {}  # row to the file that shows it
        self.chains: dict[str, Chain] = {}
        self.decided: dict[str, tuple[str, Record]] = {}  # target to sink and record
        self.claims: dict[str, str] = {}  # nonce of the record that a txn_id stands for, by its name
        self.foreign: dict[str, bytes] = {}
        self.on_complete: Callable[[Chain, int], None] = lambda _chain, _slot: None
        self.on_decided: Callable[[Record], None] = lambda _record: None
        self.uploads: UploadWatch | None = None  # of an object store, whose objects are files here
        self.replacements = Replacements(self)
        self.superseded = Superseded(self)
        self.operations = Operations(self)
        self.graces = Graces(self)
        self.inventory = InventoryWatch(self)
        self.looks = True
        world.watch = self.look
        world.on_cut = lambda: look_after_power_cut(self)

    def look_away(self) -> None:
        """Check nothing any more: an epoch is going to be taken back."""
        self.looks = False
        self.chains.clear()
        self.world.watch = lambda _process, _operation, _path: None
        self.world.on_cut = lambda: None

    # --- every change

    def look(self, process: Process, operation: str, path: str) -> None:
        """Check what the last call has changed."""
        del operation, path
        changes, self.world.disk.changed = self.world.disk.changed, []
        for kind, name, inode in changes:
            if kind == "aborted":
                assert self.uploads is not None
                self.uploads.check_aborted(process)
                continue
            if kind == "bytes":
                if any(seen.inode is inode for seen in self.visible.values()):
                    self.world.fail("I4: a visible file was written to")
                continue
            if name.startswith("_") and self._is_ledgers(process, name, made=kind == "made"):
                continue
            if not is_hidden(name):
                self._look_at(name)
                self.superseded.check_once()
            elif kind == "removed" and inode is not None:
                self._removed(process, name, inode)
            elif kind == "made" and (hidden := _HIDDEN.fullmatch(name)):
                self.replacements.writes(hidden["tag"])

    def _is_ledgers(self, process: Process, name: str, *, made: bool) -> bool:
        """Look at a file of a ledger, of a txn_id or of the inventory; whether it was one."""
        if claim := _CLAIM.fullmatch(name):
            self._claimed(claim["name"], name, made=made)
        elif ledger := _LEDGER.fullmatch(name):
            self._ledger(process, ledger, made=made)
        else:
            return self.inventory.look(name, made=made)
        return True

    def look_at_all(self) -> None:
        """List and read everything that readers see: I2, I3, I4."""
        for name in {**self.visible, **visible_files(self.world.disk.root)}:
            self._look_at(name)
        self.superseded.check_once()

    def _look_at(self, name: str) -> None:
        """The same for one name. A call changes no other: bytes of a visible file are looked at apart."""
        inode, seen = self.world.disk.find(name), self.visible.get(name)
        if not isinstance(inode, Inode):
            if seen is not None:
                self.replacements.check_removed(name)
                self.graces.check_removed(name)
                self.forget(name)
        elif seen is None:
            self._appeared(name, inode)
        elif seen.inode is not inode or seen.data != inode.data or seen.mtime_ns != inode.mtime_ns:
            self.world.fail(f"I4: {name} has changed")

    def _claimed(self, txn: str, path: str, *, made: bool) -> None:
        """Of all writes of one txn_id the first that claims it is published, and no other ever."""
        if not made:
            self.world.fail(f"I5: {path} was removed")
        elif txn in self.claims:
            self.world.fail(f"I2: {path} is claimed twice")
        else:
            self.claims[txn] = self._read(path).nonce

    def reread_claims(self) -> None:
        """A power cut may have taken one that nobody had been told of."""
        files = all_files(self.world.disk.root).items()
        found = ((match["name"], inode) for path, inode in files if (match := _CLAIM.fullmatch(path)))
        self.claims = {name: read_record(name, inode).nonce for name, inode in found}

    def is_void(self, record: Record) -> bool:
        """Whether another write has the txn_id of ``record``."""
        name = record.cause.get("remembered_in", "")
        return self.claims.get(name, record.nonce) != record.nonce

    def _is_claimed(self, record: Record) -> bool:
        name = record.cause.get("remembered_in", "")
        return not name or self.claims.get(name) == record.nonce

    def _appeared(self, name: str, inode: Inode) -> None:
        if name in self.foreign:
            self.visible[name] = Seen(inode, inode.number, bytes(inode.data), inode.mtime_ns, [])
            return
        if name not in self.decided:
            self.world.fail(f"I3: {name} is visible and no record names it")
        _, record = self.decided[name]
        if not self._is_claimed(record):
            self.world.fail(f"I2: {name} is visible and its txn_id stands for no write, or for another one")
        if name not in self.replacements.files:  # else it was seen before, and may be back for a while
            self._check_durable(record.path, record.inode, "its record")
        size = record.pending[name]["size"]
        if len(inode.data) != size:
            self.world.fail(f"I3: {name} has {len(inode.data)} bytes, decided were {size}")
        if not inode.durable:
            self.world.fail(f"I3: {name} is visible before its bytes are durable")
        try:
            rows = rows_in(bytes(inode.data), name)
        except ValueError as error:
            self.world.fail(f"I3: {name} is not whole: {error}")
            return
        unknown = record.cause["kind"] == CAUSE and not record.pending[name]["rows"]  # joined by bytes
        if len(rows) != record.pending[name]["rows"] and not unknown:
            self.world.fail(f"I3: {name} has {len(rows)} rows, decided were {record.pending[name]['rows']}")
        self.replacements.appeared(name, rows)
        self._take_rows(name, rows)
        self.visible[name] = Seen(inode, inode.number, bytes(inode.data), inode.mtime_ns, rows)
        self.shown[name] = rows

    def forget(self, name: str) -> None:
        """A file is gone, and with it its rows; a replaced one may come back if power fails."""
        rows = self.visible.pop(name).rows
        others = {row: self.superseded.other_with(row, name) for row in rows}
        for row, other in others.items():
            if other is None:
                del self.rows[row]
            else:
                self.rows[row] = other
        if self.replacements.is_named(name):
            self.replacements.rows.update(row for row, other in others.items() if other is None)

    def edit(self, name: str, content: bytes) -> None:
        """Somebody has put another file in the place of one."""
        self.forget(name)
        self.replacements.edited.add(name)
        self.foreign[name] = content
        self.look_at_all()

    def _take_rows(self, name: str, rows: list[str]) -> None:
        bucket = name.rpartition("/")[0]
        for row in rows:
            other = self.rows.get(row)
            if other and not self._may_double(name, other):
                self.world.fail(f"I2: row {row} is in {self.rows[row]} and in {name}")
            right = next((at for source in self.sources if (at := source.directory(row)) is not None), None)
            if right != bucket:
                self.world.fail(f"I3: row {row} is in bucket {bucket!r}, its own is {right!r}")
            self.rows[row] = name

    def _may_double(self, one: str, other: str) -> bool:
        return self.superseded.may_double(one, other) or self.operations.may_double(one, other)

    # --- the ledger

    def _ledger(self, process: Process, found: re.Match[str], *, made: bool) -> None:
        sink, slot, kind = found["sink"], int(found["slot"]), found["kind"]
        record = self._read(found[0]) if kind == "record" and made else None
        if self.replacements.is_copy(sink, record):
            return
        chain = self.chains.get(sink) or self.chains.setdefault(
            sink, Chain(is_open=sink.startswith("appends"))
        )
        if not made:
            self._removed_from_ledger(sink, chain, slot, kind)
        elif record is not None:
            self._decided(sink, chain, record)
            if sink == EXCLUSIVE and slot > chain.mark:
                self.replacements.decided(process, chain.records[slot])
        elif kind == "complete":
            self._completed(chain, slot, found[0])
        else:
            if slot not in chain.complete:
                self.world.fail(f"I5: slot {slot} is folded away and not complete")
            chain.mark = max(chain.mark, slot)

    def _read(self, path: str) -> Record:
        inode = self.world.disk.file(path)
        if not inode.durable:
            self.world.fail(f"I13: {path} is there before its bytes are durable")
        try:
            return read_record(path, inode)
        except (ValueError, KeyError, TypeError) as error:
            self.world.fail(f"I13: {path} cannot be read: {error}")
            raise

    def _decided(self, sink: str, chain: Chain, record: Record) -> None:
        slot = record.slot
        if slot in chain.records:
            self.world.fail(f"I4: record {slot} was replaced")
        chain.records[slot] = record
        if slot <= chain.mark:
            return  # void; its driver finds out
        if slot and slot - 1 > chain.mark and slot - 1 not in chain.complete and not chain.is_open:
            self.world.fail(f"I9: slot {slot} is decided before slot {slot - 1} is complete")
        for target, entry in record.pending.items():
            self._check_staged(target, entry)
            if target in self.decided:
                self.world.fail(f"I4: {target} is decided twice")
            self.decided[target] = (sink, record)
        for name, entry in record.held.items():
            self._check_staged(name, entry)
        self._check_batch_once(chain, record)
        self.on_decided(record)

    def _check_batch_once(self, chain: Chain, record: Record) -> None:
        if record.cause["kind"] != "micro-batch":
            return
        for other in chain.records.values():
            if other is not record and other.slot > chain.mark and other.cause == record.cause:
                self.world.fail(f"I2: {record.cause} is decided in slots {other.slot} and {record.slot}")

    def _check_staged(self, name: str, entry: dict[str, Any]) -> None:
        path = staged_path(entry)
        if self.staged_bytes(entry) is None:
            self.world.fail(f"I1: {name} is decided and {path} is not there as it was closed")
            return
        node = self.world.disk.find(path)
        if isinstance(node, Inode):
            self._check_durable(path, node, "a decided file")

    def _check_durable(self, path: str, inode: Inode, what: str) -> None:
        if not inode.durable:
            self.world.fail(f"I1: {what}, {path}, has bytes that are not durable")
        if self.world.disk.find_synced(path) is not inode:
            self.world.fail(f"I1: {what}, {path}, has a name that is not durable")

    def _completed(self, chain: Chain, slot: int, path: str) -> None:
        record = chain.records.get(slot)
        nonce, left = read_completion(self.world.disk.file(path))
        if record is None or nonce != record.nonce:
            # A driver that slept while it published may wake up after others have folded the slot, and
            # another one, which slept while it decided, may have won it meanwhile: all of it is void.
            if slot > chain.mark:
                what = "complete without a record" if record is None else "that of another record"
                self.world.fail(f"I9: {path} is {what}")
            return
        if self.is_void(record):
            if self.replacements.is_forgotten(record, left):
                self.world.fail(f"I15: {path} forgets what the epochs before it have left")
            chain.complete.add(slot)
            return
        self.inventory.completed(record)
        for target in record.pending:
            if target not in self.visible and target not in self.replacements.files:
                self.world.fail(f"I1: slot {slot} is complete and {target} is not visible")
            if target in self.visible:
                self._check_durable(target, self.visible[target].inode, "a published file")
        if record.path.startswith(f"_filesink/{EXCLUSIVE}/"):
            self.replacements.completed(record, left)
            self.graces.completed(record, read_times(self.world.disk.file(path)))
        chain.complete.add(slot)
        self.on_complete(chain, slot)

    def _removed_from_ledger(self, sink: str, chain: Chain, slot: int, kind: str) -> None:
        ledger = self.world.disk.directory(f"_filesink/{sink}")
        marks = [
            int(name[:12]) for name in ledger.synced if name.endswith(".mark") and name in ledger.entries
        ]
        if slot > max(marks, default=-1) or (kind == "mark" and slot == max(marks)):
            self.world.fail(f"I5: {kind} of slot {slot} was removed without a durable mark")
        if kind == "record":
            chain.records.pop(slot, None)

    # --- removal of hidden files

    def _removed(self, process: Process, path: str, inode: Inode) -> None:
        hidden = _HIDDEN.fullmatch(path)
        if hidden is None:
            self._removed_before_put(process, path, inode)
            return
        for chain in self.chains.values():
            self._check_needed(chain, path, inode)
        owner = inode.owner
        own = (chain for sink, chain in self.chains.items() if tag_of(sink) == hidden["tag"])
        decided = max((chain.newest_slot() for chain in own), default=None)
        foreign = isinstance(owner, Process) and owner.driver is not process.driver
        if decided is None:  # of a batch write: nobody but its own driver can decide it
            decided = self._batch_slot(hidden["tag"])
            foreign = foreign and isinstance(owner, Process) and not owner.driver.dead
        if foreign and int(hidden["slot"]) > decided:
            self.world.fail(f"I5: {path} belongs to an epoch that another driver may still decide")

    def _removed_before_put(self, process: Process, path: str, inode: Inode) -> None:
        """Of what another one is about to put, only what has come too late may go."""
        owner, put = inode.owner, _PUT.fullmatch(path)
        if put is None or not isinstance(owner, Process) or owner.driver is process.driver:
            return
        chain = self.chains.get(put["sink"])
        is_folded = chain is not None and int(put["slot"]) <= chain.mark
        is_there = self.world.disk.find(f"_filesink/{put['sink']}/{put['name']}") is not None
        if not (owner.driver.dead or is_folded or is_there):
            self.world.fail(f"I5: {path} was removed, which another driver is about to put")

    def _batch_slot(self, tag: str) -> int:
        """Where the files of a batch write belong if that is decided, -1 before."""
        records = (record for chain in self.chains.values() for record in chain.records.values())
        return 0 if any(tag_of(record.cause.get("writer", "")) == tag for record in records) else -1

    def _check_needed(self, chain: Chain, path: str, inode: Inode) -> None:
        for record in chain.at_work():
            if not self.is_void(record):
                self._check_needed_by(record, path, inode)

    def _check_needed_by(self, newest: Record, path: str, inode: Inode) -> None:
        if path in newest.held:
            self.world.fail(f"I5: {path} was removed and the last record holds it")
        for target, entry in newest.pending.items():
            kept = self.world.disk.find_synced(target) is inode or target in self.replacements.files
            ours = entry["staged"].get("inode", inode.number) == inode.number  # else a late twin's
            if staged_path(entry) == path and ours and not kept:
                self.world.fail(f"I1: {path} was removed and its other name, {target}, is not durable")
        if path in newest.discards:
            for target in newest.pending:
                if self.world.disk.find(target) is None and target not in self.replacements.files:
                    self.world.fail(f"I5: {path} was removed before {target} was published")

    # --- asked by the driver's script

    def check_success(self, cause: dict[str, Any], rows: list[str]) -> None:
        """I1 and I8 for a micro-batch that was reported as done: each row visible or held, once."""
        there = self.rows.keys() | self.replacements.rows if self.looks else set(rows)
        own, slot = self.chains.get(cause["sink"], Chain()), cause["slot"]
        if self.looks and slot not in own.complete and slot > own.mark:
            self.world.fail(f"I8: {cause} is reported as done and not complete")
        for chain in self.chains.values():
            newest = chain.newest()
            for path in () if newest is None else newest.held:
                for row in rows_in_segment(bytes(self.world.disk.file(path).data)):
                    if row in there:
                        self.world.fail(f"I2: row {row} is held twice, or held and visible")
                    there.add(row)
            for record in chain.at_work():
                if record.slot not in chain.complete:  # another driver is about to publish it
                    there |= self._pending_rows(record)
        for row in rows:
            if row not in there:
                self.world.fail(f"I1: row {row} of {cause} is neither visible nor held")

    def check_no_garbage(self, driver: Process, slot: int) -> None:
        """I6 for a driver that nothing has happened to: attempts that lost have left nothing."""
        if not self.looks:
            return
        if self.uploads is not None:
            self.uploads.check_no_garbage(driver, slot)
        held = {path for chain in self.chains.values() if (newest := chain.newest()) for path in newest.held}
        for path, inode in all_files(self.world.disk.root).items():
            hidden = _HIDDEN.fullmatch(path)
            ours = isinstance(inode.owner, Process) and inode.owner.driver is driver
            if hidden and ours and int(hidden["slot"]) <= slot and path not in held:
                self.world.fail(f"I6: {path} is left after slot {slot}, and nobody needs it")

    def _pending_rows(self, record: Record) -> set[str]:
        waiting = [entry for target, entry in record.pending.items() if target not in self.visible]
        return {row for entry in waiting for row in rows_in_segment(self.staged_bytes(entry) or b"")}

    def staged_bytes(self, entry: dict[str, Any]) -> bytes | None:
        """What is there under the hidden name of an entry of a record, as it was recorded."""
        uploads = self.uploads.bucket.uploads if self.uploads else {}
        return read_staged(self.world.disk, uploads, entry)
