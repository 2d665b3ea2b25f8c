"""What the observer asks of files that readers see (I2, I3, I4)."""

from __future__ import annotations

from property_tests.simulation.observer.graces import Graces
from property_tests.simulation.observer.operations import Operations
from property_tests.simulation.observer.reading import Seen
from property_tests.simulation.observer.replacements import Replacements
from property_tests.simulation.observer.superseded import CAUSE, Superseded
from property_tests.simulation.observer.view import View
from property_tests.simulation.workload import rows_in
from property_tests.simulation.world.listing import visible_files
from property_tests.simulation.world.nodes import Inode


class VisibleWatch:
    """Belongs to one observer. Looks at each visible file that appears, disappears or changes."""

    def __init__(
        self,
        view: View,
        replacements: Replacements,
        superseded: Superseded,
        operations: Operations,
        graces: Graces,
    ) -> None:
        self._view = view
        self._replacements = replacements
        self._superseded = superseded
        self._operations = operations
        self._graces = graces

    def look_at_all(self) -> None:
        """List and read everything that readers see: I2, I3, I4."""
        for name in {**self._view.visible, **visible_files(self._view.world.disk.root)}:
            self.look_at(name)
        self._superseded.check_once()

    def look_at(self, name: str) -> None:
        """The same for one name. A call changes no other: bytes of a visible file are looked at apart."""
        inode, seen = self._view.world.disk.find(name), self._view.visible.get(name)
        if not isinstance(inode, Inode):
            if seen is not None:
                self._replacements.check_removed(name)
                self._graces.check_removed(name)
                self.forget(name)
        elif seen is None:
            self._appeared(name, inode)
        elif seen.inode is not inode or seen.data != inode.data or seen.mtime_ns != inode.mtime_ns:
            self._view.world.fail(f"I4: {name} has changed")

    def _appeared(self, name: str, inode: Inode) -> None:
        if name in self._view.foreign:
            self._view.visible[name] = Seen(inode, inode.number, bytes(inode.data), inode.mtime_ns, [])
            return
        if name not in self._view.decided:
            self._view.world.fail(f"I3: {name} is visible and no record names it")
        _, record = self._view.decided[name]
        if not self._view.is_claimed(record):
            self._view.world.fail(
                f"I2: {name} is visible and its txn_id stands for no write, or for another one"
            )
        if name not in self._view.replaced.files:  # else it was seen before, and may be back for a while
            self._view.check_durable(record.path, record.inode, "its record")
        size = record.pending[name]["size"]
        if len(inode.data) != size:
            self._view.world.fail(f"I3: {name} has {len(inode.data)} bytes, decided were {size}")
        if not inode.durable:
            self._view.world.fail(f"I3: {name} is visible before its bytes are durable")
        try:
            rows = rows_in(bytes(inode.data), name)
        except ValueError as error:
            self._view.world.fail(f"I3: {name} is not whole: {error}")
            return
        unknown = record.cause["kind"] == CAUSE and not record.pending[name]["rows"]  # joined by bytes
        if len(rows) != record.pending[name]["rows"] and not unknown:
            self._view.world.fail(
                f"I3: {name} has {len(rows)} rows, decided were {record.pending[name]['rows']}"
            )
        self._replacements.appeared(name, rows)
        self._take_rows(name, rows)
        self._view.visible[name] = Seen(inode, inode.number, bytes(inode.data), inode.mtime_ns, rows)
        self._view.shown[name] = rows

    def forget(self, name: str) -> None:
        """A file is gone, and with it its rows; a replaced one may come back if power fails."""
        rows = self._view.visible.pop(name).rows
        others = {row: self._superseded.other_with(row, name) for row in rows}
        for row, other in others.items():
            if other is None:
                del self._view.rows[row]
            else:
                self._view.rows[row] = other
        if self._replacements.is_named(name):
            self._view.replaced.rows.update(row for row, other in others.items() if other is None)

    def edit(self, name: str, content: bytes) -> None:
        """Somebody has put another file in the place of one."""
        self.forget(name)
        self._view.replaced.edited.add(name)
        self._view.foreign[name] = content
        self.look_at_all()

    def _take_rows(self, name: str, rows: list[str]) -> None:
        bucket = name.rpartition("/")[0]
        for row in rows:
            other = self._view.rows.get(row)
            if other and not self._may_double(name, other):
                self._view.world.fail(f"I2: row {row} is in {self._view.rows[row]} and in {name}")
            right = next(
                (at for source in self._view.sources if (at := source.directory(row)) is not None), None
            )
            if right != bucket:
                self._view.world.fail(f"I3: row {row} is in bucket {bucket!r}, its own is {right!r}")
            self._view.rows[row] = name

    def _may_double(self, one: str, other: str) -> bool:
        return self._superseded.may_double(one, other) or self._operations.may_double(one, other)

    def reread(self) -> None:
        """A power cut may have taken what was not complete."""
        view = self._view
        found = visible_files(view.world.disk.root)
        for name in [name for name in view.visible if name not in found]:
            sink, record = view.decided.get(name, ("", None))
            complete = record is None or record.slot in view.chains[sink].complete
            if complete and not self._replacements.is_named(name):
                view.world.fail(f"I1: {name} was complete and is gone after a power cut")
            self.forget(name)
        self.look_at_all()
