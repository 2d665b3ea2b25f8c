"""The inventory as the driver of a file sink sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from filesink.api import EpochInventory
from filesink.inventory.appending import Inventory
from filesink.inventory.drafts import draft_of
from filesink.parts.committables import Committable
from filesink.ports import Ports
from filesink.storage.api import Store
from filesink.storage.retrying import RetryingStore

if TYPE_CHECKING:
    from filesink.ledger.record import EpochRecord


class FileInventory(EpochInventory[Committable]):
    """Notes which files came and went with each epoch below one base path.

    Args:
        store: where the inventory lives; asked again where that may help.
        ports: of the driver.
        history_ms: see ``Inventory``.
    """

    def __init__(self, store: Store, ports: Ports, *, history_ms: int) -> None:
        self._ports = ports
        self._inventory = Inventory(
            RetryingStore(store, ports.clock), clock=ports.clock, ids=ports.ids, history_ms=history_ms
        )

    def newest(self) -> int:
        """See ``EpochInventory.newest``."""
        return self._inventory.newest()

    def begin(self) -> None:
        """See ``EpochInventory.begin``."""
        self._inventory.begin()

    def note(self, record: EpochRecord, committables: Sequence[Committable]) -> None:
        """See ``EpochInventory.note``. Does nothing on a path that was written without an inventory."""
        now_ms = self._ports.clock.now_ms()
        draft = draft_of(record, committables, visible_ms=now_ms, who=self._ports.who)
        self._inventory.append(draft, floor=record.after_version)
