"""Where a sink notes what it has made visible, epoch by epoch, for readers and monitoring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from filesink.ledger.record import EpochRecord

CommittableT = TypeVar("CommittableT")


class EpochInventory(ABC, Generic[CommittableT]):
    """Gives each epoch its version, one order for all chains of a destination. Lives on the driver.

    Used by one thread.
    """

    @abstractmethod
    def newest(self) -> int:
        """The newest version that is known. Asked before each *decide*; goes on record."""

    def begin(self) -> None:
        """Have an inventory there, if the destination is new.

        Called before an epoch is completed that takes no effect and so gets no version: from then on the
        destination looks like one that was written without an inventory.
        """

    @abstractmethod
    def note(self, record: EpochRecord, committables: Sequence[CommittableT]) -> None:
        """Give the epoch of ``record`` its version, if it has none.

        Called when all its ``committables`` have taken effect and it was announced, before it is marked
        complete; without those that were given up. Replayable, by any driver. An error leaves the epoch
        decided and not complete.
        """
