"""Counters, gauges and histograms: named once, for whoever hands them on. Pure.

``python docs/site/metrics.py`` writes docs/reference/metrics.md of ``METRICS``; a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import singledispatch
from typing import Final

from filesink.api.events import (
    EpochComplete,
    EpochDecided,
    EpochFailed,
    ExportEnded,
    FinishedFile,
    HiddenFilesSwept,
    PartsMerged,
    PartsRolled,
    SinkEvent,
)

_KIB: Final = 1024
#: Upper bounds of the sizes of files: 16 KiB to 4 GiB, each four times the one before.
SIZES: Final = tuple(float(16 * _KIB * 4**step) for step in range(10))
#: Upper bounds of durations, in seconds.
SECONDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Kind(Enum):
    """What a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric; all have the labels ``destination`` and ``sink``, and ``labels`` besides.

    ``buckets`` are upper bounds, of a histogram alone.
    """

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """That many more of a counter, the value of a gauge, or one observation of a histogram."""

    metric: Metric
    value: float
    destination: str
    sink: str
    labels: tuple[str, ...] = ()

    @property
    def all_labels(self) -> dict[str, str]:
        """By name."""
        own = dict(zip(self.metric.labels, self.labels, strict=True))
        return {"destination": self.destination, "sink": self.sink, **own}


def _counter(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, meaning=meaning, labels=labels)


def _gauge(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, meaning=meaning, labels=labels)


EPOCHS = _counter(
    "filesink_epochs_total", "epochs, by what they were for and how they ended", "kind", "outcome"
)
ERRORS = _counter("filesink_errors_total", "epochs that failed, by the code or type of the error", "code")
ROWS = _counter("filesink_rows_total", "rows that came in")
FILES = _counter("filesink_files_total", "files that became visible")
BYTES = _counter("filesink_bytes_total", "size of the files that became visible")
REMOVED = _counter("filesink_removed_files_total", "visible files that were replaced")
ROLLED = _counter("filesink_parts_rolled_total", "hidden files that tasks have closed")
MERGED = _counter(
    "filesink_merged_files_total", "small files that went into merges, and files that came out", "way"
)
MERGED_BYTES = _counter("filesink_merged_bytes_total", "the same, their size", "way")
SWEPT = _counter("filesink_swept_files_total", "hidden files that attempts had left, removed")
OPEN_ROWS = _gauge("filesink_open_rows", "rows hidden in parts that stay open")
WAITING_ROWS = _gauge("filesink_waiting_rows", "rows hidden in files that wait for compaction")
LAST = _gauge("filesink_last_epoch_timestamp_seconds", "when the newest epoch was complete")
EXPORTS = _counter(
    "filesink_exports_total", "turns of exporters, by name and how they ended", "export", "outcome"
)
BEHIND = _gauge("filesink_export_behind_versions", "by how many versions an export is behind", "export")
SIZE = Metric(
    name="filesink_file_size_bytes",
    kind=Kind.HISTOGRAM,
    meaning="sizes of the files that became visible",
    buckets=SIZES,
)
DURATION = Metric(
    name="filesink_epoch_seconds",
    kind=Kind.HISTOGRAM,
    meaning="how long the steps of an epoch took: write, publish, complete, and all of it",
    labels=("step",),
    buckets=SECONDS,
)
EXPORTING = Metric(
    name="filesink_export_seconds",
    kind=Kind.HISTOGRAM,
    meaning="how long a turn of an exporter took",
    labels=("export",),
    buckets=SECONDS,
)
METRICS: Final = (
    EPOCHS, ERRORS, ROWS, FILES, BYTES, REMOVED, ROLLED, MERGED, MERGED_BYTES, SWEPT, OPEN_ROWS, WAITING_ROWS,
    LAST, SIZE, DURATION, EXPORTS, BEHIND, EXPORTING,
)  # fmt: skip


def measures_of(event: SinkEvent) -> Iterator[Measure]:
    """What ``event`` changes."""
    for metric, value, *labels in _found(event):
        yield Measure(
            metric=metric,
            value=value,
            destination=event.destination,
            sink=event.sink,
            labels=tuple(map(str, labels)),
        )


_Found = Iterator[tuple[Metric, float] | tuple[Metric, float, str] | tuple[Metric, float, str, str]]


@singledispatch
def _found(event: SinkEvent) -> _Found:
    del event
    return iter(())


@_found.register
def _rolled(event: PartsRolled) -> _Found:
    yield ROLLED, event.files


@_found.register
def _merged(event: PartsMerged) -> _Found:
    yield MERGED, event.files_in, "in"
    yield MERGED, event.files_out, "out"
    yield MERGED_BYTES, event.bytes_in, "in"
    yield MERGED_BYTES, event.bytes_out, "out"


@_found.register
def _decided(event: EpochDecided) -> _Found:
    for metric, name in ((OPEN_ROWS, "open_rows"), (WAITING_ROWS, "waiting_rows")):
        if name in event.metrics:
            yield metric, event.metrics[name]


@_found.register
def _complete(event: EpochComplete) -> _Found:
    yield EPOCHS, 1, event.kind, "recovered" if event.recovered else "complete"
    yield ROWS, event.rows
    yield from _of_files(event.changes.files)
    yield REMOVED, len(event.changes.removed)
    yield LAST, event.at_ms / 1000
    if event.began_ms is not None:
        yield DURATION, _seconds(event.began_ms, event.decided_ms), "write"
        yield DURATION, _seconds(event.decided_ms, event.visible_ms), "publish"
        yield DURATION, _seconds(event.visible_ms, event.at_ms), "complete"
        yield DURATION, _seconds(event.began_ms, event.at_ms), "all"


def _of_files(files: Sequence[FinishedFile]) -> _Found:
    yield FILES, len(files)
    yield BYTES, sum(file.bytes for file in files)
    for file in files:
        yield SIZE, file.bytes


@_found.register
def _failed(event: EpochFailed) -> _Found:
    yield EPOCHS, 1, event.kind, "failed"
    yield ERRORS, 1, event.code or event.error


@_found.register
def _swept(event: HiddenFilesSwept) -> _Found:
    yield SWEPT, event.files


@_found.register
def _exported(event: ExportEnded) -> _Found:
    yield EXPORTS, 1, event.export, "failed" if event.error else "complete"
    yield EXPORTING, event.ms / 1000, event.export
    if event.behind is not None:
        yield BEHIND, event.behind, event.export


def _seconds(begin_ms: int, end_ms: int) -> float:
    """A clock may be set back."""
    return max(0, end_ms - begin_ms) / 1000
