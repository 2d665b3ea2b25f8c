"""What the page shows: added up, so that its size has a bound. Knows no HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from filesink.errors import SecurityError, StateError
from filesink.exports.found import ExportState
from filesink.operations.fsck.finding import FsckReport
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.epochs import Epoch
from filesink.sink_directory.status import PathStatus
from formats.arrow import pc

SPANS: Final = 60  # of the timeline, at most
DIRECTORIES: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The epochs that became visible from ``start`` on, until the next span.

    ``median`` and ``longest`` are seconds from the begin of an epoch until all of it was visible;
    ``None`` without epochs.
    """

    start: datetime
    epochs: int
    rows: int
    files: int
    median: float | None
    longest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Live files from ``lower`` to less than ``upper`` bytes."""

    lower: int
    upper: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The live files of a directory; of several together if ``name`` is ``None``."""

    name: str | None
    files: int
    rows: int | None
    bytes: int
    small_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is on the page.

    Attributes:
        now: when it was looked at, in UTC.
        target: the size that files should have, in bytes.
        spans: of equal length, from the first to the newest epoch; empty without epochs.
        newest: when that was visible; ``None`` without epochs.
        epochs: how many are remembered.
        typical, slow: seconds from the begin of an epoch until all of it was visible, of half of them and of
            19 in 20; ``None`` without epochs.
        sizes: from the smallest class with files to the largest, those between without files as well.
        directories: the largest by size, then one for all others, if there are more.
    """

    now: datetime
    status: PathStatus
    target: int
    spans: Sequence[Span]
    newest: datetime | None
    epochs: int
    typical: float | None
    slow: float | None
    sizes: Sequence[SizeClass]
    directories: Sequence[Directory]
    directory_count: int
    checked: FsckReport
    exports: Sequence[ExportState] = ()


def facts_of(
    directory: SinkDirectory,
    checked: FsckReport,
    exports: Sequence[ExportState] = (),
    *,
    now: datetime,
    target: int,
    small_below: int,
) -> Facts:
    """Look at ``directory`` now; what is damaged is left out, and ``status.damage`` says why.

    Args:
        directory: the path.
        checked: what a quick check has found there.
        exports: how far each of them is.
        now: in UTC.
        target: the size that files should have, in bytes.
        small_below: files below this size count as small, in bytes.
    """
    timeline, rows = _Timeline(), None
    with suppress(StateError, SecurityError):  # told by ``status``
        timeline.add(directory.epochs())
    with suppress(StateError, SecurityError):  # as well
        rows = directory.snapshot().to_arrow()
    found = [] if rows is None else list(_directories(rows, small_below))
    return Facts(
        now=now.astimezone(UTC),
        status=directory.status(small_below=small_below),
        target=target,
        spans=list(timeline.spans()),
        newest=timeline.newest(),
        epochs=len(timeline.visible),
        typical=_quantile(timeline.seconds, 0.5),
        slow=_quantile(timeline.seconds, 0.95),
        sizes=[] if rows is None else list(_sizes(rows)),
        directories=_largest(found),
        directory_count=len(found),
        checked=checked,
        exports=exports,
    )


@dataclass
class _Timeline:
    """Four numbers of each epoch: 100,000 of them are 3 MB."""

    visible: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def add(self, epochs: Iterable[Epoch]) -> None:
        for epoch in epochs:
            if epoch.kind == "adopted":  # nobody wrote then
                continue
            self.visible.append(epoch.visible.timestamp())
            self.seconds.append(max(0.0, (epoch.visible - epoch.decided).total_seconds()))
            self.rows.append(epoch.rows)
            self.files.append(epoch.files)

    def spans(self) -> Iterator[Span]:
        if not self.visible:
            return
        first, last = min(self.visible), max(self.visible)
        count = min(SPANS, len(self.visible))
        length = (last - first) / count or 1.0
        places: list[list[int]] = [[] for _ in range(count)]
        for place, moment in enumerate(self.visible):
            places[min(count - 1, int((moment - first) / length))].append(place)
        for number, inside in enumerate(places):
            seconds = [self.seconds[place] for place in inside]
            yield Span(
                start=datetime.fromtimestamp(first, tz=UTC) + timedelta(seconds=number * length),
                epochs=len(inside),
                rows=sum(self.rows[place] for place in inside),
                files=sum(self.files[place] for place in inside),
                median=_quantile(seconds, 0.5),
                longest=max(seconds, default=None),
            )

    def newest(self) -> datetime | None:
        return datetime.fromtimestamp(max(self.visible), tz=UTC) if self.visible else None


def _quantile(values: Sequence[float], part: float) -> float | None:
    """The smallest value that ``part`` of all do not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)] if values else None


def _sizes(rows: pa.Table) -> Iterator[SizeClass]:
    """Classes of powers of two, from 1 KiB on; below that there is one."""
    if not rows.num_rows:
        return
    sizes = rows["size"].cast(pa.int64())
    powers = pc.floor(pc.log2(pc.max_element_wise(sizes, 1).cast(pa.float64()))).cast(pa.int64())
    columns: dict[str, Any] = {"power": pc.max_element_wise(powers, 9), "size": sizes}
    grouped = pa.table(columns).group_by("power").aggregate([("size", "count"), ("size", "sum")]).to_pydict()
    found = dict(
        zip(grouped["power"], zip(grouped["size_count"], grouped["size_sum"], strict=True), strict=True)
    )
    for power in range(min(found), max(found) + 1):
        files, size = found.get(power, (0, 0))
        yield SizeClass(lower=0 if power == 9 else 2**power, upper=2 ** (power + 1), files=files, bytes=size)


def _directories(rows: pa.Table, small_below: int) -> Iterator[Directory]:
    columns: dict[str, Any] = {
        "bucket": rows["bucket"].cast(pa.string()),
        "size": rows["size"].cast(pa.int64()),
        "rows": rows["rows"].cast(pa.int64()),
        "unknown": pc.is_null(rows["rows"]).cast(pa.int64()),
        "small": pc.less(rows["size"], small_below).cast(pa.int64()),
    }
    sums: list[Any] = [(name, "sum") for name in ("size", "rows", "unknown", "small")]
    for one in pa.table(columns).group_by("bucket").aggregate([("size", "count"), *sums]).to_pylist():
        yield Directory(
            name=one["bucket"],
            files=one["size_count"],
            rows=None if one["unknown_sum"] else one["rows_sum"],
            bytes=one["size_sum"],
            small_files=one["small_sum"],
        )


def _largest(found: Sequence[Directory]) -> list[Directory]:
    ordered = sorted(found, key=lambda one: (-one.bytes, one.name or ""))
    shown, rest = ordered[:DIRECTORIES], ordered[DIRECTORIES:]
    if not rest:
        return shown
    known = [one.rows for one in rest if one.rows is not None]
    others = Directory(
        name=None,
        files=sum(one.files for one in rest),
        rows=sum(known) if len(known) == len(rest) else None,
        bytes=sum(one.bytes for one in rest),
        small_files=sum(one.small_files for one in rest),
    )
    return [*shown, others]
