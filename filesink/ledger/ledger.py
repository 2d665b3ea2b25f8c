"""The ledger: a durable chain of epoch records, and the steps decide and complete.

    _filesink/<sink id>/<slot>.record     created if absent: the point of no return of an epoch
                        <slot>.complete   the epoch's files are visible and announced; names its record
                        <slot>.mark       records up to this slot are folded away, and void if created again

Rules:
1. Record k+1 is created only by a driver that has read record k and knows it complete. So at most one record
   is ever half done, and two drivers cannot fork the state. Above the newest mark no record is missing. A gap
   means that this is another directory than before: an older copy, say, or what was hidden by a mount.
2. Nothing is ever replaced. A driver that finds a slot taken, or gets no reply, reads what is there.
3. Folding creates the mark before it deletes a record. A driver that slept may then find the slot of a
   deleted record free, and win it. So a record at or below the highest mark is void, and a driver that has
   won a slot looks for marks before it publishes (``counts``).
4. An unreadable record is not an absent one: it stops the sink. So does a ``.complete`` without its record.
5. An *open* chain is that of appending batch writes. They do not depend on each other: each takes the first
   free slot, and several may be half done; see ``open_chain``.
"""

from __future__ import annotations

from collections.abc import Callable

from filesink.errors import CommitStateUnknown, StorageError
from filesink.ledger.claims import Claims
from filesink.ledger.completion import Completion, End
from filesink.ledger.damage import unbroken, vanished
from filesink.ledger.folding import Folding
from filesink.ledger.head import Head, newest
from filesink.ledger.history import ChainHistory
from filesink.ledger.record import EMPTY, EpochRecord, Section
from filesink.ledger.slots import Slots
from filesink.ports import Clock
from filesink.storage.api import PutResult, Store
from filesink.storage.retrying import RetryingStore


class Ledger:
    """The chain of one sink. Every method looks at the store.

    Args:
        store: where it lives.
        sink_id: the name of its directory below ``_filesink``.
        check: raises if this sink could not have decided a record. Called with the record and its path,
            before the record is created and whenever it was read.

    Attributes:
        is_open: whether its records are independent of each other, see rule 5.
        history: reads the chain, and never writes to it.
        folding: removes records that are not needed any more.
    """

    def __init__(
        self, store: Store, sink_id: str, *, check: Callable[[EpochRecord, str], None] | None = None
    ) -> None:
        self.sink_id = sink_id
        self._store = store
        self._check = check or (lambda _record, _path: None)
        self._slots = Slots(store, sink_id, check=self._check)
        self.directory = self._slots.directory
        self.is_open = self.directory.is_open
        self.history = ChainHistory(self._slots)
        self.folding = Folding(self._slots)

    def head(self) -> Head | None:
        """The newest record, for a driver that will write the next one; ``None`` in a new chain.

        Raises:
            StateCorruptError: records are missing, or one cannot be read.
        """
        return newest(self._slots, unbroken(self.directory))

    def decide(self, record: EpochRecord) -> EpochRecord:
        """Create ``record`` in its slot; return the record that is there now. Equal nonces: this driver won.

        Raises:
            CommitStateUnknown: it is not known whether it was created. Discard nothing.
            StorageError: it was not created.
        """
        standing = self.place(record)
        if standing is None:
            raise vanished(self.directory.path_of(record.slot, "record"))
        return standing

    def place(self, record: EpochRecord) -> EpochRecord | None:
        """As ``decide``; ``None`` if the slot was taken and its record has been folded away since."""
        path = self.directory.path_of(record.slot, "record")
        self._check(record, path)
        try:
            result = self._store.put_if_absent(path, record.to_bytes())
        except StorageError as error:
            # A lost reply looks like a failure: only the slot itself can tell.
            standing = self._reread(record.slot, error)
            if standing is None:
                raise
            return standing
        if result is PutResult.CREATED:
            self.folding.note(record)
            return record
        return self.read(record.slot)

    def _reread(self, slot: int, failed: StorageError) -> EpochRecord | None:
        try:
            standing = self.read(slot)
            if standing is not None:
                # The sync of its name may have failed. What follows relies on the record, so sync first.
                self.directory.sync()
        except StorageError as error:
            raise CommitStateUnknown(
                f"creating {self.directory.path_of(slot, 'record')} failed ({failed.message}), and so did "
                f"checking whether it exists ({error.message}). Nothing was deleted; restart later",
                code="DECIDE_UNKNOWN",
            ) from failed
        return standing

    def counts(self, slot: int) -> bool:
        """Whether the record that was just created in ``slot`` is not void, see rule 3.

        Raises:
            StateCorruptError: ``GAP``, the record before it is missing. Publish nothing.
        """
        return not unbroken(self.directory).has_folded(slot)

    def complete(self, record: EpochRecord, *, left: Section = EMPTY, end: End = End.DONE) -> bool:
        """Note that the epoch of ``record`` is done; the next one removes what is ``left``.

        Returns:
            Whether that was noted now, and not before.
        """
        mark = Completion(nonce=record.nonce, left=left, end=end)
        path = self.directory.path_of(record.slot, "complete")
        return self._store.put_if_absent(path, mark.to_bytes()) is PutResult.CREATED

    def read(self, slot: int) -> EpochRecord | None:
        """The record in ``slot``, or ``None``."""
        return self._slots.read(slot)

    def with_patience(self, clock: Clock) -> Ledger:
        """The same chain, for a driver that waits where trying again may help; see ``RetryingStore``."""
        return Ledger(RetryingStore(self._store, clock), self.sink_id, check=self._check)

    def beside(self, sink_id: str) -> Ledger:
        """The chain of another sink below the same base path."""
        return Ledger(self._store, sink_id, check=self._check)

    def claims(self, name: str) -> Claims:
        """The claims of a ``txn_id``, which say which record it stands for."""
        return Claims(self._store, name, check=self._check)
