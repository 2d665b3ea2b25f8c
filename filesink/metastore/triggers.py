"""When a partition is announced: by the driver's clock, or by the times in the data. Pure.

A trigger is asked once per epoch for each partition that has files nobody was told of. It answers
one question; it does nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from filesink.committables import Watermark
from filesink.durations import has_passed
from filesink.errors import ConfigError
from filesink.event_time import latest_instant_ms
from filesink.local_time import time_zone
from filesink.metastore.announcements import Announcement
from filesink.partition_paths import partition_values

_NAME = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([^{}$]+)\})")
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.\d{1,9})?)?)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerView:
    """What a trigger may know: the driver's clock (ms since 1970 UTC), and the latest time seen."""

    now_ms: int
    watermark: Watermark | None


class Trigger(ABC):
    """Says whether a partition is due."""

    #: Whether an announcement means that the partition has all its rows: then none may be held back.
    announces_whole: ClassVar[bool] = False

    @abstractmethod
    def is_due(self, partition: Announcement, view: TriggerView, delay_ms: int) -> bool:
        """Whether ``partition`` is to be announced in this epoch."""

    def check_partitions(self, columns: Sequence[str]) -> None:  # noqa: B027 - most look at none
        """Raise ``ConfigError`` if partitions by ``columns`` cannot be judged. Called before a write."""


@dataclass(frozen=True, slots=True)
class ProcessTime(Trigger):
    """Due ``delay`` after its first file was seen, by the driver's clock; at once without a delay."""

    def is_due(self, partition: Announcement, view: TriggerView, delay_ms: int) -> bool:
        """See ``Trigger.is_due``; strictly after the delay, as in Flink."""
        return delay_ms == 0 or has_passed(partition.first_seen_ms, view.now_ms, delay_ms + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTime(Trigger):
    """Due when the watermark has passed the time in the partition's values and the delay.

    Attributes:
        extractor: how values become a time, as in ``"$day $hour:00:00"``.
        watermark_column: of the DataFrame; its latest time is the watermark.
        lateness_ms: taken from the latest time.
        zone: whose wall clock the values show; ``None`` is the Spark session's zone.
    """

    extractor: str
    watermark_column: str
    lateness_ms: int = 0
    zone: str | None = None
    announces_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not _NAME.search(self.extractor):
            raise ConfigError(
                f"extractor {self.extractor[:80]!r} names no partition column; write it as "
                "'$day $hour:00:00'",
                code="BAD_VALUE",
            )
        if not self.watermark_column:
            raise ConfigError("partition_time needs watermark_column, a column of times", code="BAD_VALUE")
        if self.zone is not None:
            time_zone(self.zone)

    def is_due(self, partition: Announcement, view: TriggerView, delay_ms: int) -> bool:
        """See ``Trigger.is_due``. A partition whose values are no time is due at once."""
        wall = self.time_of(partition.bucket)
        if wall is None:
            return True
        if view.watermark is None:
            return False
        zone = time_zone(self.zone or view.watermark.time_zone)
        try:
            # On the wall clock: where it is set back, a day has 25 hours, and an hour comes twice.
            due_ms = latest_instant_ms(wall + timedelta(milliseconds=delay_ms), zone)
        except OverflowError:  # a value that stands for never, as 9999-12-31
            return False
        return view.watermark.latest_ms - self.lateness_ms > due_ms

    def check_partitions(self, columns: Sequence[str]) -> None:
        """See ``Trigger.check_partitions``."""
        missing = self.columns() - {name.lower() for name in columns}
        if missing:
            raise ConfigError(
                f"extractor {self.extractor[:80]!r} names {', '.join(sorted(missing))!r}, and partitions are "
                f"by {', '.join(columns) or 'no column'}: every one would be due at once",
                code="BAD_VALUE",
            )

    def columns(self) -> set[str]:
        """The partition columns that the extractor names, in lower case."""
        return {(found[1] or found[2]).lower() for found in _NAME.finditer(self.extractor)}

    def time_of(self, bucket: str) -> datetime | None:
        """The wall-clock time that the values of a bucket say; ``None`` if they say none."""
        values = {name.lower(): value for name, value in partition_values(bucket)}
        if not all(values.get(name) for name in self.columns()):
            return None
        text = _NAME.sub(lambda found: str(values[(found[1] or found[2]).lower()]), self.extractor)
        found = _TIME.fullmatch(text.strip())
        if found is None:
            return None
        try:
            return datetime(*(int(part or 0) for part in found.groups()))  # type: ignore[arg-type]  # noqa: DTZ001 - a wall clock
        except ValueError:
            return None
