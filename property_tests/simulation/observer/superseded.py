"""What the observer asks of offline compaction (I17).

A row may be seen twice only while one of its files is named as merged by the other's record; readers
who leave out what is named see each row once, at any time. A merged file has the rows of its inputs,
and no input goes before it is there for good.
"""

from __future__ import annotations

from collections import Counter

from property_tests.simulation.observer.reading import Record
from property_tests.simulation.observer.view import View
from property_tests.simulation.workload import rows_in_segment

CAUSE = "offline-compaction"


class Superseded:
    """Belongs to one observer. Knows the records of offline compaction, by slot, the newest last."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._records: dict[int, Record] = {}

    def decided(self, record: Record) -> None:
        """Check what a record names: settled files, whose rows are in the new ones."""
        view = self._view
        left = view.replaced.left  # by an epoch before, be it an overwrite
        for name in _named(record) - left:
            if name not in view.visible:
                view.world.fail(f"I17: slot {record.slot} merges {name}, which no reader sees")
            if not view.is_settled(name):
                view.world.fail(
                    f"I17: slot {record.slot} merges {name}, whose epoch is not complete for good"
                )
        before = self._rows(self.left_out() | left)
        self._records[record.slot] = record
        after = self._rows(_named(record))
        for entry in record.pending.values():
            after.update(rows_in_segment(view.staged_bytes(entry) or b""))
        if before != after:
            view.world.fail(f"I17: slot {record.slot} has other rows than what it merges")

    def taken_back(self, record: Record) -> None:
        """A power cut has taken a record that was not complete."""
        self._records.pop(record.slot, None)

    def may_double(self, one: str, other: str) -> bool:
        """Whether a record names one of two files as merged."""
        return any({one, other} & _named(record) for record in self._records.values())

    def left_out(self) -> set[str]:
        """What readers leave out who know of the newest record."""
        if not self._records:
            return set()
        newest = self._records[max(self._records)]
        return {name for name, by in newest.superseded if by in self._view.visible}

    def check_removed(self, name: str) -> None:
        """A file goes when its rows are in another one that is there for good."""
        view = self._view
        for row in view.visible[name].rows:
            owner = self.other_with(row, name)
            inode = None if owner is None else view.world.disk.find(owner)
            if owner is None or view.world.disk.find_synced(owner) is not inode:
                view.world.fail(f"I17: {name} is gone and row {row} is in no other file for good")

    def other_with(self, row: str, name: str) -> str | None:
        """A visible file but ``name`` that has ``row``."""
        visible = self._view.visible
        return next((other for other, seen in visible.items() if other != name and row in seen.rows), None)

    def check_once(self) -> None:
        """Nobody who leaves out what is named sees a row twice."""
        if self._records:
            doubled = [row for row, times in self._rows(self.left_out()).items() if times > 1]
            if doubled:
                self._view.world.fail(f"I17: row {doubled[0]} is read twice")

    def check_end(self) -> None:
        """When all graces are over, nobody at all does."""
        doubled = [row for row, times in self._rows(set()).items() if times > 1]
        if doubled:
            self._view.world.fail(f"I17: row {doubled[0]} is in two files at the end")

    def _rows(self, left_out: set[str]) -> Counter[str]:
        visible = self._view.visible
        return Counter(row for name, seen in visible.items() if name not in left_out for row in seen.rows)


def _named(record: Record) -> set[str]:
    return {*record.replaced, *(name for name, _ in record.superseded)}
