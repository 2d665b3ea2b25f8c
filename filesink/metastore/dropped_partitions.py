"""Partitions that retention, erasure or rollback has left without files: the metastore is to drop them.

Rules:
1. The record says which may go. Whether one does is seen when it is announced, after its files have gone from
   the ledger: only if its directory has no file but those that wait there for their end.
2. A writer may put a file there meanwhile, and find the partition still known. So each that was dropped is
   looked at once more, and announced if there is one. If the driver dies in between, the next one does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from filesink.inventory.chains import at_work, left_files, superseded
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import visible
from filesink.metastore.announcements import Announcement
from filesink.metastore.policies import CommittedPartition
from filesink.naming import parent
from filesink.parts.recorded_paths import check_record
from filesink.storage.api import Store


def as_left(
    partitions: Sequence[CommittedPartition], values: Sequence[Announcement], store: Store
) -> list[CommittedPartition]:
    """``partitions``, announced by ``values``, as the store has them: who may go and has no file goes."""
    may_go = {one.bucket for one in values if one.may_go}
    files = files_left(store, may_go)
    return [_as_left(one, files[one.bucket]) if one.bucket in may_go else one for one in partitions]


def refilled(dropped: Sequence[CommittedPartition], store: Store) -> list[CommittedPartition]:
    """Those of the ``dropped`` that have files by now, to be announced again."""
    files = files_left(store, {one.bucket for one in dropped})
    again = (replace(one, is_dropped=False, may_be_repeated=True) for one in dropped if files[one.bucket])
    return [_as_left(one, files[one.bucket]) for one in again]


def files_left(store: Store, buckets: set[str]) -> dict[str, int]:
    """How many files each directory has, without those that were replaced and wait for their end."""
    found = dict.fromkeys(buckets, 0)
    if not buckets:
        return found
    gone = {path for one in at_work(store).values() for path in one.replaced}
    gone |= {file.path for file in left_files(Ledger(store, EXCLUSIVE, check=check_record))}
    gone |= superseded(store).keys()
    for path, _ in visible(store, sorted(buckets)):
        if path not in gone:
            found[parent(path)] += 1
    return found


def _as_left(one: CommittedPartition, files: int) -> CommittedPartition:
    if not files:
        return replace(one, files=(), file_count=0, rows=0, bytes=0, is_dropped=True)
    if one.may_be_repeated and not one.file_count:
        # It may have been dropped by the call before. Nobody has counted its rows: see ``statistics``.
        return replace(one, file_count=files)
    return one
