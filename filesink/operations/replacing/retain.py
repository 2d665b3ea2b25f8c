"""Drops what a ``Retention`` does not keep, in one epoch.

Rule: a clock that is ahead must not drop what is young. What is done goes by the earlier of two clocks, that
of this machine and that of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from filesink.commit.outcome import Outcome
from filesink.file_sink.left_files import due_files
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import EXCLUSIVE
from filesink.operations.replacing.epochs import Change, Seen, look, replacing
from filesink.operations.replacing.retention import Retention
from filesink.parts.committables import Committable
from filesink.ports import Clock, Ports
from filesink.sink_directory.live_files import LiveFile
from filesink.storage.probes import store_ms

WHAT = "retain"


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedFiles:
    """What is dropped of one directory. ``rows`` is ``None`` if nobody knows; ``left`` files stay in it."""

    bucket: str
    files: int
    rows: int | None
    bytes: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """What ``retain`` would drop now.

    Attributes:
        dropped: by directory, in the order of their names.
        undated: directories whose names tell no time: they are kept.
        busy: files that stay for now, since a driver that has died may still look for them: call ``recover``.
        left: files that earlier operations or writes could not remove: it would be tried again.
        merged: inputs of an offline compaction that are still there, and go with what they were merged into.
    """

    dropped: Sequence[DroppedFiles]
    undated: Sequence[str] = ()
    busy: Sequence[str] = ()
    left: Sequence[str] = ()
    merged: Sequence[str] = ()

    @property
    def files(self) -> int:
        """How many would be dropped."""
        return sum(one.files for one in self.dropped)

    @property
    def bytes(self) -> int:
        """Their size together."""
        return sum(one.bytes for one in self.dropped)


@dataclass(frozen=True, kw_only=True)
class Retain:
    """Retention of one path.

    Attributes:
        tiers: the sink.
        retention: what is kept.
        base_path: for messages.
    """

    tiers: FileTiers
    retention: Retention
    base_path: str

    def plan(self, clock: Clock) -> RetentionPlan:
        """What ``run`` would drop now. Touches nothing."""
        seen = look(self.tiers, clock, self.base_path)
        files = list(seen.snapshot.files)
        gone, undated, busy = self._chosen(seen, files, clock.now_ms())
        due = due_files(self.tiers.address(), self.tiers.open_ledger(EXCLUSIVE), clock.now_ms)
        left = [file.path for file in due]
        return RetentionPlan(
            dropped=_by_bucket(files, gone),
            undated=undated,
            busy=busy,
            left=left,
            merged=seen.merged_into(gone),
        )

    def run(self, ports: Ports) -> Outcome[Committable] | None:
        """Drop it; ``None`` if there is nothing to drop. Raises as ``Replacing.run``."""

        def now_ms() -> int:
            return min(ports.clock.now_ms(), store_ms(self.tiers.address(), ports.ids.uuid()))

        return replacing(self.tiers, WHAT, self._choice(now_ms), base_path=self.base_path).run(ports)

    def _choice(self, now_ms: Callable[[], int]) -> Callable[[Seen], Change]:
        def choose(seen: Seen) -> Change:
            gone, _, _ = self._chosen(seen, list(seen.snapshot.files), now_ms())
            return Change(removed=gone)

        return choose

    def _chosen(
        self, seen: Seen, files: Sequence[LiveFile], now_ms: int
    ) -> tuple[list[LiveFile], list[str], list[str]]:
        written: dict[str, int] = {}
        if not self.retention.reads_times:
            written = {path: entry.mtime_ms for path, entry in seen.entries(files).items()}
        beyond, undated = self.retention.beyond(files, written, now_ms)
        busy = [file.path for file in beyond if seen.is_busy(file)]
        gone = [file for file in beyond if not seen.is_busy(file)]
        return gone, undated if self.retention.reads_times else [], busy


def _by_bucket(files: Sequence[LiveFile], gone: Sequence[LiveFile]) -> list[DroppedFiles]:
    of_all: dict[str, int] = {}
    for file in files:
        of_all[file.bucket] = of_all.get(file.bucket, 0) + 1
    found: dict[str, list[LiveFile]] = {}
    for file in gone:
        found.setdefault(file.bucket, []).append(file)
    return [
        DroppedFiles(
            bucket=bucket,
            files=len(some),
            rows=None if any(file.rows is None for file in some) else sum(file.rows or 0 for file in some),
            bytes=sum(file.size for file in some),
            left=of_all[bucket] - len(some),
        )
        for bucket, some in sorted(found.items())
    ]
