"""When an epoch comes back: find what was decided, and prove that it is the same input.

Delta, Iceberg and Spark's own sink skip a batch id that they have seen. A checkpoint that was rolled
back, cloned or edited brings the same id with other rows, and these are lost in silence. Here a
replay must have the same offsets and the same number of rows, or it stops the query.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from filesink.api import EpochContext
from filesink.errors import (
    CheckpointMismatchError,
    ConcurrentDriverError,
    ConfigError,
    IdentityError,
    InternalError,
    RepeatedTxnError,
    ReplayMismatchError,
    ReplayTooOldError,
)
from filesink.ledger.folding import KEEP_BATCHES
from filesink.ledger.head import Head
from filesink.ledger.identity import OnNewQuery, check_stream, streams_beside
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite, Cause, EpochRecord, MicroBatch
from filesink.ledger.transactions import find_write
from filesink.ports import Ports

log = logging.getLogger("filesink")


class OnReplayMismatch(Enum):
    """What to do when a decided micro-batch comes back with another number of rows."""

    RAISE = "raise"
    KEEP_FIRST = "keep_first"


class OnRepeatedTxn(Enum):
    """What to do when a ``txn_id`` comes back with other data."""

    RAISE = "raise"
    SKIP = "skip"
    REPLACE = "replace"


class OnGap(Enum):
    """What to do when batches were skipped. ``REFUSE`` is for queries that send each batch to the sink."""

    LOG = "log"
    REFUSE = "refuse"


class History(Enum):
    """Whether earlier drivers may have left something of this sink behind."""

    POSSIBLE = "possible"
    NONE = "none"


#: Removes all that readers see, in an epoch of its own. The second argument is called when it is settled what
#: goes, and raises if the chain of the query has got another epoch by then.
MakeWay = Callable[[Ports, Callable[[], object]], object]


def _no_way(_ports: Ports, _check: Callable[[], object]) -> object:
    raise InternalError("this sink cannot replace what is there; please report this", code="ON_NEW_QUERY")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOptions:
    """What a user may choose about epochs.

    Attributes:
        keep_batches: bounds how far a replay may go back.
        make_way: called when a query replaces what others have written, see ``OnNewQuery.REPLACE``: after its
            first tasks, before their epoch is decided, and again if that epoch fails.
    """

    on_new_query: OnNewQuery = OnNewQuery.REFUSE
    on_replay_mismatch: OnReplayMismatch = OnReplayMismatch.RAISE
    keep_batches: int = KEEP_BATCHES
    history: History = History.POSSIBLE
    on_gap: OnGap = OnGap.LOG
    on_repeated_txn: OnRepeatedTxn = OnRepeatedTxn.RAISE
    make_way: MakeWay = _no_way


def find_decided(
    cause: Cause, head: Head | None, ledger: Ledger, options: EpochOptions
) -> EpochRecord | None:
    """The record of this very cause, or ``None`` if it has not been decided.

    Raises:
        IdentityError: see ``filesink.ledger.identity.check_stream``; or batches before this one are missing.
        ReplayTooOldError: it was decided, but its record has been folded away.
        ConcurrentDriverError: see ``filesink.ledger.transactions.find_write``.
    """
    match cause:
        case BatchWrite(remembered_in=name) if name:
            return find_write(cause, ledger)
        case MicroBatch():
            last = check_stream(cause, head, ledger, on_new_query=options.on_new_query)
            if takes_over(cause, head, options.on_new_query):
                _check_alone(ledger)
            if last is not None and cause.batch_id <= last.batch_id:
                return _find(cause, last, ledger, options.keep_batches)
            if last is not None and cause.batch_id > last.batch_id + 1:
                _check_gap(cause, last, ledger, options)
        case _:
            pass
    return None


def takes_over(cause: Cause, head: Head | None, on_new_query: OnNewQuery) -> bool:
    """Whether ``cause`` is the first batch of a query that replaces what others have left here.

    Asked of causes that ``find_decided`` has let in.
    """
    last = None if head is None else head.record.last_batch
    if on_new_query is not OnNewQuery.REPLACE or last is None or not isinstance(cause, MicroBatch):
        return False
    return last.query_id != cause.query_id


def continued_by(cause: Cause, head: Head | None, on_new_query: OnNewQuery) -> Head | None:
    """The record that ``cause`` goes on with: that of ``head``, unless it replaces all that is there."""
    return None if takes_over(cause, head, on_new_query) else head


def _check_alone(ledger: Ledger) -> None:
    """Raise if another stream writes below this path: what it has written, it would not write again."""
    other = next(streams_beside(ledger), None)
    if other is not None:
        raise IdentityError(
            f"a new query of sink '{ledger.sink_id}' would replace all that the path holds, and "
            f"'{other[0].record.sink_id}', another stream, has written here, too: it would not write its "
            "rows again. Nothing was changed. Give each stream a path of its own; or empty the path with a "
            "batch write in mode 'overwrite', and start this query with on_new_query='append'",
            code="OTHER_STREAM",
        )


def _check_gap(cause: MicroBatch, last: MicroBatch, ledger: Ledger, options: EpochOptions) -> None:
    what = (
        f"batch {cause.batch_id} comes after batch {last.batch_id}: the batches between were never "
        f"offered to sink '{ledger.sink_id}'"
    )
    if options.on_gap is OnGap.LOG or options.on_new_query is OnNewQuery.APPEND:
        log.warning("%s", what)
        return
    raise IdentityError(
        f"{what}, and Spark will not send them again. The base path is older than the checkpoint; it may be "
        "a backup. Nothing was written. Restore both from the same time, or go on without those batches with "
        ".on_new_query('append')",
        code="BATCHES_MISSING",
    )


def _find(cause: MicroBatch, last: MicroBatch, ledger: Ledger, kept: int) -> EpochRecord:
    record = ledger.history.find(cause.query_id, cause.batch_id)
    if record is None:
        raise ReplayTooOldError(
            f"batch {cause.batch_id} comes back, the newest is {last.batch_id}, and the ledger keeps the "
            "records of "
            f"the last {kept} batches only: it cannot tell whether the rows are the same. Nothing was "
            "written. Restore a newer checkpoint, or use another path",
            code="REPLAY_TOO_OLD",
        )
    return record


def same_batch(one: Cause, other: Cause) -> bool:
    """Whether two causes are the same micro-batch of the same query."""
    match one, other:
        case MicroBatch(), MicroBatch():
            return (one.query_id, one.batch_id) == (other.query_id, other.batch_id)
        case _:
            return False


def check_fingerprint(decided: MicroBatch, cause: MicroBatch) -> None:
    """Raise ``CheckpointMismatchError`` if the replay has other offsets."""
    if decided.fingerprint and cause.fingerprint and decided.fingerprint != cause.fingerprint:
        raise CheckpointMismatchError(
            f"batch {cause.batch_id} of query {cause.query_id} was committed from other input offsets "
            "than the checkpoint names now: the checkpoint was rolled back, edited or cloned. Nothing was "
            "written. Restore "
            "the checkpoint that belongs to this path, or write to another path with a new checkpoint",
            code="CHECKPOINT_MISMATCH",
        )


def check_rows(decided: EpochRecord, batch_id: int, rows: int, on_mismatch: OnReplayMismatch) -> None:
    """Raise ``ReplayMismatchError`` if the replay has another number of rows."""
    if rows == decided.rows:
        return
    what = f"batch {batch_id} was committed with {decided.rows} rows, its replay has {rows}"
    if on_mismatch is OnReplayMismatch.KEEP_FIRST:
        log.warning("sink %s: %s; kept as committed", decided.sink_id, what)
        return
    raise ReplayMismatchError(
        f"{what}: the query is not deterministic, or its source has changed. Nothing was written. If that "
        "is known and accepted, set .on_replay_mismatch('keep_first')",
        code="REPLAY_MISMATCH",
    )


def check_same_data(decided: EpochRecord, rows: int, digest: str) -> None:
    """Raise ``RepeatedTxnError`` if a ``txn_id`` comes back with other data than it was written with."""
    what = _difference(decided, rows, digest)
    if not what:
        return
    name = decided.cause.txn_id if isinstance(decided.cause, BatchWrite) else ""
    raise RepeatedTxnError(
        f"txn_id {name!r} was written before, with {what}. Nothing was written. A txn_id names one set of "
        "data: take another one; or say what to do with on_repeated_txn='replace', which replaces the files "
        "of the earlier write, or 'skip', which keeps them",
        code="OTHER_DATA",
    )


def _difference(decided: EpochRecord, rows: int, digest: str) -> str:
    """How the earlier write differs, in words; ``""`` if it does not, as far as that is known."""
    # ``<kind>-<rows>-<what else was asked for>``; digests of two kinds cannot be compared, and the last
    # part may be missing.
    before, now = (one.split("-") for one in (decided.digest, digest))
    if rows != decided.rows:
        return f"{decided.rows} rows, now it has {rows}"
    if before[0] != now[0]:
        return ""
    if before[:2] != now[:2]:
        return f"other values or columns in {rows} rows"
    if len(before) == len(now) and before != now:
        return f"the same {rows} rows, and other partitions= to be replaced"
    return ""


def second_call(cause: MicroBatch) -> ConfigError:
    """The error for a second call for one batch in one run."""
    return ConfigError(
        f"the sink was called twice for batch {cause.batch_id} in one run; one sink takes one DataFrame "
        "and one call per batch. Union the DataFrames, or give each its own sink with its own uid",
        code="SECOND_CALL",
    )


def superseded_meanwhile(txn_id: str) -> ConcurrentDriverError:
    """The error for a write that is to replace an earlier one of its ``txn_id``, after another one did."""
    return ConcurrentDriverError(
        f"another write of txn_id {txn_id!r} has taken the place of the earlier one since this one began. "
        "Nothing of this one became visible. Run it again if it is to come after that",
        code="PARTITION_CONFLICT",
    )


def overtaken(epoch: EpochContext) -> ConcurrentDriverError:
    """The error for an epoch whose slot another driver has taken."""
    return ConcurrentDriverError(
        f"another driver continued sink '{epoch.sink_id}' while this one prepared slot {epoch.slot}. "
        "Stop one of the two; a restart continues from the new state",
        code="CONCURRENT_DRIVER",
    )


def slot_taken(standing: EpochRecord) -> ConcurrentDriverError:
    """The error for an epoch whose slot holds the record of other work."""
    return ConcurrentDriverError(
        f"another driver has decided slot {standing.slot} of sink '{standing.sink_id}' meanwhile; what this "
        "one had prepared was discarded. Stop one of the two; a restart continues from the new state",
        code="CONCURRENT_DRIVER",
    )
