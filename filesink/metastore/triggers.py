"""When a partition is announced: by the driver's clock, or by the times in the data. Pure.

A trigger is asked once per epoch for each partition with files that were not announced yet. It answers
one question and does nothing else.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import ClassVar

import pyarrow as pa
import pyarrow.types as pt

from filesink.arguments import instance_of
from filesink.buckets.date_reading import DateReader
from filesink.buckets.event_time import latest_instant_ms
from filesink.buckets.partition_paths import partition_values
from filesink.durations import has_passed
from filesink.errors import ConfigError
from filesink.local_time import time_zone
from filesink.metastore.announcements import Announcement
from filesink.parts.committables import Watermark

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

    def waits_for_end(self, bucket: str) -> bool:
        """Whether a directory is due only at the end of the input, since its name tells no time."""
        del bucket
        return False

    def check_partitions(self, columns: Sequence[str]) -> None:  # noqa: B027 - most look at none
        """Raise ``ConfigError`` if partitions by ``columns`` cannot be judged. Called by ``build()``."""

    def check_example(self, bucket: str) -> None:  # noqa: B027 - as above
        """Raise ``ConfigError`` if directories like ``bucket`` cannot be judged. Called by ``build()``."""

    def check_types(self, types: Mapping[str, pa.DataType]) -> None:  # noqa: B027 - as above
        """Raise ``ConfigError`` if values of such columns cannot be judged. Called before a write.

        ``types``: the types of the partition columns, by their names in lower case.
        """


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
        extractor: how values become a text that is a time, as in ``"$day $hour:00:00"``.
        watermark_column: of the DataFrame; its latest time is the watermark.
        lateness_ms: taken from the latest time.
        zone: whose wall clock the values show; ``None`` is the Spark session's zone.
        formatter: the pattern of that text; ``None`` for ISO dates and times.
    """

    extractor: str
    watermark_column: str
    lateness_ms: int = 0
    zone: str | None = None
    formatter: str | None = None
    _reader: DateReader | None = field(init=False, default=None, repr=False, compare=False)
    announces_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("extractor", "watermark_column"):
            instance_of(getattr(self, name), str, name=name)
        for name in ("zone", "formatter"):
            if getattr(self, name) is not None:
                instance_of(getattr(self, name), str, name=name)
        if self.formatter is not None:
            object.__setattr__(self, "_reader", DateReader(pattern=self.formatter))
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
        """See ``Trigger.is_due``. That of null is due at once: it has no time, and never all its rows."""
        if self._is_null(partition.bucket):
            return True
        wall = self.time_of(partition.bucket)
        if wall is None or view.watermark is None:
            return False
        zone = time_zone(self.zone or view.watermark.time_zone)
        try:
            # On the wall clock: where it is set back, a day has 25 hours, and an hour comes twice.
            due_ms = latest_instant_ms(wall + timedelta(milliseconds=delay_ms), zone)
        except OverflowError:  # a value that stands for never, as 9999-12-31
            return False
        return view.watermark.latest_ms - self.lateness_ms > due_ms

    def waits_for_end(self, bucket: str) -> bool:
        """See ``Trigger.waits_for_end``."""
        return self.time_of(bucket) is None and not self._is_null(bucket)

    def check_partitions(self, columns: Sequence[str]) -> None:
        """See ``Trigger.check_partitions``."""
        missing = self.columns() - {name.lower() for name in columns}
        if missing:
            raise ConfigError(
                f"extractor {self.extractor[:80]!r} names {', '.join(sorted(missing))!r}, but partitions are "
                f"by {', '.join(columns) or 'no column'}: no partition would ever be due",
                code="BAD_VALUE",
            )

    def check_example(self, bucket: str) -> None:
        """See ``Trigger.check_example``."""
        if self.time_of(bucket) is None:
            raise ConfigError(
                f"{self._how()} reads no time from directories like '{bucket}': none of them would ever be "
                "due. Use BucketAssigner.partition_bucket_assigner, or a date pattern with quoted names of "
                "columns (\"'day='yyyy-MM-dd\"), and the formatter of its times",
                code="BAD_VALUE",
            )

    def check_types(self, types: Mapping[str, pa.DataType]) -> None:
        """See ``Trigger.check_types``; text and numbers under a formatter may be anything."""
        names = sorted(self.columns())
        examples = [_examples(types[name], has_formatter=self._reader is not None) for name in names]
        if not all(examples):
            return
        if not any(self._read(dict(zip(names, values, strict=True))) for values in product(*examples)):
            kinds = ", ".join(f"{name} ({types[name]})" for name in names)
            raise ConfigError(
                f"{self._how()} reads no time from any value of {kinds}: no partition would ever be due. "
                "Give a formatter, such as formatter='yyyyMMdd', that fits the text of these values",
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
        return self._read(values)

    def _read(self, values: Mapping[str, str | None]) -> datetime | None:
        text = _NAME.sub(lambda found: str(values[(found[1] or found[2]).lower()]), self.extractor).strip()
        return _iso_time(text) if self._reader is None else self._reader.read(text)

    def _is_null(self, bucket: str) -> bool:
        values = {name.lower(): value for name, value in partition_values(bucket)}
        named = self.columns()
        return named <= values.keys() and any(values[name] is None for name in named)

    def _how(self) -> str:
        form = "as ISO date and time" if self.formatter is None else f"by formatter {self.formatter[:80]!r}"
        return f"extractor {self.extractor[:80]!r} {form}"


def _iso_time(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in found.groups()))  # type: ignore[arg-type]  # noqa: DTZ001 - a wall clock
    except ValueError:
        return None


def _examples(kind: pa.DataType, *, has_formatter: bool) -> tuple[str, ...]:
    """Texts of values that a column may have; none if these may look like anything."""
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    if pt.is_date(kind):
        return ("2024-11-23",)
    if pt.is_timestamp(kind):
        return ("2024-11-23 13:14:15",)
    if pt.is_boolean(kind):
        return ("true",)
    if pt.is_integer(kind) and not has_formatter:
        return "2024", "11"
    return ()
