"""Announcing partitions: the aggregated committer of a file sink.

    pending files ─▶ waiting partitions ─▶ trigger ─▶ announcement on record ─▶ policies, in order
                     (state of the ledger)            (decided)                 (after the files)

The record decides what is announced. A policy is called to announce only after all files are visible. Before
the epoch is decided it is asked whether it could: later there is no way back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from filesink.api import Announcements, EpochContext, Prepared, SinkAggregatedCommitter
from filesink.buckets.partition_paths import partition_values
from filesink.errors import MetastoreConflictError, MetastoreError, StorageError
from filesink.metastore.announcements import Announced, Announcement
from filesink.metastore.dropped_partitions import as_left, refilled
from filesink.metastore.due_partitions import DuePartitions
from filesink.metastore.locations import bucket_location
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import CommittedPartition, Site
from filesink.naming import parent
from filesink.parts.committables import Committable, ReplacedFile

log = logging.getLogger("filesink")


class PartitionCommitter(SinkAggregatedCommitter[Committable, Announced]):
    """Runs the policies for what a record announces.

    Args:
        commit: when and how.
        site: where the sink writes; made on the first call.
    """

    def __init__(self, commit: PartitionCommit, site: Callable[[], Site]) -> None:
        self._commit = commit
        self._due = DuePartitions(commit)
        self._site = site
        self._tried = -1  # the newest slot for which the policies were called by this driver
        self._told = False  # whether the log has said that partitions have no time

    def combine(self, epoch: EpochContext, prepared: Prepared[Any, Committable]) -> Announcements[Announced]:
        """See ``SinkAggregatedCommitter.combine``."""
        found = self._due.announcements(epoch, prepared)
        known = {one.bucket for one in epoch.waiting if isinstance(one, Announcement)}
        first = [one for one in _partitions(found.later) if one.bucket not in known]
        self.check([*_partitions(found.now), *first])
        self._tell(epoch, [one.bucket for one in _partitions(found.later)])
        return found

    def _tell(self, epoch: EpochContext, waiting: Sequence[str]) -> None:
        """Say what waits for the end: in each report, and once in the log."""
        left = [bucket for bucket in waiting if self._commit.trigger.waits_for_end(bucket)]
        if not left:
            return
        epoch.metrics.add("partitions_without_time", len(left))
        if not self._told:
            self._told = True
            log.warning(
                "sink %s: %d partitions, such as '%s', are announced only when the input ends: %r reads no "
                "time from their names",
                epoch.sink_id,
                len(left),
                left[0],
                self._commit.trigger,
            )

    def check(self, values: Sequence[Announcement]) -> None:
        """Raise what policies raise of partitions that they cannot announce; see ``CommitPolicy.check``."""
        site = self._site()
        partitions = [committed(one, site, repeated=False) for one in values if one.files]
        for policy in self._commit.policies if partitions else ():
            try:
                policy.check(partitions, site)
            except MetastoreConflictError:
                raise
            except (MetastoreError, StorageError) as error:
                log.warning("%r could not be checked before the epoch was decided: %s", policy, error)

    def commit(self, aggregated: Sequence[Announced]) -> list[Announced]:
        """See ``SinkAggregatedCommitter.commit``; one policy after the other, for all partitions."""
        slots = [one.slot for one in _partitions(aggregated)]
        repeated = bool(slots) and max(slots) <= self._tried
        self._tried = max([self._tried, *slots])
        return self._announce(aggregated, repeated)

    def restore_commit(self, aggregated: Sequence[Announced]) -> list[Announced]:
        """See ``SinkAggregatedCommitter.restore_commit``: whatever it says may be a repetition."""
        return self._announce(aggregated, repeated=True)

    def close(self) -> None:
        """Close every policy."""
        for policy in self._commit.policies:
            policy.close()

    def _announce(self, aggregated: Sequence[Announced], repeated: bool) -> list[Announced]:  # noqa: FBT001 - ours
        site = self._site()
        values = {one.bucket: one for one in _partitions(aggregated)}
        told = [committed(one, site, repeated=repeated) for one in values.values()]
        told = as_left(told, list(values.values()), site.store)
        left = self._tell_policies(told, site)
        failed = {one.bucket for one in left}
        dropped = [one for one in told if one.is_dropped and one.bucket not in failed]
        left += self._tell_policies(refilled(dropped, site.store), site)
        return [values[one.bucket] for one in left]

    def _tell_policies(self, going_on: list[CommittedPartition], site: Site) -> list[CommittedPartition]:
        left: list[CommittedPartition] = []
        for policy in self._commit.policies:
            failed = policy.commit_all(going_on, site) if going_on else []
            if failed:
                self.failure = policy.failure
            buckets = {one.bucket for one in failed}
            going_on = [one for one in going_on if one.bucket not in buckets]
            left += failed
        return left


class DroppingCommitter(PartitionCommitter):
    """For epochs that remove files for good: partitions without any are dropped."""

    def combine(self, epoch: EpochContext, prepared: Prepared[Any, Committable]) -> Announcements[Announced]:
        """See ``SinkAggregatedCommitter.combine``."""
        found = super().combine(epoch, prepared)
        emptied = {parent(one.path) for one in prepared.committables if isinstance(one, ReplacedFile)}
        now = [
            replace(one, may_go=True) if isinstance(one, Announcement) and one.bucket in emptied else one
            for one in found.now
        ]
        return Announcements(now, found.later)


def _partitions(values: Iterable[Announced]) -> list[Announcement]:
    return [one for one in values if isinstance(one, Announcement)]


def committed(one: Announcement, site: Site, *, repeated: bool) -> CommittedPartition:
    """An announcement as policies see it."""
    return CommittedPartition(
        bucket=one.bucket,
        values=dict(partition_values(one.bucket)),
        location=bucket_location(site.base_path, site.base_path, one.bucket),
        epoch=one.slot,
        files=one.paths,
        file_count=one.files,
        rows=one.rows,
        bytes=one.size,
        may_be_repeated=repeated,
    )
