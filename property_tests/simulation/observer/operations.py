"""What the observer asks of retention, rollback, erasure and of queries that replace what is there (I21).

Retention drops no more than what is beyond its limit. A rollback removes what became visible since the
version, and what it makes is a copy of what it removes. An erasure makes what it removes anew, without the
rows that it is for, and names all that has such rows, was there when it began and still is. What makes way
for a new query names all that readers see. All of them drop only files whose epochs are complete for good.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from filesink.operations.erasing.condition import Condition
from filesink.operations.erasing.erase import Erase, Erasure
from filesink.operations.replacing.refresh import Refresh
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.rollback import Rollback
from property_tests.simulation.observer.inventory_watch import InventoryWatch
from property_tests.simulation.observer.reading import Record
from property_tests.simulation.observer.view import View
from property_tests.simulation.workload import rows_in_segment
from property_tests.simulation.world.listing import all_files
from property_tests.simulation.world.nodes import Inode
from property_tests.simulation.world.world import Process

CAUSE = "operation"
AnyOperation = Retain | Rollback | Erase


class Operations:
    """Belongs to one observer. Knows what each process of an operator is at, and its records."""

    def __init__(self, view: View, inventory: InventoryWatch) -> None:
        self._view = view
        self._inventory = inventory
        self._begun: dict[Process, AnyOperation | Refresh] = {}
        self._named: set[str] = set()  # files of records that copy some
        self._with_rows: dict[Process, dict[Inode, set[str]]] = {}  # what had rows to erase when that began

    def begin(self, process: Process, operation: AnyOperation | Refresh) -> None:
        """A process begins."""
        self._begun[process] = operation
        if isinstance(operation, Erase):
            self._with_rows[process] = self._files_with(_rows_of(operation.condition))

    def erased(self, process: Process, erasure: Erasure) -> None:
        """An erasure has ended: what was there with such rows is gone, or named as not clean yet."""
        before, told = self._with_rows.pop(process), {one.path for one in erasure.left}
        for path, inode in all_files(self._view.world.disk.root).items():
            names = {path, *before.get(inode, ())}
            if self._view.looks and inode in before and told.isdisjoint(names):
                self._fail(f"I21: an erasure is certified, and {path} has such rows")

    def may_double(self, one: str, other: str) -> bool:
        """Whether one of two files is a copy, and the other goes."""
        return bool({one, other} & self._named)

    def decided(self, process: Process, record: Record) -> None:
        """Check what a record names."""
        view, left = self._view, self._view.replaced.left
        for name in record.replaced - left:
            if name not in view.visible:
                self._fail(f"I21: slot {record.slot} drops {name}, which no reader sees")
            elif not view.is_settled(name):
                self._fail(f"I21: slot {record.slot} drops {name}, whose epoch is not complete for good")
        match self._begun[process]:
            case Retain(retention=retention):
                self._check_retained(record, retention.keep or 0)
            case Rollback(version=version):
                self._check_rolled_back(record, version)
            case Erase(condition=condition):
                self._check_erased(record, _rows_of(condition))
            case Refresh():
                self._check_refreshed(record)

    def _check_retained(self, record: Record, keep: int) -> None:
        if record.pending:
            self._fail(f"I21: slot {record.slot} keeps less, and makes {min(record.pending)}")
        files = [name for name in self._view.decided if name in self._view.visible]
        data = {name for name in files if not name.startswith("_")} - self._view.replaced.left
        kept = data - record.replaced
        if len(kept) < min(keep, len(data)):
            self._fail(
                f"I21: slot {record.slot} keeps {len(kept)} files of {len(data)}, and should keep {keep}"
            )

    def _check_refreshed(self, record: Record) -> None:
        view = self._view
        ours = {name for name in view.decided if name in view.visible and not name.startswith("_")}
        if kept := ours - record.replaced - view.replaced.left:
            self._fail(f"I21: slot {record.slot} makes way for a new query, and keeps {min(kept)}")
        if record.pending:
            self._fail(f"I21: slot {record.slot} makes way for a new query, and makes {min(record.pending)}")

    def _check_rolled_back(self, record: Record, version: int) -> None:
        view = self._view
        rows: set[str] = set()
        for name in record.replaced & view.visible.keys():
            rows.update(view.visible[name].rows)
            nonce = view.decided[name][1].nonce if name in view.decided else ""
            is_older = self._inventory.versions.get(nonce, version) <= version
            if is_older and not record.pending and name not in view.replaced.ever_left:
                self._fail(f"I21: slot {record.slot} removes {name}, which version {version} has")
        for target, entry in record.pending.items():
            copied = set(rows_in_segment(view.staged_bytes(entry) or b""))
            if not copied <= rows:
                self._fail(f"I21: slot {record.slot} makes {target} of rows that it does not remove")
        if record.pending:
            self._named |= {*record.pending, *record.replaced}

    def _check_erased(self, record: Record, erased: set[str]) -> None:
        view = self._view
        removed, made = Counter[str](), Counter[str]()
        for name in (record.replaced - view.replaced.left) & view.visible.keys():
            rows = view.visible[name].rows
            removed.update(rows)
            if erased.isdisjoint(rows):
                self._fail(f"I21: slot {record.slot} erases nothing in {name}, and removes it")
        for entry in record.pending.values():
            made.update(rows_in_segment(view.staged_bytes(entry) or b""))
        if made != Counter(row for row in removed.elements() if row not in erased):
            self._fail(f"I21: slot {record.slot} removes other rows than those that it erases")
        self._named |= {*record.pending, *record.replaced}

    def _files_with(self, rows: set[str]) -> dict[Inode, set[str]]:
        """All files of Parquet, hidden ones too, in which one of ``rows`` is, with their names."""
        found: dict[Inode, set[str]] = {}
        for path, inode in all_files(self._view.world.disk.root).items():
            of_data = not path.startswith("_filesink")  # else of the inventory
            if of_data and not rows.isdisjoint(_rows_in(inode)):
                found.setdefault(inode, set()).add(path)
        return found

    def _fail(self, finding: str) -> None:
        self._view.world.fail(finding)


def _rows_of(condition: Condition) -> set[str]:
    kind = pa.string()
    return {literal.scalar("row", kind).as_py() for one in condition.comparisons for literal in one.literals}


def _rows_in(inode: Inode) -> list[str]:
    data = bytes(inode.data)
    try:
        return rows_in_segment(data) if data.startswith(b"PAR1") else []
    except ValueError:
        return []  # nobody has closed it
