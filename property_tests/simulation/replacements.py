"""What the observer asks of writes that replace files (I15).

Old files go only when all new ones are there for good, so that no reader ever sees neither; they go
all, and for good; and nothing goes that no record names, or that another epoch still needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from property_tests.simulation.reading import Record, tag_of
from property_tests.simulation.superseded import CAUSE

if TYPE_CHECKING:
    from property_tests.simulation.observer import Observer
    from property_tests.simulation.world import Process

EXCLUSIVE = "exclusive"  # the ledger of all of them


class Replacements:
    """Belongs to one observer.

    ``rows`` are those of files that were replaced and are gone, ``files`` all that a record has named,
    ``edited`` those that somebody has put others in the place of, ``left`` what the newest complete epoch
    could not remove; ``copies`` are ledgers that only
    remember an offline compaction.
    """

    def __init__(self, observer: Observer) -> None:
        self.rows: set[str] = set()
        self.files: set[str] = set()
        self.edited: set[str] = set()
        self.left: frozenset[str] = frozenset()
        self.ever_left: set[str] = set()
        self.copies: set[str] = set()
        self._observer = observer
        self._world = observer.world
        self._finished: set[str] = set()
        self._before: dict[Process, set[str]] = {}
        self._begun: dict[str, int] = {}  # tag of a write to the newest slot when its first file was made
        self._txns: dict[str, int] = {}

    def begin(self, process: Process) -> None:
        """A write begins: what is there now and belongs to a complete epoch must go."""
        if self._observer.looks:
            self._before[process] = self._settled()

    def _settled(self) -> set[str]:
        return {name for name in self._observer.visible if self.is_settled(name)}

    def writes(self, tag: str) -> None:
        """A file is made that bears ``tag``."""
        if tag not in self._begun:
            chain = self._observer.chains.get(EXCLUSIVE)
            self._begun[tag] = -1 if chain is None else chain.newest_slot()

    def decided(self, process: Process, record: Record) -> None:
        """Check what a record of the exclusive ledger names."""
        self.files |= record.replaced
        if self.left - record.replaced:
            self._fail(f"I15: slot {record.slot} forgets {min(self.left - record.replaced)}, which is left")
        if record.cause["kind"] == CAUSE:
            self._observer.superseded.decided(record)
            return
        self._txns[record.cause["txn_id"]] = record.slot
        buckets = {target.rpartition("/")[0] for target in record.pending}
        everywhere = record.cause["mode"] == "overwrite"
        self._check_apart(record)
        for name in record.replaced - self.left:
            if name not in self._observer.visible:
                self._fail(f"I15: slot {record.slot} replaces {name}, which no reader sees")
            if not self.is_settled(name):
                self._fail(f"I15: slot {record.slot} replaces {name}, whose epoch is not complete for good")
            if not everywhere and name.rpartition("/")[0] not in buckets:
                self._fail(f"I15: slot {record.slot} replaces {name} in a bucket without data")
        for name in self._before.get(process, set()) & set(self._observer.visible):
            due = everywhere or name.rpartition("/")[0] in buckets
            if due and name not in record.replaced:
                self._fail(f"I15: slot {record.slot} does not replace {name}, which was there before")

    def _check_apart(self, record: Record) -> None:
        """No other write has come to a bucket of this one since its first file was made (I18)."""
        begun = self._begun.get(tag_of(record.cause.get("writer", "")), record.slot)
        for slot, other in self._observer.chains[EXCLUSIVE].records.items():
            both = self._touched(record) & self._touched(other) if begun < slot < record.slot else set()
            if both:
                self._fail(f"I18: slots {slot} and {record.slot} both replace what is in {min(both)!r}")

    def _touched(self, record: Record) -> set[str]:
        """Buckets in which a record adds or removes files, but for what earlier ones have left."""
        paths = record.pending.keys() | (record.replaced - self.ever_left)
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
        if name in self.left:  # by an epoch that is complete, be what it may with those after it
            return
        for target in record.pending:
            inode = self._world.disk.find(target)
            if inode is None or self._world.disk.find_synced(target) is not inode:
                self._fail(f"I15: {name} is gone before {target} is there for good")
        if record.cause["kind"] == CAUSE and name not in self.ever_left:
            self._observer.superseded.check_removed(name)

    def is_named(self, name: str) -> bool:
        """Whether the newest record lets a power cut take a file."""
        record = self._newest()
        return record is not None and (name in record.replaced or name in self.left)

    def appeared(self, name: str, rows: list[str]) -> None:
        """A file is seen: a removal that was not durable may be undone, unless the epoch was complete."""
        if name in self._finished:
            self._fail(f"I15: {name} was replaced and is back")
        self.rows.difference_update(rows)

    def completed(self, record: Record, left: frozenset[str]) -> None:
        """Everything that a complete epoch replaces is gone, and does not come back, but for what is left."""
        if left - record.replaced:
            self._fail(f"I15: slot {record.slot} has left {min(left - record.replaced)}, which stays")
        self.left = left
        self.ever_left |= left
        for name in record.replaced - self.edited - left:
            if name in self._observer.visible:
                self._fail(f"I15: slot {record.slot} is complete and {name} is still there")
            if self._world.disk.find_synced(name) is not None:
                self._fail(f"I15: slot {record.slot} is complete and a power cut brings {name} back")
            self._finished.add(name)

    def is_forgotten(self, record: Record, left: frozenset[str]) -> bool:
        """Whether an epoch that does nothing says that nothing is left, though something was."""
        return bool(record.path.startswith(f"_filesink/{EXCLUSIVE}/") and left != self.left)

    def taken_back(self, record: Record) -> None:
        """A power cut has taken a record that was not complete."""
        self._txns.pop(record.cause.get("txn_id", ""), None)

    def check_success(self, txn_id: str, rows: list[str]) -> None:
        """A write was reported as done: it is decided, and its rows are there, or replaced since then."""
        if not self._observer.looks:
            return
        if txn_id not in self._txns:
            self._fail(f"I8: {txn_id} is reported as done and not decided")
        missing = [row for row in rows if row not in self._observer.rows and row not in self.rows]
        if missing:
            self._fail(f"I1: row {missing[0]} of {txn_id} is not visible")

    def is_settled(self, name: str) -> bool:
        """Whether nobody needs a visible file any more to carry its epoch through, power cut or not."""
        observer = self._observer
        if name not in observer.decided:
            return name in observer.foreign
        sink, record = observer.decided[name]
        if record.slot <= observer.chains[sink].mark:
            return True
        if record.slot not in observer.chains[sink].complete:
            return False
        # Of one chain, only the newest epoch is ever carried through, so a power cut changes nothing.
        done = f"_filesink/{sink}/{record.slot:012d}.complete"
        return sink == EXCLUSIVE or self._world.disk.find_synced(done) is not None

    def _newest(self) -> Record | None:
        chain = self._observer.chains.get(EXCLUSIVE)
        return None if chain is None else chain.newest()

    def _fail(self, finding: str) -> None:
        self._world.fail(finding)
