"""What the files in the slots of one chain say: its records, and the completions beside them.

Nothing is believed that does not belong where it lies, and what cannot be read is not taken for absent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from filesink.ledger.completion import Completion, completion_of
from filesink.ledger.damage import foreign, vanished
from filesink.ledger.directory import LedgerDirectory
from filesink.ledger.record import EpochRecord
from filesink.storage.api import Store


class Slots:
    """The slots of one chain. Every method looks at the store.

    Args:
        store: where they are.
        sink_id: the name of their directory below ``_filesink``.
        check: see ``filesink.ledger.ledger.Ledger``.
    """

    def __init__(self, store: Store, sink_id: str, *, check: Callable[[EpochRecord, str], None]) -> None:
        self.store = store
        self.directory = LedgerDirectory(store, sink_id)
        self._check = check

    def read(self, slot: int) -> EpochRecord | None:
        """The record in ``slot``, or ``None``."""
        path = self.directory.path_of(slot, "record")
        data = self.store.read(path)
        if data is None:
            return None
        record = EpochRecord.from_bytes(data, where=path)
        if record.slot != slot or record.sink_id != self.directory.sink_id:
            raise foreign(record, path, self.directory)
        self._check(record, path)
        return record

    def require(self, slot: int) -> EpochRecord:
        """The record in ``slot``, which was listed."""
        record = self.read(slot)
        if record is None:
            raise vanished(self.directory.path_of(slot, "record"))
        return record

    def completion(self, record: EpochRecord) -> Completion:
        """What the completion says that stands beside ``record``, and was listed."""
        path = self.directory.path_of(record.slot, "complete")
        data = self.store.read(path)
        if data is None:
            raise vanished(path)
        found = completion_of(record, data, where=path)
        if found.left.data:
            self._check(replace(record, committables=found.left), path)
        return found
