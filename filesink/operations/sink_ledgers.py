"""The ledgers below a base path, and which of them belong to one sink."""

from __future__ import annotations

from filesink.errors import ConcurrentDriverError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.directory import APPENDS, ledger_ids
from filesink.ledger.identity import EXCLUSIVE, OF_STREAMS, append_sink_id, stream_sink_id, txn_name
from filesink.ledger.ledger import Ledger
from filesink.ledger.open_chain import append
from filesink.ledger.record import BatchWrite, EpochRecord, TakenBack
from filesink.ports import Clock
from filesink.storage.api import Store


class SinkLedgers:
    """Opens the ledgers of one base path. To a sink without a uid all of them belong.

    Args:
        tiers: the sink.
        store: where the ledgers are.
        clock: measures how long a store that does not answer is asked again.
        chain: the id of the only ledger that is asked for; ``None`` for all that belong to the sink.
    """

    def __init__(self, tiers: FileTiers, store: Store, clock: Clock, chain: str | None = None) -> None:
        self._tiers = tiers
        self._store = store
        self._clock = clock
        self._chain = chain

    def all(self) -> list[Ledger]:
        """Every ledger, the sink's own first: what is wrong with another may end the call."""
        own = self._chain if self._tiers.uid is None else stream_sink_id(self._tiers.uid, "")
        ids = sorted(ledger_ids(self._store), key=lambda sink_id: sink_id != own)
        return [self._tiers.open_ledger(sink_id).with_patience(self._clock) for sink_id in ids]

    def may_be_ours(self, sink_id: str) -> bool:
        """As ``is_ours``, but known from the name of the chain alone, without reading it."""
        if self._chain is not None:
            return sink_id == self._chain
        uid = self._tiers.uid
        others = (*OF_STREAMS, APPENDS)
        return uid is None or sink_id in _chains_of(uid) or not sink_id.startswith(others)

    def is_ours(self, ledger: Ledger, record: EpochRecord) -> bool:
        """Whether ``ledger``, whose newest record is ``record``, belongs to this sink."""
        if self._chain is not None:
            return ledger.sink_id == self._chain
        uid, cause = self._tiers.uid, record.cause
        if isinstance(cause, TakenBack) and (undone := ledger.read(cause.slot)):
            cause = undone.cause
        if uid is None or record.sink_id == EXCLUSIVE or record.sink_id in _chains_of(uid):
            return True
        # Earlier releases: a txn_id had a chain of its own.
        return isinstance(cause, BatchWrite) and record.sink_id == txn_name(uid, cause.txn_id)


def go_on_with(record: EpochRecord, ledger: Ledger) -> None:
    """Decide an epoch of ``recover``, which does not wait for others.

    Raises:
        ConcurrentDriverError: a query goes on with the chain.
    """
    if ledger.is_open:
        append(record, ledger)
    elif ledger.decide(record).nonce != record.nonce:
        raise ConcurrentDriverError(
            f"a query of sink '{record.sink_id}' is running; stop it before recover()",
            code="CONCURRENT_DRIVER",
        )


def _chains_of(uid: str) -> tuple[str, ...]:
    return stream_sink_id(uid, ""), append_sink_id(uid)
