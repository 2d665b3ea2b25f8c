"""Which of the files that readers see belong to complete epochs, as far as names and ledgers tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from filesink.inventory.chains import left_files
from filesink.ledger.directory import ledger_ids
from filesink.ledger.ledger import Ledger
from filesink.naming import PartName, name_of, sink_tag
from filesink.parts.committables import CommittableCodec, PendingFile
from filesink.storage.api import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Which visible files belong to epochs that are complete, and stay.

    Attributes:
        slots: tag of each chain to its newest slot that is.
        publishing: names of the files of batch writes that are at work; their tags are those of no chain.
        left: names of files that are replaced and not removed yet: their rows must not come back.
    """

    slots: Mapping[str, int]
    publishing: frozenset[str]
    left: frozenset[str] = frozenset()

    def has(self, name: str, part: PartName) -> bool:
        """Whether the file ``name``, of which ``part`` is told, does."""
        if name in self.left:
            return False
        if part.tag in self.slots:
            return part.slot <= self.slots[part.tag]
        return part.slot == 0 and name not in self.publishing


def complete_files(store: Store) -> Complete:
    """What the ledgers tell. Called after files were listed, since a file's record is older than the file."""
    slots: dict[str, int] = {}
    publishing: set[str] = set()
    left: set[str] = set()
    codec = CommittableCodec()
    for sink_id in ledger_ids(store):
        ledger = Ledger(store, sink_id)
        if not ledger.is_open:
            head, tag = ledger.history.newest(), sink_tag(sink_id)
            finished = -1 if head is None else head.finished_slot
            slots[tag] = min(finished, slots.get(tag, finished))
            left |= {name_of(file.path) for file in left_files(ledger)}
        for record in ledger.history.publishing():
            files = record.committables.decode(codec)
            publishing |= {name_of(file.target) for file in files if isinstance(file, PendingFile)}
    return Complete(slots=slots, publishing=frozenset(publishing), left=frozenset(left))
