"""An epoch that was decided before comes again: nothing is written, the input is drained and compared."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from filesink.api import Sink
from filesink.commit.outcome import Outcome, later_outcome
from filesink.commit.replay import (
    EpochOptions,
    OnRepeatedTxn,
    check_fingerprint,
    check_rows,
    check_same_data,
)
from filesink.ledger.record import BatchWrite, Cause, EpochRecord, MicroBatch
from filesink.ports import WriteJob

C = TypeVar("C")


class Repeats(Generic[C]):
    """Compares what comes again with what was decided.

    Args:
        sink: whose committables are in the records.
        options: what to do where the two differ.
    """

    def __init__(self, sink: Sink[Any, C, Any], options: EpochOptions) -> None:
        self._sink = sink
        self._options = options
        self._skips = options.on_repeated_txn is OnRepeatedTxn.SKIP

    def replay(self, decided: EpochRecord, cause: Cause, job: WriteJob) -> Outcome[C]:
        """Run the input once more, for a stateful query needs it, and compare it with the record.

        Raises:
            CheckpointMismatchError, ReplayMismatchError, RepeatedTxnError: it is other input.
        """
        if isinstance(cause, MicroBatch) and isinstance(decided.cause, MicroBatch):
            check_fingerprint(decided.cause, cause)
        if isinstance(cause, BatchWrite) and self._skips:
            return self.outcome_of(decided, cause, decided.rows, decided.digest)
        return self.outcome_of(decided, cause, job.count_rows(), job.digest())

    def outcome_of(self, decided: EpochRecord, cause: Cause, rows: int, digest: str) -> Outcome[C]:
        """That of an epoch that was decided before, for input of so many rows. Raises as ``replay``."""
        committables = decided.committables.decode(self._sink.committable_codec)
        match cause:
            case MicroBatch(batch_id=batch_id):
                check_rows(decided, batch_id, rows, self._options.on_replay_mismatch)
            case BatchWrite(txn_id=txn_id) if txn_id and not self._skips:
                check_same_data(decided, rows, digest)
            case _:
                pass
        return later_outcome(decided, committables)
