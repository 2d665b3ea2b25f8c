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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from filesink.api import SinkWriter, WriterContext
from filesink.buckets.contract import BaseBucketAssigner, BucketContext, find_column
from filesink.buckets.event_time import latest_ms
from filesink.buckets.router import Router
from filesink.errors import ConfigError, InternalError, StorageError
from filesink.local_time import DAY, time_zone
from filesink.naming import HiddenName, OutputFileConfig, join, new_part_id, sink_tag
from filesink.parts import dead_letters, file_format
from filesink.parts.bucket import Closed, WriterBucket
from filesink.parts.committables import Committable, HeldFile, Watermark
from filesink.parts.dead_letters import DeadLetters, Rejections
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from filesink.parts.part_writer import PartWriter, SizeHint, UnwritableRecord
from filesink.parts.rolling import RollingPolicy
from filesink.storage.api import Output, Store
from filesink.storage.bucket_ids import Refusal, refusal
from filesink.storage.staged import Staged

if TYPE_CHECKING:
    import pyarrow as pa

_AHEAD_MS = DAY * 1000  # times further ahead of the clock are errors in the data


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """What one task may keep open at a time.

    Attributes:
        memory: bytes of records that wait in memory, over all buckets; beyond it the largest buffers are
            written out first, all of them where records of too many buckets wait for their turn. Up to a
            quarter as much may be there besides, to be routed.
        open_files: files with a descriptor; beyond it the largest are closed first.
    """

    memory: int = 128 << 20
    open_files: int = 400

    def __post_init__(self) -> None:
        given: tuple[object, ...] = (self.memory, self.open_files)
        if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 1 for each in given):
            raise ConfigError("writer limits must be whole numbers greater than 0", code="BAD_VALUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a sink writes: everything a writer needs but its task and its store.

    ``watermark_column``: whose latest time tasks report; ``watermark_zone``: whose wall clock its times
    without a zone show, ``None`` for the session's. ``on_bad_record``: where records go that have
    no bucket, or that the encoder cannot write; ``None`` fails the epoch.
    """

    format: FileFormat
    assigner: BaseBucketAssigner
    policy: RollingPolicy
    names: OutputFileConfig
    check_interval_ms: int
    closed: Closed = Closed.PENDING
    limits: WriterLimits = field(default_factory=WriterLimits)
    watermark_column: str | None = None
    watermark_zone: str | None = None
    on_bad_record: DeadLetters | None = None

    def of_dead_letters(self) -> Plan:
        """How records are written that this plan could not write."""
        return replace(
            self,
            format=BulkFormat(dead_letters.FORMAT),
            policy=RollingPolicy.on_checkpoint_rolling_policy(),
            names=OutputFileConfig(part_prefix=self.names.part_prefix, part_suffix=self._suffix_of_letters()),
            closed=Closed.PENDING,
            on_bad_record=None,
        )

    def _suffix_of_letters(self) -> str | None:
        """Not that of data: globs of DuckDB and polars look into ``_dead_letters``, too."""
        extension = dead_letters.FORMAT.extension
        same = self.names.suffix(file_format.code_of(self.format).extension).endswith(extension)
        return f"{extension}.dead" if same else None


class AttemptParts:
    """Makes the files of one attempt; implements ``filesink.parts.bucket.Parts``."""

    def __init__(self, plan: Plan, store: Store, context: WriterContext) -> None:
        self._plan = plan
        self._store = store
        self._context = context
        self._tag = sink_tag(context.sink_id)
        self._attempt = context.ids.uuid()
        self._part_ids: dict[str, str] = {}
        self._hint = SizeHint()
        self._files = 0
        self._signature: tuple[pa.Schema, str] | None = None
        self.outputs: list[Output] = []
        self.rejections = Rejections(plan.on_bad_record, context.subtask_index)
        self.closed = plan.closed
        self.suffix = plan.names.suffix(file_format.code_of(plan.format).extension)
        finished = plan.names.name_with(self._attempt, 999_999, self.suffix)
        #: As long as the names of this attempt become.
        self.longest_name = max(finished, str(self._hidden(999_999)), key=len)

    def open(self, bucket: str, schema: pa.Schema, *, target: str, last: HeldFile | None) -> PartWriter:
        """See ``Parts.open``."""
        name = self._hidden(self._files)
        self._files += 1
        form = self._plan.format
        # Row formats may hold what they write, so only a bulk file is published by its own epoch for sure.
        ends_here = isinstance(form, BulkFormat) and self.closed is Closed.PENDING
        output = self._store.create(join(bucket, str(name)), target=target if ends_here else None)
        self.outputs.append(output)
        if last is not None and isinstance(form, RowFormat):
            return form.resume(output, last.carry_over, self._hint)
        return form.start(output, schema, self._hint)

    def _hidden(self, number: int) -> HiddenName:
        return HiddenName(
            target=f"{self._plan.names.part_prefix}-{number}",
            tag=self._tag,
            slot=self._context.epoch,
            attempt=self._attempt,
        )

    def reject(self, bucket: str, record: pa.RecordBatch, *, position: int, found: UnwritableRecord) -> None:
        """See ``Parts.reject``."""
        self.rejections.add(bucket, record, position=position, found=found)

    def signature(self, schema: pa.Schema) -> str:
        """See ``Parts.signature``; asked for every slice, so an equal schema is not hashed again."""
        if self._signature is None or not self._signature[0].equals(schema):
            self._signature = (schema, file_format.signature(self._plan.format, schema))
        return self._signature[1]

    def carry_over(self, writer: PartWriter) -> bytes:
        """See ``Parts.carry_over``."""
        return file_format.carry_over(writer)

    def target(self, bucket: str, counter: int) -> str:
        """See ``Parts.target``; one part id per bucket and attempt."""
        part_id = self._part_ids.get(bucket)
        if part_id is None:
            part_id = self._part_ids[bucket] = self.new_group()
        return join(bucket, self._plan.names.name_with(part_id, counter, self.suffix))

    def promote(self, staged: Staged, target: str) -> Staged:
        """See ``Parts.promote``."""
        return self._store.promote(staged, target)

    def new_group(self) -> str:
        """See ``Parts.new_group``."""
        return new_part_id(self._tag, self._context.epoch, self._context.ids)


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

        Closes all of them, whatever the store says of one: the error that ended the attempt is the one
        to be told. What cannot be removed has a hidden name of ours, and is swept.
        """
        for output in self._outputs():
            with suppress(StorageError):
                output.discard()

    def close(self) -> None:
        """Nothing is left open after ``prepare_commit`` or ``abort_prepare``."""

    def _why_no_bucket(self, bucket: str) -> Refusal | None:
        """As ``bucket_ids.refusal``, and what this store says of files there."""
        path, letters = join(bucket, self._parts.longest_name), self._plan.on_bad_record
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
        """Whether there were any; of many, some are written out before all have come."""
        step = max(1, self._plan.limits.open_files // 2)
        number = 0
        for number, (bucket, piece) in enumerate(pieces, 1):
            self._bucket(bucket).write(piece, now_ms)
            if number % step == 0:
                self._make_room()
        for bucket, letter in self._parts.rejections.drain():
            self._bucket_of_dead_letters(bucket).write(letter, now_ms)
        return number > 0

    def _stay_within_limits(self, now_ms: int) -> None:
        """Make room, and let go of what the router holds too much.

        Of that no more than is too much: the longer records of a bucket wait, the more of them are
        written at once.
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

        What was flushed is an open file, and an open file takes more memory than the records of a small
        part: so only few are flushed before some are closed.
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
