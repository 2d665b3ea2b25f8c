"""What ``recover`` would do now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from filesink.file_sink.report import SweepPlan
from filesink.ledger.record import (
    BatchWrite,
    Cause,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Operation,
    TakenBack,
    Upkeep,
)
from filesink.operations.sink_ledgers import SinkLedgers
from filesink.parts.committables import CommittableCodec, PendingFile
from filesink.storage.api import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEpoch:
    """An epoch that is decided and not complete.

    Attributes:
        sink: id of its chain.
        epoch: its slot in that chain.
        what_for: in words.
        files, rows, bytes: that it makes visible.
        lost: files of it that are neither waiting nor visible.
    """

    sink: str
    epoch: int
    what_for: str
    files: int
    rows: int
    bytes: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """What ``recover`` would do now.

    Attributes:
        epochs: that it would complete.
        garbage: files that it would remove, as in ``RecoveryReport.swept``; what it completes may make more.
    """

    epochs: Sequence[PlannedEpoch]
    garbage: SweepPlan


def planned_epochs(ledgers: SinkLedgers, store: Store) -> Iterator[PlannedEpoch]:
    """The epochs that belong to a sink and are not complete."""
    for ledger in ledgers.all():
        if ledgers.may_be_ours(ledger.sink_id):
            for record in ledger.history.unfinished():
                if ledgers.is_ours(ledger, record):
                    yield _planned(record, store)


def _planned(record: EpochRecord, store: Store) -> PlannedEpoch:
    codec = CommittableCodec()
    files = [file for file in record.committables.decode(codec) if isinstance(file, PendingFile)]
    lost = store.runner.run(lambda file: store.is_lost(file.staged, file.target), files)
    return PlannedEpoch(
        sink=record.sink_id,
        epoch=record.slot,
        what_for=_what_for(record.cause),
        files=len(files),
        rows=sum(file.rows for file in files),
        bytes=sum(file.size for file in files),
        lost=sum(lost),
    )


_WORDS: Final[Mapping[type[Cause], str]] = {
    Upkeep: "upkeep",
    Finish: "finish",
    OfflineCompaction: "offline-compaction",
}


def _what_for(cause: Cause) -> str:
    match cause:
        case MicroBatch(batch_id=number):
            return f"batch {number}"
        case BatchWrite(mode=mode):
            return mode.value
        case Upkeep() | Finish() | OfflineCompaction():
            return _WORDS[type(cause)]
        case Operation(what=what):
            return what
        case TakenBack(slot=slot):
            return f"epoch {slot} taken back"
