"""When partitions are announced, and how: what a user chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from filesink.buckets.date_patterns import DatePattern
from filesink.buckets.date_time_assigner import DateTimeBucketAssigner
from filesink.buckets.recorded_partitions import partition_columns
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from filesink.local_time import LocalTime
from filesink.metastore.policies import CommitPolicy
from filesink.metastore.triggers import PartitionTime, ProcessTime, Trigger

if TYPE_CHECKING:
    from filesink.buckets.contract import BaseBucketAssigner

_SOME_TIME = LocalTime.of(1_732_367_655)  # 2024-11-23 13:14:15: no two numbers alike


class PartitionCommit:
    """When partitions are announced, and how.

    Args:
        trigger: ``PartitionCommit.process_time()`` or ``PartitionCommit.partition_time(…)``.
        delay: how long to wait before a partition is announced, by the trigger's clock; ``int`` is
            milliseconds.
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
        more than a day ahead of the driver's clock are considered errors and do not count.

        Args:
            extractor: how partition values become a time: ``"$day $hour:00:00"``. A partition with a null
                value is announced at once. Any other partition whose values are not a time waits for the end
                of the input: the log says so once, and reports count it in
                ``metrics["partitions_without_time"]``.
            watermark_column: timestamps or dates.
            allowed_lateness: how late records may be; ``int`` is milliseconds.
            time_zone: of the partition values, and of a watermark column without a zone
                (``TIMESTAMP_NTZ``, ``DATE``); by default that of the Spark session.
            formatter: the pattern of the extractor's result, in the syntax of Java's ``DateTimeFormatter``,
                such as ``"yyyyMMdd"`` or ``"MM-dd-yyyy HH:mm:ss"``; by default ISO dates and times,
                ``2024-01-31`` or ``2024-01-31 23:59:59``.
        """
        return PartitionTime(
            extractor=extractor,
            watermark_column=watermark_column,
            lateness_ms=parse_duration_ms(allowed_lateness, name="allowed_lateness", least=0),
            zone=time_zone,
            formatter=formatter,
        )

    def check_buckets(self, assigner: BaseBucketAssigner) -> None:
        """Raise ``ConfigError`` if it is known that the trigger cannot read directories of ``assigner``."""
        check_readable(self.trigger, assigner)

    @property
    def watermark_column(self) -> str | None:
        """The column whose latest time tasks report."""
        return self.trigger.watermark_column if isinstance(self.trigger, PartitionTime) else None

    @property
    def watermark_zone(self) -> str | None:
        """The zone of that column's times if they have none of their own; ``None`` for the session's."""
        return self.trigger.zone if isinstance(self.trigger, PartitionTime) else None


def check_readable(trigger: Trigger, assigner: BaseBucketAssigner) -> None:
    """Raise ``ConfigError`` if it is known that ``trigger`` cannot read directories of ``assigner``."""
    columns = partition_columns(assigner)
    if columns is not None:
        trigger.check_partitions(columns)
    if isinstance(assigner, DateTimeBucketAssigner):
        trigger.check_example(example_of(assigner))


def example_of(assigner: DateTimeBucketAssigner) -> str:
    """A directory of ``assigner``."""
    return DatePattern(pattern=assigner.format_str).format(_SOME_TIME)
