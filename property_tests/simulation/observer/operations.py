"""What the observer asks of retention and rollback (I21).

Retention drops no more than what is beyond its limit. A rollback removes what became visible since the
version, and what it makes is a copy of what it removes. Both name only files whose epochs are complete for
good.
"""

from __future__ import annotations

from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.rollback import Rollback
from property_tests.simulation.observer.inventory_watch import InventoryWatch
from property_tests.simulation.observer.reading import Record
from property_tests.simulation.observer.view import View
from property_tests.simulation.workload import rows_in_segment
from property_tests.simulation.world.world import Process

CAUSE = "operation"


class Operations:
    """Belongs to one observer. Knows what each process of an operator is at, and its records."""

    def __init__(self, view: View, inventory: InventoryWatch) -> None:
        self._view = view
        self._inventory = inventory
        self._begun: dict[Process, Retain | Rollback] = {}
        self._named: set[str] = set()  # files of records that copy some

    def begin(self, process: Process, operation: Retain | Rollback) -> None:
        """A process begins."""
        self._begun[process] = operation

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

    def _fail(self, finding: str) -> None:
        self._view.world.fail(finding)
