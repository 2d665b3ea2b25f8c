"""The writer of one task: routes slices of record batches to buckets, and bounds what is open.

    RecordBatch → BaseBucketAssigner → (bucket, slice)* → WriterBucket → PartWriter

Rules:
1. An attempt touches only files that it has made itself, under names that hold its own id.
2. All files are closed and synced before anything is reported, so no writer holds a file that may
   be published, and what is reported survives a power cut.
3. Neither memory nor descriptors grow with the number of buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from filesink.api import SinkWriter, WriterContext
from filesink.buckets.contract import BucketContext, find_column
from filesink.buckets.event_time import latest_ms
from filesink.buckets.router import Router
from filesink.errors import InternalError, StorageError
from filesink.local_time import DAY, time_zone
from filesink.naming import join
from filesink.parts.attempt import AttemptParts
from filesink.parts.bucket import WriterBucket
from filesink.parts.committables import Committable, HeldFile, Watermark
from filesink.parts.file_format import RowFormat
from filesink.parts.plan import Plan
from filesink.storage.api import Output, Store
from filesink.storage.bucket_ids import Refusal, refusal

if TYPE_CHECKING:
    import pyarrow as pa

_AHEAD_MS = DAY * 1000  # times further ahead of the clock are errors in the data


class FileWriter(SinkWriter[HeldFile, Committable]):
    """Writes one partition of one epoch into files.

    Args:
        plan: how the sink writes.
        store: made for this task.
        context: of the task.
        held: segments of the parts that this subtask left open.
    """

    def __init__(
        self, plan: Plan, store: Store, context: WriterContext, held: Sequence[HeldFile] = ()
    ) -> None:
        self._plan = plan
        self._store = store
        self._context = context
        self._parts = AttemptParts(plan, store, context)
        self._letters: AttemptParts | None = None  # made with the first dead letter
        self._buckets: dict[str, WriterBucket] = {}
        self._surplus: list[Committable] = []
        self._wanted: dict[str, tuple[str, ...] | None] = {}  # columns, by bucket
        self._router = Router(
            plan.assigner, plan.limits.memory, self._parts.rejections.refuse, self._why_no_bucket
        )
        self._next_check = context.clock.now_ms() + plan.check_interval_ms
        self._latest_ms = -1
        self._restore(held)

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """Route the records of ``batch`` to their buckets."""
        now_ms = context.clock.now_ms()
        buckets = BucketContext(processing_time_ms=now_ms, time_zone=context.time_zone)
        self._write_all(self._router.route(batch, buckets), now_ms)
        if self._plan.watermark_column is not None:
            self._look_for_times(batch, self._plan.watermark_column, now_ms)
        if now_ms >= self._next_check:
            self._next_check = now_ms + self._plan.check_interval_ms
            for writer_bucket in self._buckets.values():
                writer_bucket.on_processing_time(now_ms)

    def prepare_commit(self, epoch: int) -> list[Committable]:
        """Close or hold every part, durably; see ``SinkWriter.prepare_commit``."""
        if epoch != self._context.epoch:
            raise InternalError("a writer serves one epoch only; please report this", code="EPOCH")
        now_ms = self._context.clock.now_ms()
        buckets = BucketContext(processing_time_ms=now_ms, time_zone=self._context.time_zone)
        self._write_all(self._router.drain(buckets), now_ms)
        closed = self._store.runner.run(WriterBucket.prepare_commit, self._buckets.values())
        committables = [*self._surplus, *(file for files in closed for file in files)]
        if self._latest_ms >= 0:
            committables.append(Watermark(latest_ms=self._latest_ms, time_zone=self._context.time_zone))
        self._store.sync()
        outputs = self._outputs()
        if self._parts.rejections.count:
            self._context.metrics.add("dead_letters", self._parts.rejections.count)
        self._context.metrics.add("buckets", len(self._buckets))
        self._context.metrics.add("files_written", sum(bucket.files for bucket in self._buckets.values()))
        self._context.metrics.add("bytes_written", sum(output.tell() for output in outputs))
        return committables

    def snapshot_state(self, epoch: int) -> list[HeldFile]:
        """Segments of the parts that stay open; see ``SinkWriter.snapshot_state``."""
        del epoch
        return [held for bucket in self._buckets.values() for held in bucket.snapshot_state()]

    def abort_prepare(self) -> None:
        """Remove every file of this attempt.

        Goes on if the store refuses one of them: the error to report is the one that ended the attempt.
        What cannot be removed has a hidden name of ours, and is swept.
        """
        for output in self._outputs():
            with suppress(StorageError):
                output.discard()

    def close(self) -> None:
        """Nothing is left open after ``prepare_commit`` or ``abort_prepare``."""

    def _why_no_bucket(self, bucket: str) -> Refusal | None:
        """As ``bucket_ids.refusal``; also why this store takes no files there."""
        path, letters = self._parts.longest_in(bucket), self._plan.on_bad_record
        longest = path if letters is None else join(letters.path, path)
        return refusal(bucket) or self._store.refusal(longest)

    def _outputs(self) -> list[Output]:
        return [*self._parts.outputs, *(self._letters.outputs if self._letters else ())]

    def _look_for_times(self, batch: pa.RecordBatch, column: str, now_ms: int) -> None:
        times = batch.column(find_column(batch.schema, column))
        zone = time_zone(self._plan.watermark_zone or self._context.time_zone)
        latest = latest_ms(times, zone, before_ms=now_ms + _AHEAD_MS)
        self._latest_ms = max(self._latest_ms, -1 if latest is None else latest)

    def _restore(self, held: Sequence[HeldFile]) -> None:
        groups: dict[tuple[str, str], list[HeldFile]] = {}
        for segment in held:
            groups.setdefault((segment.bucket, segment.group), []).append(segment)
        for (bucket, _), segments in groups.items():
            if bucket in self._buckets:  # never two open parts in one bucket of one lane
                self._surplus += segments
            else:
                self._bucket(bucket).restore(segments)

    def _bucket(self, bucket: str) -> WriterBucket:
        found = self._buckets.get(bucket)
        if found is None:
            found = WriterBucket(bucket, self._parts, self._plan.policy)
            self._buckets[bucket] = found
        return found

    def _bucket_of_dead_letters(self, bucket: str) -> WriterBucket:
        plan = self._plan.of_dead_letters()
        if self._letters is None:
            self._letters = AttemptParts(plan, self._store, self._context)
        return self._buckets.setdefault(bucket, WriterBucket(bucket, self._letters, plan.policy))

    def _write_all(self, pieces: Iterable[tuple[str, pa.RecordBatch]], now_ms: int) -> None:
        held = self._router.held
        if self._write_pieces(pieces, now_ms) or self._router.held > held:
            self._stay_within_limits(now_ms)

    def _write_pieces(self, pieces: Iterable[tuple[str, pa.RecordBatch]], now_ms: int) -> bool:
        """Write the pieces; whether there were any. If there are many, buffers are emptied meanwhile."""
        step = max(1, self._plan.limits.open_files // 2)
        number = 0
        for number, (bucket, piece) in enumerate(pieces, 1):
            self._bucket(bucket).write(self._cut(bucket, piece), now_ms)
            if number % step == 0:
                self._make_room()
        for bucket, letter in self._parts.rejections.drain():
            self._bucket_of_dead_letters(bucket).write(letter, now_ms)
        return number > 0

    def _cut(self, bucket: str, piece: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of ``piece`` that go into the files of ``bucket``."""
        if bucket not in self._wanted:
            self._wanted[bucket] = self._plan.assigner.columns_of(bucket)
        wanted = self._wanted[bucket]
        if wanted is None:
            return piece
        places = sorted({find_column(piece.schema, name) for name in wanted})
        return piece.select(places)

    def _stay_within_limits(self, now_ms: int) -> None:
        """Make room, and release from the router what it holds beyond its limit.

        Not more than that: the longer the records of a bucket wait, the more of them are written at
        once.
        """
        self._make_room()
        while self._router.held > self._plan.limits.memory:
            self._write_pieces(self._router.release(), now_ms)
            self._flush_largest(0)
            self._close_largest()

    def _make_room(self) -> None:
        """Write out the largest buffers if too much waits, here and in the router; then close files."""
        memory = self._plan.limits.memory
        if self._waiting_bytes() + self._router.held > memory:
            self._flush_largest(max(0, memory // 2 - self._router.held))
        self._close_largest()

    def _waiting_bytes(self) -> int:
        return sum(map(_buffered, self._buckets.values()))

    def _writing(self) -> list[WriterBucket]:
        return [bucket for bucket in self._buckets.values() if bucket.writer is not None]

    def _flush_largest(self, goal: int) -> None:
        """Flush the fullest until at most ``goal`` bytes wait.

        A flush leaves an open file, and an open file takes more memory than the records of a small part:
        so only a few are flushed before some are closed.
        """
        step = max(1, self._plan.limits.open_files // 2)
        fullest = sorted(self._writing(), key=lambda bucket: -_buffered(bucket))
        for start in range(0, len(fullest), step):
            excess = self._waiting_bytes() - goal
            for bucket in fullest[start : start + step]:
                if excess <= 0:
                    return
                excess -= _buffered(bucket)
                if bucket.writer is not None:  # else it was closed meanwhile
                    bucket.writer.flush()
            self._close_largest()

    def _close_largest(self) -> None:
        """Close the largest files if more are open than may be."""
        limit = self._plan.limits.open_files
        files = [bucket for bucket in self._buckets.values() if bucket.writer and bucket.writer.is_open]
        if len(files) <= limit:
            return
        files.sort(key=lambda bucket: -bucket.writer.size if bucket.writer else 0)
        for bucket in files[: len(files) - limit // 2]:
            if isinstance(self._plan.format, RowFormat) and bucket.parts is self._parts:
                bucket.end_segment()
            else:
                bucket.close_part()


def _buffered(bucket: WriterBucket) -> int:
    return bucket.writer.buffered if bucket.writer else 0
