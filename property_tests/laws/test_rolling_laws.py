"""Laws of rolling: where a part ends depends on its records and the policy, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filesink.api import WriterContext
from filesink.naming import OutputFileConfig
from filesink.parts.attempt import AttemptParts
from filesink.parts.bucket import WriterBucket
from filesink.parts.committables import Committable, HeldFile, HeldFileCodec, PendingFile
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from filesink.parts.part_file import PartFileInfo
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.system import SystemClock, SystemIds
from formats.api import BinaryOutput, BulkWriter, BulkWriterFactory
from property_tests.simulation.workload import HEADER_BYTES, ColumnAssigner, LinesEncoder

MIB = 1 << 20


class AskedBeforeEveryRecord(RollingPolicy):
    """A user's policy without an ``allowance`` of its own."""

    def __init__(self, part_size: int, age: int) -> None:
        self.part_size = part_size
        self.age = age

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """By size."""
        return part.size > self.part_size

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """By size."""
        return part.size > self.part_size

    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        """By age."""
        return now_ms - part.creation_time >= self.age


SIZES = st.integers(1, 120)
AGES = st.integers(1, 60)
KEPT_OPEN = st.builds(RollingPolicy.default_rolling_policy, SIZES, AGES, AGES) | st.builds(
    AskedBeforeEveryRecord, SIZES, AGES
)
CLOSED = st.builds(
    RollingPolicy.on_checkpoint_rolling_policy, st.none() | SIZES, st.none() | st.integers(1, 6)
)
POLICIES = KEPT_OPEN | CLOSED
ROWS = st.lists(st.integers(0, 40).map(lambda length: "x" * length), min_size=1, max_size=40)
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=6)


@dataclass
class Site:
    """One bucket of one lane, over as many epochs as a law wants."""

    policy: RollingPolicy
    form: FileFormat = field(default_factory=lambda: RowFormat(LinesEncoder()))
    files: MemoryFiles = field(default_factory=MemoryFiles)
    closed: list[Committable] = field(default_factory=list)
    asked: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bucket = self._begin([])

    def write(self, rows: Sequence[str], now_ms: int = 0) -> None:
        """Write records as one batch."""
        self.bucket.write(pa.RecordBatch.from_pydict({"row": list(rows)}), now_ms)

    def next_epoch(self) -> None:
        """End the epoch; what stays open goes through the ledger's bytes into the next one."""
        self.closed += self.bucket.prepare_commit()
        codec = HeldFileCodec()
        self.bucket = self._begin(codec.decode(1, codec.encode(self.bucket.snapshot_state())))

    def tick(self, now_ms: int) -> None:
        """Ask the policy about time, and keep what it was shown."""
        part = self.bucket._open
        if part is not None:
            info = part.info("")
            self.asked.append((info.size, info.rows, info.creation_time, info.last_update_time))
        self.bucket.on_processing_time(now_ms)

    def parts(self) -> list[bytes]:
        """Every part, the open one last, in the order in which they were begun."""
        self.bucket.close_part()
        parts: dict[str, bytes] = {}
        for file in [*self.closed, *self.bucket.prepare_commit()]:
            assert isinstance(file, PendingFile | HeldFile)
            key = file.group if isinstance(file, HeldFile) else file.target
            parts[key] = parts.get(key, b"") + self.files.files[file.staged.path].content
        return list(parts.values())

    def _begin(self, segments: Sequence[HeldFile]) -> WriterBucket:
        plan = Plan(
            format=self.form,
            assigner=ColumnAssigner(),
            policy=self.policy,
            names=OutputFileConfig(),
            check_interval_ms=1,
        )
        context = WriterContext(
            sink_id="uid-s",
            epoch=0,
            subtask_index=0,
            number_of_parallel_subtasks=None,
            attempt=0,
            time_zone="UTC",
            clock=SystemClock(),
            ids=SystemIds(),
        )
        bucket = WriterBucket("", AttemptParts(plan, MemoryStore(self.files), context), self.policy)
        if segments:
            bucket.restore(segments)
        return bucket


def pieces(rows: Sequence[str], cuts: Sequence[int]) -> list[Sequence[str]]:
    """The records in batches of these lengths, again and again."""
    ends = [0, *accumulate(cuts[number % len(cuts)] for number in range(len(rows)))]
    return [rows[start:end] for start, end in pairwise(ends) if start < len(rows)]


@given(POLICIES, ROWS, CUTS)
def test_a_part_ends_with_the_record_that_crosses(
    policy: RollingPolicy, rows: list[str], cuts: list[int]
) -> None:
    """However batches are cut: without its last record a part would not have ended, with it it does."""
    site = Site(policy)
    for piece in pieces(rows, cuts):
        site.write(piece)
    parts = [part[HEADER_BYTES:].decode().splitlines() for part in site.parts()]
    assert [row for part in parts for row in part] == rows
    for number, part in enumerate(parts):
        sizes = [HEADER_BYTES, *(len(row) + 1 for row in part)]
        for count, size in enumerate(accumulate(sizes[:-1])):
            assert count == 0 or not policy.should_roll_on_event(_part(size, count))
        assert number == len(parts) - 1 or policy.should_roll_on_event(_part(sum(sizes), len(part)))


@given(
    KEPT_OPEN,
    st.lists(st.tuples(ROWS.map(lambda rows: rows[:5]), st.integers(0, 30), st.booleans()), max_size=12),
)
def test_a_restored_part_is_a_continued_part(
    policy: RollingPolicy, steps: list[tuple[list[str], int, bool]]
) -> None:
    """A part put aside and restored at any point ends where it would have ended, with the same bytes.

    And whoever asks the policy shows it the same size, records and times.
    """
    continued, restored = Site(policy), Site(policy)
    now = 0
    for rows, later, ends_epoch in steps:
        now += later
        for site in (continued, restored):
            site.write(rows, now)
            site.tick(now)
        if ends_epoch:
            restored.next_epoch()
    size_decides = [part for part in restored.asked if policy.should_roll_on_event(_part(part[0], part[1]))]
    if not size_decides:  # a part that is full is closed by the end of an epoch, else by its next record
        assert continued.asked == restored.asked
    assert continued.parts() == restored.parts()


@given(POLICIES, st.integers(0, 200), st.integers(0, 8), st.integers(0, 90), st.integers(0, 90))
def test_who_rolls_a_part_rolls_a_larger_and_an_older_one(
    policy: RollingPolicy, size: int, rows: int, age: int, more: int
) -> None:
    """A policy that says yes goes on saying yes while a part grows, and while time passes."""
    small, large = _part(size, rows), _part(size + more, rows + more)
    for ask in (policy.should_roll_on_event, policy.should_roll_on_checkpoint):
        assert ask(large) or not ask(small)
    assert policy.should_roll_on_processing_time(small, age + more) or not (
        policy.should_roll_on_processing_time(small, age)
    )


@given(POLICIES, st.integers(0, 200), st.integers(0, 8), st.integers(0, 90))
def test_the_room_shrinks_as_a_part_grows(policy: RollingPolicy, size: int, rows: int, more: int) -> None:
    """What may be written without asking never grows with the part."""
    before, after = policy.allowance(_part(size, rows)), policy.allowance(_part(size + more, rows + more))
    for earlier, later in ((before.bytes, after.bytes), (before.rows, after.rows)):
        assert (earlier is None) == (later is None)
        assert earlier is None or later is None or later <= earlier


@given(POLICIES, st.lists(st.integers(1, 30), max_size=30))
def test_an_allowance_is_the_rule(policy: RollingPolicy, sizes: list[int]) -> None:
    """Within an allowance the rule would not have rolled before any record."""
    allowance = policy.allowance(_part(0, 0))
    grown = count = 0
    for size in sizes:
        used_up = (allowance.bytes is not None and grown > allowance.bytes) or (
            allowance.rows is not None and count >= allowance.rows
        )
        if used_up:
            return
        assert count == 0 or not policy.should_roll_on_event(_part(grown, count))
        grown, count = grown + size, count + 1


class Squeezing(BulkWriterFactory):
    """A bulk format that compresses each record as that record says: its first byte, in percent."""

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        del schema
        return SqueezingWriter(output)


class SqueezingWriter(BulkWriter):
    """Writes, for each record, as many bytes as its compression leaves; keeps them until a flush."""

    def __init__(self, output: BinaryOutput) -> None:
        self._output = output
        self._waiting = self._encoded = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """See ``BulkWriter.write``."""
        for row in cast("list[bytes]", batch.column(0).to_pylist()):
            self._waiting += len(row)
            self._encoded += len(row) * row[0] // 100

    @property
    def buffered_bytes(self) -> int:
        """See ``BulkWriter.buffered_bytes``."""
        return self._waiting

    def flush(self) -> None:
        """See ``BulkWriter.flush``."""
        encoded, self._encoded, self._waiting = self._encoded, 0, 0
        if encoded:
            self._output.write(bytes(encoded))

    def finish(self) -> None:
        """See ``BulkWriter.finish``."""
        self.flush()


RECORD = 64 << 10
STRETCHES = st.lists(st.tuples(st.integers(1, 100), st.integers(1, 60)), min_size=1, max_size=5)


@settings(max_examples=25)
@given(STRETCHES, st.integers(1, 20), st.sampled_from([MIB // 4, MIB, 4 * MIB]))
def test_a_bulk_part_overshoots_by_one_flush(stretches: list[tuple[int, int]], cut: int, limit: int) -> None:
    """However compression changes on the way, a part exceeds its limit by a mebibyte or an eighth at most.

    It may end before its limit: what waits to be compressed counts as what came before it did.
    """
    policy = RollingPolicy.on_checkpoint_rolling_policy(part_size=limit)
    site = Site(policy, BulkFormat(Squeezing()))
    rows = [bytes([percent]) * RECORD for percent, count in stretches for _ in range(count)]
    for start in range(0, len(rows), cut):
        site.bucket.write(pa.RecordBatch.from_pydict({"row": rows[start : start + cut]}), 0)
    sizes = [len(part) for part in site.parts()]
    assert sum(sizes) == sum(RECORD * row[0] // 100 for row in rows)
    assert all(size <= limit + max(MIB, limit // 8) + RECORD for size in sizes)


@pytest.mark.parametrize("part_size", [1, 10, 10**9])
def test_a_part_holds_at_least_one_record(part_size: int) -> None:
    """A limit smaller than a record, or than the header, still lets each part take one."""
    site = Site(RollingPolicy.default_rolling_policy(part_size))
    site.write(["a" * 20, "b" * 20])
    assert len(site.parts()) == (1 if part_size > 50 else 2)


def _part(size: int, rows: int) -> PartFileInfo:
    return PartFileInfo(bucket_id="", size=size, rows=rows, creation_time=0, last_update_time=0)
