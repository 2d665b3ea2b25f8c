"""Which files are kept: by age, by bytes, by number. Pure but for listing when files were written.

Rules:
1. Each limit is one of its own: what is beyond any of them is dropped.
2. By partition time whole directories are dropped. One whose name tells no time is never dropped, and counts
   for no limit.
3. By the time of writing single files are. It is the store's: a file that was merged, rewritten by an
   erasure, brought back or copied is as new as that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from filesink.arguments import instance_of, one_of
from filesink.buckets.contract import BaseBucketAssigner
from filesink.buckets.date_reading import DateReader
from filesink.buckets.date_time_assigner import DateTimeBucketAssigner
from filesink.buckets.event_time import latest_instant_ms
from filesink.buckets.recorded_partitions import partition_columns
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from filesink.local_time import time_zone as zone_of
from filesink.metastore.partition_commit import check_readable, example_of
from filesink.metastore.triggers import PartitionTime
from filesink.sink_directory.live_files import LiveFile
from formats.errors import FormatError
from formats.sizes import parse_size

PARTITION_TIME: Final = "partition time"
WRITTEN: Final = "written"
_DEFAULT_PATTERN: Final = "yyyy-MM-dd--HH"  # of the default assigner
_FAR: Final = 1 << 62  # milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept of a path.

    Attributes:
        max_age: what is older is dropped; ``int`` is milliseconds.
        by: whose age: ``"written"``, each file's, or ``"partition time"``, that of a directory by its name.
            What a file was made of does not count: one that ``erase``, ``compact``, ``rollback`` or ``copy``
            has written is new. A rule of how long records may be kept goes by partition time.
        max_bytes: the oldest are dropped until no more is left; bytes or ``"10GiB"``.
        keep: so many of the newest always stay: directories by partition time, else files.
        extractor: how values of partition columns become a time, as in ``PartitionCommit.partition_time``:
            ``"$day $hour:00:00"``. Without one, the whole path of a directory is read by ``formatter``.
        formatter: the pattern of that time, in the syntax of Java's ``DateTimeFormatter``; by default ISO
            dates and times with ``extractor``, and else ``"yyyy-MM-dd--HH"``.
        time_zone: of the times in names.
        partition_length: how much time a directory holds, from the one in its name: it is as old as its end.

    Raises:
        ConfigError: ``BAD_VALUE``; also if there is no limit.
    """

    max_age: Duration | None = None
    by: Literal["partition time", "written"] = "written"
    max_bytes: int | str | None = None
    keep: int | None = None
    extractor: str | None = None
    formatter: str | None = None
    time_zone: str = "UTC"
    partition_length: Duration = "1 day"
    _limits: Limits = field(init=False, repr=False, compare=False)
    _times: Times | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        one_of(self.by, (PARTITION_TIME, WRITTEN), name="by")
        limits = Limits(
            age_ms=None if self.max_age is None else parse_duration_ms(self.max_age, name="max_age"),
            size=None if self.max_bytes is None else _size(self.max_bytes),
            number=None if self.keep is None else _number(self.keep),
        )
        if limits == Limits():
            raise ConfigError(
                "retention needs a limit: max_age, max_bytes or keep. Nothing was dropped", code="BAD_VALUE"
            )
        if self.by == WRITTEN and (self.extractor, self.formatter) != (None, None):
            raise ConfigError(
                "extractor and formatter read the time of a directory: say by='partition time'",
                code="CONFLICT",
            )
        object.__setattr__(self, "_limits", limits)
        object.__setattr__(self, "_times", self._read_times() if self.by == PARTITION_TIME else None)

    def _read_times(self) -> Times:
        length_ms = parse_duration_ms(self.partition_length, name="partition_length", least=0)
        for name in ("extractor", "formatter"):
            if getattr(self, name) is not None:
                instance_of(getattr(self, name), str, name=name)
        zone_of(instance_of(self.time_zone, str, name="time_zone"))
        return Times(
            extractor=self.extractor, formatter=self.formatter, zone=self.time_zone, length_ms=length_ms
        )

    def for_buckets(self, assigner: BaseBucketAssigner) -> Retention:
        """This rule for the directories of ``assigner``, whose date pattern is the default of ``formatter``.

        Raises:
            ConfigError: ``BAD_VALUE``; it is known that none of them tells a time.
        """
        if self._times is None:
            return self
        if self.extractor is not None:
            check_readable(self._times.trigger(), assigner)
        elif isinstance(assigner, DateTimeBucketAssigner):
            return self._for_pattern(assigner, self._times)
        elif self.formatter is None and (columns := partition_columns(assigner)) is not None:
            raise self._times.unreadable("/".join(f"{name}=…" for name in columns))
        return self

    def _for_pattern(self, assigner: DateTimeBucketAssigner, times: Times) -> Retention:
        if self.formatter is None:
            zone = assigner.timezone_id or self.time_zone
            return replace(self, formatter=assigner.format_str, time_zone=zone)
        example = example_of(assigner)
        if DateReader(pattern=self.formatter).read(example) is None:
            raise times.unreadable(example)
        return self

    @property
    def reads_times(self) -> bool:
        """Whether directories are dropped, by the times in their names."""
        return self._times is not None

    def beyond(
        self, files: Sequence[LiveFile], written_ms: Mapping[str, int], now_ms: int
    ) -> tuple[list[LiveFile], list[str]]:
        """Which of ``files`` are dropped, and the directories that tell no time, so that they stay.

        Args:
            files: all that are live.
            written_ms: when each was, by its path; one that is not in it stays. Not asked by partition time.
            now_ms: milliseconds since 1970 UTC, as all times here.

        Raises:
            ConfigError: ``BAD_VALUE``; no directory tells a time.
        """
        units: dict[tuple[int, str], list[LiveFile]] = {}
        undated: set[str] = set()
        times = {} if self._times is None else self._times.of({file.bucket for file in files})
        for file in files:
            key = file.path if self._times is None else file.bucket
            moment = written_ms.get(key) if self._times is None else times[key]
            if moment is None:
                undated.add(key)
            else:
                units.setdefault((moment, key), []).append(file)
        if self._times is not None and undated and not units:
            raise self._times.unreadable(min(undated))
        return self._limits.beyond(units, now_ms), sorted(undated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Milliseconds, bytes, and a number of units; ``None`` is no limit."""

    age_ms: int | None = None
    size: int | None = None
    number: int | None = None

    def beyond(self, units: Mapping[tuple[int, str], Sequence[LiveFile]], now_ms: int) -> list[LiveFile]:
        """The files of the units, each with its moment and its name, that are beyond a limit."""
        dropped: list[LiveFile] = []
        size = 0
        for index, (moment, name) in enumerate(sorted(units, reverse=True)):
            files = units[moment, name]
            size += sum(file.size for file in files)
            if (
                (self.age_ms is not None and moment + self.age_ms < now_ms)
                or (self.size is not None and size > self.size)
                or (self.number is not None and index >= self.number)
            ):
                dropped += files
        return dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Reads the end of the time that a directory holds; see ``Retention``."""

    extractor: str | None
    formatter: str | None
    zone: str
    length_ms: int

    def of(self, buckets: set[str]) -> dict[str, int | None]:
        """Of each bucket, in milliseconds; ``None`` for one that tells none."""
        return {bucket: self._end(wall) for bucket, wall in self._walls(buckets)}

    def _walls(self, buckets: set[str]) -> Iterator[tuple[str, datetime | None]]:
        if self.extractor is None:
            reader = DateReader(pattern=self.formatter or _DEFAULT_PATTERN)
            yield from ((bucket, reader.read(bucket)) for bucket in buckets)
            return
        times = self.trigger()
        yield from ((bucket, times.time_of(bucket)) for bucket in buckets)

    def trigger(self) -> PartitionTime:
        """What reads times from the values of partition columns; a watermark is not asked for here."""
        return PartitionTime(
            extractor=self.extractor or "", formatter=self.formatter, watermark_column="none"
        )

    def _end(self, wall: datetime | None) -> int | None:
        if wall is None:
            return None
        try:
            return latest_instant_ms(wall, zone_of(self.zone)) + self.length_ms
        except OverflowError:  # a value that stands for never, as 9999-12-31
            return _FAR

    def unreadable(self, bucket: str) -> ConfigError:
        """The error if no directory tells a time."""
        how = f"extractor {self.extractor[:80]!r}" if self.extractor else "the path as a whole"
        form = self.formatter or ("ISO dates and times" if self.extractor else _DEFAULT_PATTERN)
        return ConfigError(
            f"no time can be read from directories like '{bucket}' by {how} and the pattern {form[:80]!r}. "
            "Nothing was dropped. Give an extractor, such as '$day', or a formatter, such as "
            "\"'day='yyyy-MM-dd\"",
            code="BAD_VALUE",
        )


def _size(value: int | str) -> int:
    try:
        return parse_size(value, name="max_bytes")
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"keep must be a whole number above 0, got {repr(value)[:40]}", code="BAD_VALUE")
    return value
