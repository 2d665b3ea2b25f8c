"""What the observer asks of files that are kept for readers who hold a snapshot (I20).

A file that a record replaces with a grace is not removed by that epoch. Its time begins when the inventory
has the new version; no later epoch changes it, and nobody removes the file before it is over, or while a
version has it. The overwrites of a history all have one grace, most often none.
"""

from __future__ import annotations

from random import Random

from property_tests.simulation.observer.inventory_watch import InventoryWatch
from property_tests.simulation.observer.reading import Record
from property_tests.simulation.observer.view import EXCLUSIVE, View
from property_tests.simulation.world.clock import SimClock

_GRACES_MS = (15, 60, 300, 5000)


def draw_grace(seed: int) -> int:
    """The grace of the overwrites of a seed, in half of all histories; by a source of chance of its own."""
    random = Random(f"grace {seed}")
    return random.choice(_GRACES_MS) if random.random() < 0.5 else 0


class Graces:
    """Belongs to one observer.

    Attributes:
        until: by path, of what is kept now: milliseconds since 1970 UTC.
        clock_is_sound: whether times tell anything.
    """

    def __init__(self, view: View, inventory: InventoryWatch) -> None:
        self.until: dict[str, int] = {}
        self.clock_is_sound = True
        self._view = view
        self._inventory = inventory

    def completed(self, record: Record, times: dict[str, int]) -> None:
        """An epoch of the exclusive ledger is complete, and says until when it keeps what."""
        noted_ms = self._inventory.noted_ms[record.nonce]
        for name, grace_ms in record.graces.items():
            if name not in times:
                self._fail(f"slot {record.slot} does not say that it keeps {name}")
            elif times[name] < noted_ms + grace_ms and self.clock_is_sound:
                self._fail(f"slot {record.slot} keeps {name} for less than {grace_ms} ms")
        for name in times.keys() & self.until.keys():
            if times[name] != self.until[name] and name not in self._view.replaced.edited:
                self._fail(f"slot {record.slot} changes the time of {name}")
        self.until = {name: until for name, until in times.items() if until}

    def begin_anew(self, record: Record) -> None:
        """A power cut has taken the completion, which said when the graces of ``record`` began."""
        for name in record.graces:
            self.until.pop(name, None)

    def check_removed(self, name: str) -> None:
        """A file that readers saw has vanished: was its time over?"""
        chain = self._view.chains.get(EXCLUSIVE)
        newest = None if chain is None else chain.newest()
        if chain and newest and name in newest.graces and newest.slot not in chain.complete:
            self._fail(f"slot {newest.slot} removes {name}, which it is to keep")
        if name in self.until:
            if self._inventory.is_live(name):
                self._fail(f"{name} is gone and a version has it")
            if SimClock(self._view.world).now_ms() < self.until[name] and self.clock_is_sound:
                self._fail(f"{name} is gone before {self.until[name]}")

    def _fail(self, what: str) -> None:
        self._view.world.fail(f"I20: {what}")
