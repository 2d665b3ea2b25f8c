"""Streams while they run: how far they are, and whether a micro-batch takes too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from filesink.durations import has_passed
from filesink.errors import JobError, StateCorruptError
from filesink.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How far the streams of a pipeline are, since it was started last.

    Attributes:
        epochs: micro-batches that had rows or changed something.
        rows: that were read.
        rows_per_second: of the newest micro-batches, while they were at work.
        newest: when the newest micro-batch began, by Spark's clock, as ISO 8601; ``""`` if there was none.
        at_ms: when this was noted, in milliseconds since 1970 UTC.
        behind: records that the sources have and that were not read; ``None`` if no source tells, as only
            Kafka's does: of each, its partition that has most.
    """

    epochs: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    newest: str = ""
    at_ms: int = 0
    behind: int | None = None

    def plain(self) -> dict[str, Any]:
        """Values of JSON."""
        return asdict(self)

    @staticmethod
    def of(value: Mapping[str, Any]) -> Figures:
        """What ``plain`` has given.

        Raises:
            StateCorruptError: it is none.
        """
        try:
            return Figures(**value)
        except TypeError:
            raise StateCorruptError("a record in the store of jobs has no figures", code="JSON") from None


@dataclass(slots=True)
class _Query:
    """What is known of one query."""

    batch: int = -1
    epochs: int = 0
    rows: int = 0
    speed: float = 0.0
    newest: str = ""
    behind: int | None = None
    begun: tuple[int, int] | None = None  # the number of the micro-batch that is at work, and since when


@dataclass(slots=True, kw_only=True)
class Watch:
    """Looks at queries again and again.

    Args:
        timeout_ms: how long a micro-batch may take; ``None`` for any time.
    """

    timeout_ms: int | None
    clock: Clock
    _known: dict[str, _Query] = field(default_factory=dict)

    def looked(self, queries: Sequence[Any]) -> Figures:
        """How far they are now.

        Raises:
            JobError: ``JOB_TIMEOUT``.
        """
        for query in queries:
            known = self._known.setdefault(str(query.runId), _Query())
            self._count(query, known)
            if self.timeout_ms is not None and query.isActive:
                self._check_time(query, known)
        found = self._known.values()
        behind = [one.behind for one in found if one.behind is not None]
        return Figures(
            epochs=sum(one.epochs for one in found),
            rows=sum(one.rows for one in found),
            rows_per_second=round(sum(one.speed for one in found), 1),
            newest=max((one.newest for one in found), default=""),
            at_ms=self.clock.now_ms(),
            behind=sum(behind) if behind else None,
        )

    def rows_of(self, queries: Sequence[Any]) -> int:
        """Rows that ended queries have read in this run."""
        self.timeout_ms = None
        return sum((self.looked([query]), self._known[str(query.runId)].rows)[1] for query in queries)

    @staticmethod
    def _count(query: Any, known: _Query) -> None:
        for progress in query.recentProgress:
            known.behind = _behind(progress)
            number = int(progress["batchId"])
            if number > known.batch:
                known.batch = number
                known.epochs += 1
                known.rows += max(int(progress["numInputRows"]), 0)
                known.speed = float(progress["processedRowsPerSecond"] or 0)
                known.newest = str(progress["timestamp"])

    def _check_time(self, query: Any, known: _Query) -> None:
        if not query.status["isTriggerActive"]:
            known.begun = None
            return
        now_ms = self.clock.now_ms()
        if known.begun is None or known.begun[0] != known.batch:
            known.begun = (known.batch, now_ms)
        elif self.timeout_ms is not None and has_passed(known.begun[1], now_ms, self.timeout_ms):
            raise JobError(
                f"micro-batch {known.batch + 1} takes longer than checkpoint.timeout, {self.timeout_ms:,} "
                "ms: give it more time, or let it have fewer rows by read_limit.…",
                code="JOB_TIMEOUT",
            )


def _behind(progress: Mapping[str, Any]) -> int | None:
    told = [source["metrics"] or {} for source in progress["sources"]]
    found = [one["maxOffsetsBehindLatest"] for one in told if "maxOffsetsBehindLatest" in one]
    return sum(map(int, found)) if found else None
