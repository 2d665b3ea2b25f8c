"""What the inventory is told of an epoch: its record, and the committables that were carried out. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.inventory.schemas import schema_id
from filesink.ledger import record as ledger_record
from filesink.ledger.record import BatchWrite, EpochRecord, MicroBatch, OfflineCompaction, Operation
from filesink.naming import is_data, name_of, parent, parse_part
from filesink.parts.committables import (
    Committable,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
)
from filesink.ports import Who

NOBODY: Final = Who()
_KINDS: Final[dict[type[ledger_record.Cause], str]] = {
    MicroBatch: "micro-batch",
    BatchWrite: "batch-write",
    ledger_record.Upkeep: "upkeep",
    ledger_record.Finish: "finish",
    OfflineCompaction: "offline-compaction",
    ledger_record.TakenBack: "taken-back",
}


def draft_of(
    record: EpochRecord,
    committables: Iterable[Committable],
    *,
    visible_ms: int,
    who: Who = NOBODY,
) -> Draft:
    """What is appended for an epoch whose files are visible.

    Args:
        record: of the epoch.
        committables: those of the record that were carried out: without files that were given up.
        visible_ms: now, in milliseconds since 1970 UTC.
        who: commits it.
    """
    files = list(committables)
    added = tuple(
        AddedFile(path=file.target, size=file.size, rows=file.rows)
        for file in files
        if isinstance(file, PendingFile) and is_data(file.bucket)
    )
    # What is made of files that were there does not say which columns these had.
    columns = b"" if isinstance(record.cause, OfflineCompaction | Operation) else record.schema.data
    return Draft(
        sink=record.sink_id,
        slot=record.slot,
        nonce=record.nonce,
        cause=_cause_of(record.cause),
        decided_ms=record.decided_ms,
        visible_ms=visible_ms,
        rows=record.rows,
        size=sum(file.size for file in added),
        who=who,
        source=record.offsets,
        schema=schema_id(columns),
        added=added,
        removed=tuple(dict.fromkeys(path for file in files if (path := _gone(file)))),
        columns=columns,
    )


def _gone(file: Committable) -> str:
    """The path of a file of ours that readers shall not see any more; ``""`` for any other committable."""
    match file:
        case ReplacedFile(path=path) | SupersededFile(path=path) | UndoneFile(target=path):
            return path if parse_part(name_of(path)) and is_data(parent(path)) else ""
        case _:
            return ""


def _cause_of(cause: ledger_record.Cause) -> Cause:
    if isinstance(cause, Operation):
        return Cause(kind=cause.what)
    kind = _KINDS[type(cause)]
    match cause:
        case MicroBatch(query_id=query_id, batch_id=batch_id):
            return Cause(kind=kind, query_id=query_id, batch_id=batch_id)
        case BatchWrite(mode=mode, txn_id=txn_id):
            return Cause(kind=kind, mode=mode.value, txn_id=txn_id)
        case _:
            return Cause(kind=kind)
