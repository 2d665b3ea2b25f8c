"""What the observer asks of writes that replace files (I15).

Old files go only when all new ones are there for good, so that no reader ever sees neither; they go
all, and for good; and nothing goes that no record names, or that another epoch still needs.
"""

from __future__ import annotations

from property_tests.simulation.observer.operations import CAUSE as OPERATION
from property_tests.simulation.observer.operations import Operations
from property_tests.simulation.observer.reading import Record, tag_of
from property_tests.simulation.observer.superseded import CAUSE, Superseded
from property_tests.simulation.observer.view import EXCLUSIVE, View
from property_tests.simulation.world.world import Process


class Replacements:
    """Belongs to one observer. ``copies`` are ledgers that only remember an offline compaction."""

    def __init__(self, view: View, superseded: Superseded, operations: Operations) -> None:
        self.copies: set[str] = set()
        self._view = view
        self._replaced = view.replaced
        self._superseded = superseded
        self._operations = operations
        self._world = view.world
        self._finished: set[str] = set()
        self._before: dict[Process, set[str]] = {}
        self._begun: dict[str, int] = {}  # tag of a write to the newest slot when its first file was made
        self._txns: dict[str, int] = {}

    def begin(self, process: Process) -> None:
        """A write begins: what is there now and belongs to a complete epoch must go."""
        if self._view.looks:
            self._before[process] = self._settled()

    def _settled(self) -> set[str]:
        return {name for name in self._view.visible if self._view.is_settled(name)}

    def writes(self, tag: str) -> None:
        """A file is made that bears ``tag``."""
        if tag not in self._begun:
            chain = self._view.chains.get(EXCLUSIVE)
            self._begun[tag] = -1 if chain is None else chain.newest_slot()

    def decided(self, process: Process, record: Record) -> None:
        """Check what a record of the exclusive ledger names."""
        self._replaced.files |= record.replaced
        if self._replaced.left - record.replaced:
            self._fail(
                f"I15: slot {record.slot} forgets {min(self._replaced.left - record.replaced)}, which is left"
            )
        if record.cause["kind"] == CAUSE:
            self._superseded.decided(record)
            return
        if record.cause["kind"] == OPERATION:
            self._operations.decided(process, record)
            return
        self._txns[record.cause["txn_id"]] = record.slot
        buckets = {target.rpartition("/")[0] for target in record.pending}
        everywhere = record.cause["mode"] == "overwrite"
        self._check_apart(record)
        for name in record.replaced - self._replaced.left:
            if name not in self._view.visible:
                self._fail(f"I15: slot {record.slot} replaces {name}, which no reader sees")
            if not self._view.is_settled(name):
                self._fail(f"I15: slot {record.slot} replaces {name}, whose epoch is not complete for good")
            if not everywhere and name.rpartition("/")[0] not in buckets:
                self._fail(f"I15: slot {record.slot} replaces {name} in a bucket without data")
        for name in self._before.get(process, set()) & set(self._view.visible):
            due = everywhere or name.rpartition("/")[0] in buckets
            if due and name not in record.replaced:
                self._fail(f"I15: slot {record.slot} does not replace {name}, which was there before")

    def _check_apart(self, record: Record) -> None:
        """No other write has come to a bucket of this one since its first file was made (I18)."""
        begun = self._begun.get(tag_of(record.cause.get("writer", "")), record.slot)
        for slot, other in self._view.chains[EXCLUSIVE].records.items():
            both = self._touched(record) & self._touched(other) if begun < slot < record.slot else set()
            if both:
                self._fail(f"I18: slots {slot} and {record.slot} both replace what is in {min(both)!r}")

    def _touched(self, record: Record) -> set[str]:
        """Buckets in which a record adds or removes files, but for what earlier ones have left."""
        paths = record.pending.keys() | (record.replaced - self._replaced.ever_left)
        return {path.rpartition("/")[0] for path in paths}

    def is_copy(self, sink: str, record: Record | None) -> bool:
        """Whether a ledger, or its new ``record``, only remembers what the exclusive one has decided."""
        cause = {} if sink == EXCLUSIVE or record is None else record.cause
        if cause.get("kind") == CAUSE:
            self.copies.add(sink)
        return sink in self.copies

    def check_removed(self, name: str) -> None:
        """A file that readers saw has vanished: was it replaced, by files that are there?"""
        record = self._newest()
        if record is None or name not in record.replaced:
            self._fail(f"I4: {name} has vanished")
            return
        if name in self._replaced.left:  # by an epoch that is complete, be what it may with those after it
            return
        for target in record.pending:
            inode = self._world.disk.find(target)
            if inode is None or self._world.disk.find_synced(target) is not inode:
                self._fail(f"I15: {name} is gone before {target} is there for good")
        if record.cause["kind"] == CAUSE and name not in self._replaced.ever_left:
            self._superseded.check_removed(name)

    def is_named(self, name: str) -> bool:
        """Whether the newest record lets a power cut take a file."""
        record = self._newest()
        return record is not None and (name in record.replaced or name in self._replaced.left)

    def appeared(self, name: str, rows: list[str]) -> None:
        """A file is seen: a removal that was not durable may be undone, unless the epoch was complete."""
        if name in self._finished:
            self._fail(f"I15: {name} was replaced and is back")
        self._replaced.rows.difference_update(rows)

    def completed(self, record: Record, left: frozenset[str]) -> None:
        """Everything that a complete epoch replaces is gone, and does not come back, but for what is left."""
        if left - record.replaced:
            self._fail(f"I15: slot {record.slot} has left {min(left - record.replaced)}, which stays")
        self._replaced.left = left
        self._replaced.ever_left |= left
        for name in record.replaced - self._replaced.edited - left:
            if name in self._view.visible:
                self._fail(f"I15: slot {record.slot} is complete and {name} is still there")
            if self._world.disk.find_synced(name) is not None:
                self._fail(f"I15: slot {record.slot} is complete and a power cut brings {name} back")
            self._finished.add(name)

    def is_forgotten(self, record: Record, left: frozenset[str]) -> bool:
        """Whether an epoch that does nothing says that nothing is left, though something was."""
        return bool(record.path.startswith(f"_filesink/{EXCLUSIVE}/") and left != self._replaced.left)

    def taken_back(self, record: Record) -> None:
        """A power cut has taken a record that was not complete."""
        self._txns.pop(record.cause.get("txn_id", ""), None)

    def check_success(self, txn_id: str, rows: list[str]) -> None:
        """A write was reported as done: it is decided, and its rows are there, or replaced since then."""
        if not self._view.looks:
            return
        if txn_id not in self._txns:
            self._fail(f"I8: {txn_id} is reported as done and not decided")
        missing = [row for row in rows if row not in self._view.rows and row not in self._replaced.rows]
        if missing:
            self._fail(f"I1: row {missing[0]} of {txn_id} is not visible")

    def _newest(self) -> Record | None:
        chain = self._view.chains.get(EXCLUSIVE)
        return None if chain is None else chain.newest()

    def _fail(self, finding: str) -> None:
        self._world.fail(finding)
