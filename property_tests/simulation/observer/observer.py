"""An outside reader that looks at every change, and knows by other means than filesink what is right.

Whenever a file appears, disappears or changes, it lists and reads the tree as any reader would, takes
the ledger's records apart by itself, and checks the invariants of ``docs/reliability.md``. The code
under test is not asked. Its parts share a ``View``; each asks its own questions.
"""

from __future__ import annotations

from typing import Any

from property_tests.simulation.observer.graces import Graces
from property_tests.simulation.observer.hidden_watch import HIDDEN, HiddenWatch
from property_tests.simulation.observer.inventory_watch import InventoryWatch
from property_tests.simulation.observer.ledger_watch import LedgerWatch
from property_tests.simulation.observer.operations import Operations
from property_tests.simulation.observer.reading import Chain, Record
from property_tests.simulation.observer.replacements import Replacements
from property_tests.simulation.observer.superseded import Superseded
from property_tests.simulation.observer.view import View
from property_tests.simulation.observer.visible_watch import VisibleWatch
from property_tests.simulation.workload import Source, rows_in_segment
from property_tests.simulation.world.listing import all_files, is_hidden
from property_tests.simulation.world.world import Process, World


class Observer(View):
    """Watches one disk.

    Args:
        world: whose disk.
        sources: all rows that are ever written.
    """

    def __init__(self, world: World, sources: list[Source]) -> None:
        super().__init__(world, sources)
        self.superseded = Superseded(self)
        self.inventory = InventoryWatch(self, self.superseded)
        self.graces = Graces(self, self.inventory)
        self.operations = Operations(self, self.inventory)
        self.replacements = Replacements(self, self.superseded, self.operations)
        self._files = VisibleWatch(self, self.replacements, self.superseded, self.operations, self.graces)
        self._ledgers = LedgerWatch(self, self.replacements, self.superseded, self.graces, self.inventory)
        self._hidden = HiddenWatch(self)
        world.watch = self.look
        world.on_cut = self._look_after_power_cut

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
            if name.startswith("_") and self._is_ours(process, name, made=kind == "made"):
                continue
            if not is_hidden(name):
                self._files.look_at(name)
                self.superseded.check_once()
            elif kind == "removed" and inode is not None:
                self._hidden.removed(process, name, inode)
            elif kind == "made" and (hidden := HIDDEN.fullmatch(name)):
                self.replacements.writes(hidden["tag"])

    def _is_ours(self, process: Process, name: str, *, made: bool) -> bool:
        """Look at a file of a ledger, of a txn_id or of the inventory; whether it was one."""
        return self._ledgers.look(process, name, made=made) or self.inventory.look(name, made=made)

    def look_at_all(self) -> None:
        """List and read everything that readers see: I2, I3, I4."""
        self._files.look_at_all()

    def edit(self, name: str, content: bytes) -> None:
        """Somebody has put another file in the place of one."""
        self._files.edit(name, content)

    def _look_after_power_cut(self) -> None:
        self.world.disk.changed.clear()
        self._ledgers.reread_claims()
        self.inventory.reread()
        self._ledgers.reread()
        self._files.reread()

    # --- asked by the driver's script

    def check_success(self, cause: dict[str, Any], rows: list[str]) -> None:
        """I1 and I8 for a micro-batch that was reported as done: each row visible or held, once."""
        there = self.rows.keys() | self.replaced.rows if self.looks else set(rows)
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
            hidden = HIDDEN.fullmatch(path)
            ours = isinstance(inode.owner, Process) and inode.owner.driver is driver
            if hidden and ours and int(hidden["slot"]) <= slot and path not in held:
                self.world.fail(f"I6: {path} is left after slot {slot}, and nobody needs it")

    def _pending_rows(self, record: Record) -> set[str]:
        waiting = [entry for target, entry in record.pending.items() if target not in self.visible]
        return {row for entry in waiting for row in rows_in_segment(self.staged_bytes(entry) or b"")}
