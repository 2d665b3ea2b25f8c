"""One bucket in one task: at most one open part, and the parts it has closed.

An *open part* is the file being written now plus the segments of it that earlier epochs, or this one
under memory pressure, have put aside. Closed with segments it is reported as held files of one group,
to be put together by a stage on the driver; closed without any it is a pending file at once, unless
small files are merged: then every part is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from filesink.parts.committables import Committable, DiscardFile, HeldFile, PendingFile
from filesink.parts.part_file import PartFileInfo
from filesink.parts.part_writer import PartWriter, UnwritableRecord
from filesink.parts.rolling import RollingPolicy
from filesink.storage.staged import Staged

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SEGMENTS = 1000  # of one part; then it is closed


class Closed(Enum):
    """What a part is when it is closed: ready to be published, or held, to be merged with others."""

    PENDING = "pending"
    HELD = "held"


class Parts(Protocol):
    """Makes the files of a bucket; knows format, names and store.

    Attributes:
        suffix: how the names of finished files end.
        closed: what happens to closed parts.
    """

    suffix: str
    closed: Closed

    def open(self, bucket: str, schema: pa.Schema, *, target: str, last: HeldFile | None) -> PartWriter:
        """A new file; of the part whose last segment is ``last``, or of a new part.

        ``target`` is its final path if it is closed as a whole part.
        """
        ...

    def reject(self, bucket: str, record: pa.RecordBatch, *, position: int, found: UnwritableRecord) -> None:
        """Put aside, or fail because of, a batch of one row, the ``position``-th of ``bucket``."""
        ...

    def signature(self, schema: pa.Schema) -> str:
        """Names format, options and schema; a part is continued only if they are equal."""
        ...

    def carry_over(self, writer: PartWriter) -> bytes:
        """What the next segment of this part will need."""
        ...

    def target(self, bucket: str, counter: int) -> str:
        """The final path of the bucket's part number ``counter``."""
        ...

    def promote(self, staged: Staged, target: str) -> Staged:
        """Prepare a file for publication as ``target``."""
        ...

    def new_group(self) -> str:
        """An id for a part that stays open."""
        ...


@dataclass(slots=True)
class _OpenPart:
    """The part being written: put-aside segments and, once there is data, a writer."""

    group: str
    segments: list[HeldFile]
    created_ms: int
    updated_ms: int
    signature: str
    writer: PartWriter | None = None
    writer_created_ms: int = 0
    suffix: str = ""
    restored: int = 0  # how many of the segments are of earlier epochs
    held_size: int = 0  # of the segments; the policy asks often and segments are many
    held_rows: int = 0

    def __post_init__(self) -> None:
        self.held_size = sum(held.size for held in self.segments)
        self.held_rows = sum(held.rows for held in self.segments)

    def put_aside(self, segment: HeldFile) -> None:
        self.segments.append(segment)
        self.held_size += segment.size
        self.held_rows += segment.rows

    @property
    def is_untouched(self) -> bool:
        """Whether no record came in this epoch."""
        return self.writer is None and len(self.segments) == self.restored

    def info(self, bucket: str) -> PartFileInfo:
        writer = self.writer
        return PartFileInfo(
            bucket_id=bucket,
            size=self.held_size + (writer.size if writer else 0),
            rows=self.held_rows + (writer.rows if writer else 0),
            creation_time=self.created_ms,
            last_update_time=self.updated_ms,
        )


@dataclass(slots=True)
class WriterBucket:
    """Writes the records of one bucket. Made per bucket and task, used by one thread.

    Attributes:
        files: how many it has ended, without those that were discarded because they had no records.
    """

    bucket: str
    parts: Parts
    policy: RollingPolicy
    files: int = 0
    _open: _OpenPart | None = None
    _closed: list[Committable] = field(default_factory=list)
    _counter: int = 0
    _seen: int = 0  # records

    def restore(self, segments: Sequence[HeldFile]) -> None:
        """Go on with the part that ``segments``, in their order, belong to. Called before any write."""
        self._open = _OpenPart(
            group=segments[0].group,
            segments=list(segments),
            created_ms=min(held.created_ms for held in segments),
            updated_ms=max(held.updated_ms for held in segments),
            signature=segments[-1].signature,
            suffix=segments[-1].suffix,
            restored=len(segments),
        )

    def write(self, batch: pa.RecordBatch, now_ms: int) -> None:
        """Write all records of ``batch``; the policy is asked whenever a part is open."""
        signature = self.parts.signature(batch.schema)
        while batch.num_rows:
            part = self._part_for(signature, now_ms)
            if part.writer is None:
                target = self.parts.target(self.bucket, self._counter)
                last = _last(part.segments)
                part.writer = self.parts.open(self.bucket, batch.schema, target=target, last=last)
                part.writer_created_ms = now_ms
            allowance = self.policy.allowance(part.info(self.bucket))
            try:
                taken = part.writer.write(batch, allowance)
                part.updated_ms = now_ms
            except UnwritableRecord as found:
                taken = 1
                self._leave_unused(part)
                self.parts.reject(self.bucket, batch.slice(0, 1), position=self._seen + 1, found=found)
            self._seen += taken
            batch = batch.slice(taken)

    def on_processing_time(self, now_ms: int) -> None:
        """Close the open part if the policy says that its time has come."""
        part = self._open
        if part is not None and self.policy.should_roll_on_processing_time(part.info(self.bucket), now_ms):
            self.close_part()

    def prepare_commit(self) -> list[Committable]:
        """End the epoch: what was closed in it, and the open part if the policy closes it now."""
        part = self._open
        # The driver looks after a part that got no record.
        if part is not None and not part.is_untouched and self._rolls_now(part):
            self.close_part()
        self.end_segment()
        closed, self._closed = self._closed, []
        return closed

    def snapshot_state(self) -> list[HeldFile]:
        """The segments of the part that stays open. Called after ``prepare_commit``."""
        return [] if self._open is None else self._open.segments

    def close_part(self) -> None:
        """Close the open part, if there is one."""
        part, self._open = self._open, None
        if part is None:
            return
        if part.segments or self.parts.closed is Closed.HELD:
            self._end_segment(part)
            self._closed += part.segments
        elif part.writer is not None:
            self._closed.append(self._pending(part.writer))

    def end_segment(self) -> None:
        """Put aside what was written of the open part; it stays open."""
        part = self._open
        if part is not None and part.writer is not None:
            self._end_segment(part)
            if len(part.segments) >= MAX_SEGMENTS:
                self.close_part()

    @property
    def writer(self) -> PartWriter | None:
        """The file being written; the writer needs it to limit memory and descriptors."""
        return self._open.writer if self._open else None

    def _leave_unused(self, part: _OpenPart) -> None:
        """Discard a part that has no record yet."""
        if part.writer is not None and not part.writer.rows:
            part.writer.discard()
            part.writer = None
            if not part.segments:
                self._open = None

    def _rolls_now(self, part: _OpenPart) -> bool:
        return self.policy.should_roll_on_checkpoint(part.info(self.bucket))

    def _part_for(self, signature: str, now_ms: int) -> _OpenPart:
        part = self._open
        if part is not None and (
            part.signature != signature or self.policy.should_roll_on_event(part.info(self.bucket))
        ):
            self.close_part()
        if self._open is None:
            self._open = _OpenPart(
                group=self.parts.new_group(),
                segments=[],
                created_ms=now_ms,
                updated_ms=now_ms,
                signature=signature,
                suffix=self.parts.suffix,
            )
        return self._open

    def _pending(self, writer: PartWriter) -> PendingFile:
        target = self.parts.target(self.bucket, self._counter)
        self._counter += 1
        closed = writer.close()
        self.files += 1
        staged = self.parts.promote(closed, target)
        if staged.path != closed.path:  # copied by the store
            self._closed.append(DiscardFile(path=closed.path))
        return PendingFile(
            bucket=self.bucket, target=target, staged=staged, rows=writer.rows, size=staged.size
        )

    def _end_segment(self, part: _OpenPart) -> None:
        writer, part.writer = part.writer, None
        if writer is None:
            return
        carry_over = self.parts.carry_over(writer)
        staged = writer.hold()
        self.files += 1
        part.put_aside(
            HeldFile(
                bucket=self.bucket,
                group=part.group,
                staged=staged,
                rows=writer.rows,
                size=staged.size,
                created_ms=part.writer_created_ms,
                updated_ms=part.updated_ms,
                signature=part.signature,
                suffix=part.suffix,
                carry_over=carry_over,
                header_size=writer.header_size,
            )
        )


def _last(segments: Sequence[HeldFile]) -> HeldFile | None:
    return segments[-1] if segments else None
