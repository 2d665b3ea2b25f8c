"""What the inventory is told of an epoch, from its record and committables."""

from __future__ import annotations

import pytest

from filesink.inventory.drafts import draft_of
from filesink.inventory.entry import AddedFile, Cause
from filesink.inventory.schemas import schema_id
from filesink.ledger.record import (
    BatchWrite,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Section,
    TakenBack,
    Upkeep,
)
from filesink.naming import new_part_id, sink_tag
from filesink.parts.committables import (
    Committable,
    DiscardFile,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
    Watermark,
)
from filesink.ports import Who
from filesink.save_mode import SaveMode
from tests.fakes import CountingIds, held, staged

IDS = CountingIds()
BATCH = MicroBatch(query_id="q", batch_id=5, fingerprint="")


def part(bucket: str = "k=1") -> str:
    """Path of a part file."""
    return f"{bucket}/part-{new_part_id(sink_tag('uid-u'), 3, IDS)}-0.parquet"


def record(cause: object = BATCH) -> EpochRecord:
    """An epoch, whose files are given beside it."""
    return EpochRecord(
        slot=3,
        nonce="n",
        sink_id="uid-u",
        cause=cause,
        last_batch=None,
        decided_ms=17,
        rows=4,
        committables=Section(1, b"[]"),
        schema=Section(1, b"columns"),
        offsets="{}",
    )


def pending(target: str) -> PendingFile:
    """A file that becomes visible."""
    bucket = target.rpartition("/")[0]
    return PendingFile(bucket=bucket, target=target, staged=staged("x"), rows=7, size=100)


def test_what_an_epoch_adds_and_removes() -> None:
    """Files that became visible; those that were replaced, superseded or taken back; no hidden ones."""
    new, old, merged, undone = (part() for _ in range(4))
    files: list[Committable] = [
        pending(new),
        ReplacedFile(path=old, size=1, version="1"),
        SupersededFile(path=merged, size=1, version="1", by=new, until_ms=1),
        SupersededFile(path=merged, size=1, version="1", by=old, until_ms=1),
        UndoneFile(target=undone, staged=staged("y")),
        held("z"),
        DiscardFile(path="k=1/.x"),
        Watermark(latest_ms=1, time_zone="UTC"),
    ]
    who = Who(application="a", user="b", host="c")
    draft = draft_of(record(), files, visible_ms=23, who=who)
    assert draft.added == (AddedFile(path=new, size=100, rows=7),)
    assert draft.added[0].bucket == "k=1"
    assert draft.removed == (old, merged, undone)
    assert (draft.sink, draft.slot, draft.nonce, draft.rows, draft.size) == ("uid-u", 3, "n", 4, 100)
    assert (draft.decided_ms, draft.visible_ms, draft.who, draft.source) == (17, 23, who, "{}")
    assert (draft.schema, draft.columns) == (schema_id(b"columns"), b"columns")


def test_dead_letters_and_files_of_strangers_are_no_files_of_the_path() -> None:
    """Nobody who reads the path sees the first, and an inventory has never had the others."""
    letters = part("_dead_letters")
    files: list[Committable] = [
        pending(letters),
        *(ReplacedFile(path=path, size=1, version="1") for path in (letters, "a.csv", "\udc80")),
    ]
    draft = draft_of(record(), files, visible_ms=0)
    assert (draft.added, draft.removed, draft.size) == ((), (), 0)


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (BATCH, Cause(kind="micro-batch", query_id="q", batch_id=5)),
        (BatchWrite(), Cause(kind="batch-write", mode="append")),
        (
            BatchWrite(mode=SaveMode.OVERWRITE, txn_id="t", remembered_in="r", writer="w"),
            Cause(kind="batch-write", mode="overwrite", txn_id="t"),
        ),
        (Upkeep(), Cause(kind="upkeep")),
        (Finish(), Cause(kind="finish")),
        (OfflineCompaction(), Cause(kind="offline-compaction")),
        (TakenBack(slot=2), Cause(kind="taken-back")),
    ],
)
def test_every_cause_is_told(cause: object, told: Cause) -> None:
    """By the name that it has in the ledger."""
    assert draft_of(record(cause), [], visible_ms=0).cause == told


def test_a_merge_does_not_tell_columns() -> None:
    """Those on record are of another write of its chain."""
    draft = draft_of(record(OfflineCompaction()), [pending(part())], visible_ms=0)
    assert (draft.schema, draft.columns) == ("", b"")
