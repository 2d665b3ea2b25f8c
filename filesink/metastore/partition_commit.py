"""Announcing partitions: the aggregated committer of a file sink, and the stage that goes with it.

    pending files ─▶ waiting partitions ─▶ trigger ─▶ announcement on record ─▶ policies, in order
                     (state of the ledger)            (decided)                 (after the files)

Rules:
1. What is announced is decided in the record; a policy is told only after all files are visible. Before
   that it is asked whether it could: afterwards there is no way back.
2. A partition that got files is announced, sooner or later, and again whenever it gets more.
3. A trigger that speaks of whole partitions never announces one of which rows are held back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filesink.api import (
    OF_STAGES,
    Announcements,
    EpochContext,
    Input,
    PreCommitStage,
    Prepared,
    SinkAggregatedCommitter,
)
from filesink.buckets.date_patterns import DatePattern
from filesink.buckets.partition_paths import partition_values
from filesink.buckets.recorded_partitions import partition_columns
from filesink.buckets.times import DateTimeBucketAssigner
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError, MetastoreConflictError, MetastoreError, StorageError
from filesink.local_time import LocalTime
from filesink.metastore.announcements import Announced, Announcement, gathered
from filesink.metastore.locations import bucket_location
from filesink.metastore.policies import CommitPolicy, CommittedPartition, Site
from filesink.metastore.triggers import PartitionTime, ProcessTime, Trigger, TriggerView
from filesink.parts.committables import Committable, HeldFile

if TYPE_CHECKING:
    from filesink.buckets.contract import BaseBucketAssigner

log = logging.getLogger("filesink")

_SOME_TIME = LocalTime.of(1_732_367_655)  # 2024-11-23 13:14:15: no two numbers alike


class PartitionCommit:
    """When partitions are announced, and how.

    Args:
        trigger: ``PartitionCommit.process_time()`` or ``PartitionCommit.partition_time(…)``.
        delay: after which a partition is due, by the trigger's clock; ``int`` is milliseconds.
        policies: run in this order for each announced partition.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    def __init__(
        self,
        *,
        policies: Sequence[CommitPolicy],
        trigger: Trigger | None = None,
        delay: Duration = "0 s",
    ) -> None:
        self.trigger = ProcessTime() if trigger is None else trigger
        self.delay_ms = parse_duration_ms(delay, name="delay", least=0)
        given: object = policies
        self.policies: tuple[CommitPolicy, ...] = tuple(given) if isinstance(given, Iterable) else ()
        if not self.policies or not all(isinstance(one, CommitPolicy) for one in self.policies):
            raise ConfigError("policies must be one or more commit policies", code="BAD_VALUE")
        if not isinstance(self.trigger, Trigger):
            raise ConfigError(
                "trigger must be PartitionCommit.process_time() or .partition_time(…)", code="BAD_VALUE"
            )

    def __repr__(self) -> str:
        return f"PartitionCommit({self.trigger!r}, delay={self.delay_ms} ms, {list(self.policies)!r})"

    @staticmethod
    def process_time() -> Trigger:
        """Due when its first new file is older than the delay, by the driver's clock."""
        return ProcessTime()

    @staticmethod
    def partition_time(
        *,
        extractor: str,
        watermark_column: str,
        allowed_lateness: Duration = "0 s",
        time_zone: str | None = None,
        formatter: str | None = None,
    ) -> Trigger:
        """Due when the watermark has passed the partition's time and the delay.

        The watermark is the latest time seen in ``watermark_column``, less ``allowed_lateness``. Times
        more than a day ahead of the driver's clock are taken for errors and do not count.

        Args:
            extractor: how partition values become a time: ``"$day $hour:00:00"``. That of null is due at
                once. Any other whose values are no time waits for the end of the input: the log says so
                once, and reports count it in ``metrics["partitions_without_time"]``.
            watermark_column: timestamps or dates.
            allowed_lateness: how late records may be; ``int`` is milliseconds.
            time_zone: whose wall clock the values show, and the times of a column without a zone
                (``TIMESTAMP_NTZ``, ``DATE``); by default that of the Spark session.
            formatter: the pattern of what the extractor makes, of Java's ``DateTimeFormatter`` as in
                ``"yyyyMMdd"`` or ``"MM-dd-yyyy HH:mm:ss"``; by default ISO dates and times, ``2024-01-31``
                or ``2024-01-31 23:59:59``.
        """
        return PartitionTime(
            extractor=extractor,
            watermark_column=watermark_column,
            lateness_ms=parse_duration_ms(allowed_lateness, name="allowed_lateness", least=0),
            zone=time_zone,
            formatter=formatter,
        )

    def check_buckets(self, assigner: BaseBucketAssigner) -> None:
        """Raise ``ConfigError`` if the directories of ``assigner`` are known to tell the trigger nothing."""
        columns = partition_columns(assigner)
        if columns is not None:
            self.trigger.check_partitions(columns)
        if isinstance(assigner, DateTimeBucketAssigner):
            self.trigger.check_example(DatePattern(pattern=assigner.format_str).format(_SOME_TIME))

    @property
    def watermark_column(self) -> str | None:
        """The column whose latest time tasks report."""
        return self.trigger.watermark_column if isinstance(self.trigger, PartitionTime) else None

    @property
    def watermark_zone(self) -> str | None:
        """Whose wall clock the times of that column show if they have no zone; ``None``: the session's."""
        return self.trigger.zone if isinstance(self.trigger, PartitionTime) else None


@dataclass(frozen=True, slots=True)
class Plan:
    """Which partitions an epoch announces. ``stage`` and committer ask the same question."""

    commit: PartitionCommit

    def announcements(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Announcements[Announced]:
        """Those that are due, and what goes on waiting, the watermark included."""
        found, watermark = gathered(
            epoch.waiting, prepared.committables, slot=epoch.slot, now_ms=epoch.now_ms
        )
        view = TriggerView(now_ms=epoch.now_ms, watermark=watermark)
        held = self._held(prepared)
        now = [one for one in found if self._is_due(one, epoch, view) and one.bucket not in held]
        due = {one.bucket for one in now}
        waiting: list[Announced] = [one.put_off() for one in found if one.bucket not in due]
        if watermark is not None and epoch.input is not Input.ENDED:  # nothing waits for it then
            waiting.append(watermark)
        return Announcements(now, waiting)

    def overdue(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> list[HeldFile]:
        """Held files of open parts that keep a partition from being announced whole."""
        if not self.commit.trigger.announces_whole:
            return []
        _, watermark = gathered(epoch.waiting, prepared.committables, slot=epoch.slot, now_ms=epoch.now_ms)
        view = TriggerView(now_ms=epoch.now_ms, watermark=watermark)
        held = [one for subtask, lane in prepared.states.items() if subtask != OF_STAGES for one in lane]
        due = {
            bucket: self._is_due(
                Announcement(bucket=bucket, first_seen_ms=epoch.now_ms, slot=epoch.slot), epoch, view
            )
            for bucket in {one.bucket for one in held}
        }
        return [one for one in held if due[one.bucket]]

    def _is_due(self, one: Announcement, epoch: EpochContext, view: TriggerView) -> bool:
        return epoch.input is Input.ENDED or self.commit.trigger.is_due(one, view, self.commit.delay_ms)

    def _held(self, prepared: Prepared[HeldFile, Any]) -> set[str]:
        if not self.commit.trigger.announces_whole:
            return set()
        return {one.bucket for lane in prepared.states.values() for one in lane}


class CloseDuePartitions(PreCommitStage[HeldFile, Committable]):
    """Closes the open parts of partitions that are about to be announced as whole."""

    def __init__(self, commit: PartitionCommit) -> None:
        self._plan = Plan(commit)

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether a partition must be announced though no data came, or the end has left a watermark."""
        if epoch.input is Input.ENDED and epoch.waiting:
            return True
        return bool(self._plan.announcements(epoch, prepared).now or self._plan.overdue(epoch, prepared))

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Move the segments of such parts from the state to the committables."""
        overdue = self._plan.overdue(epoch, prepared)
        if not overdue:
            return prepared
        epoch.pressing.update(one.bucket for one in overdue)
        taken = {one.staged.path for one in overdue}
        states = {
            subtask: [one for one in lane if one.staged.path not in taken]
            for subtask, lane in prepared.states.items()
        }
        return Prepared([*prepared.committables, *overdue], states)


class PartitionCommitter(SinkAggregatedCommitter[Committable, Announced]):
    """Runs the policies for what a record announces.

    Args:
        commit: when and how.
        site: where the sink writes; made on the first call.
    """

    def __init__(self, commit: PartitionCommit, site: Callable[[], Site]) -> None:
        self._commit = commit
        self._plan = Plan(commit)
        self._site = site
        self._tried = -1  # the newest slot for which the policies were called by this driver
        self._told = False  # of partitions that have no time

    def combine(self, epoch: EpochContext, prepared: Prepared[Any, Committable]) -> Announcements[Announced]:
        """See ``SinkAggregatedCommitter.combine``."""
        found = self._plan.announcements(epoch, prepared)
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
                log.warning("%r was not looked at before the epoch was decided: %s", policy, error)

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
        going_on = [committed(one, site, repeated=repeated) for one in values.values()]
        left: list[CommittedPartition] = []
        for policy in self._commit.policies:
            failed = policy.commit_all(going_on, site) if going_on else []
            if failed:
                self.failure = policy.failure
            buckets = {one.bucket for one in failed}
            going_on = [one for one in going_on if one.bucket not in buckets]
            left += failed
        return [values[one.bucket] for one in left]


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
