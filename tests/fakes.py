"""A world without Spark: clock, ids, files and jobs that a test sets, driving the real sink."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from filesink.api import Metrics, WriterContext
from filesink.api.epoch import always
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.epoch import EpochLoop
from filesink.commit.layout_guard import OnOtherLayout
from filesink.commit.replay import EpochOptions
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.inventory.names import DIRECTORY
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import MicroBatch
from filesink.metastore.partition_commit import PartitionCommit
from filesink.naming import OutputFileConfig
from filesink.operations.maintenance import Announce, Maintenance
from filesink.parts.bucket import Closed, WriterBucket
from filesink.parts.committables import HeldFile
from filesink.parts.file_format import FileFormat, RowFormat
from filesink.parts.plan import Plan, WriterLimits
from filesink.parts.rolling import RollingPolicy
from filesink.parts.stages.closed_parts import Compaction, Waiting
from filesink.parts.writer import FileWriter
from filesink.ports import Audience, Losers, Ports, SerialRunner
from filesink.storage.api import Store
from filesink.storage.faulty import Fault, FaultyStore
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.staged import HiddenFile
from formats.encoders import Encoder

QUERY = "0a0b0c0d-0000-4000-8000-000000000001"


@dataclass
class SettableClock:
    """Shows ``now``; sleeping is noted and takes no time."""

    now: int = 0
    slept: list[float] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class CountingIds:
    """Version-4 UUIDs in a fixed order."""

    made: int = 0

    def uuid(self) -> str:
        self.made += 1
        return str(uuid.UUID(int=self.made << 64 | self.made, version=4))


class ByColumn(BucketAssigner):
    """The column ``bucket`` is the bucket id, and is not in the files."""

    def assign(self, batch, context):
        del context
        return batch.column("bucket")

    def partition_columns(self):
        return ("bucket",)


SCHEMA = pa.schema([("bucket", pa.string()), ("value", pa.string())])


def records(*values: str, bucket: str = "") -> pa.RecordBatch:
    """One record for each value, all for one bucket."""
    return pa.RecordBatch.from_pydict({"bucket": [bucket] * len(values), "value": list(values)})


@dataclass
class FakeJob:
    """Runs the tasks of an epoch in this process, one per partition, by the world's clock and ids."""

    partitions: Sequence[Iterable[pa.RecordBatch]]
    clock: SettableClock
    ids: CountingIds
    run_id: str = "run-1"
    time_zone: str = "UTC"
    offsets: str = ""
    attempts: Sequence[tuple[int, int]] | None = None  # (subtask, attempt); the last of a subtask wins
    twins: Losers = Losers.NONE
    executions: int = 0
    schema: pa.Schema = SCHEMA
    wanted: Callable[[], bool] = always

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        self.executions += 1
        attempts = self.attempts or [(subtask, 0) for subtask in range(len(self.partitions))]
        run_with = task.__self__.run_with
        results = {
            subtask: run_with(subtask, attempt, self.partitions[subtask], clock=self.clock, ids=self.ids)
            for subtask, attempt in attempts
        }
        return list(results.values())

    def count_rows(self) -> int:
        self.executions += 1
        return sum(batch.num_rows for partition in self.partitions for batch in partition)

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        return self.twins

    def is_wanted(self) -> bool:
        return self.wanted()


def plan_of(
    form: FileFormat | Encoder | None = None,
    policy: RollingPolicy | None = None,
    *,
    limits: WriterLimits | None = None,
    names: OutputFileConfig | None = None,
    check_interval_ms: int = 60_000,
) -> Plan:
    """Lines of text in buckets by column, closed at every epoch, unless said otherwise."""
    form = form or Encoder.simple_string_encoder()
    return Plan(
        format=RowFormat(form) if isinstance(form, Encoder) else form,
        assigner=ByColumn(),
        policy=policy or RollingPolicy.on_checkpoint_rolling_policy(),
        names=names or OutputFileConfig(),
        check_interval_ms=check_interval_ms,
        limits=limits or WriterLimits(),
    )


def keep_open(
    part_size: int = 1 << 20, rollover_interval: int = 1000, inactivity_interval: int = 1000
) -> RollingPolicy:
    """A policy under which parts stay open across epochs."""
    return RollingPolicy.default_rolling_policy(part_size, rollover_interval, inactivity_interval)


def staged(path: str, size: int = 1) -> HiddenFile:
    """A file that exists nowhere."""
    return HiddenFile(path=path, size=size, inode=1, mtime_ns=1)


def held(path: str, *, group: str = "g", bucket: str = "", size: int = 1, created_ms: int = 0) -> HeldFile:
    """A held file that exists nowhere."""
    return HeldFile(
        bucket=bucket,
        group=group,
        staged=staged(path, size),
        rows=1,
        size=size,
        created_ms=created_ms,
        updated_ms=created_ms,
        signature="s",
        suffix=".txt",
    )


@dataclass
class World:
    """One base path, a clock, and as many drivers as a test makes."""

    plan: Plan = field(default_factory=plan_of)
    uid: str | None = "u"
    clock: SettableClock = field(default_factory=SettableClock)
    ids: CountingIds = field(default_factory=CountingIds)
    fault: Callable[[str, str], Fault | None] = lambda _operation, _path: None
    open_store: Callable[[], Store] | None = None
    compaction: Compaction | Waiting = Waiting.REFUSED
    partition_commit: PartitionCommit | None = None
    on_other_layout: OnOtherLayout = OnOtherLayout.REFUSE
    emptied: Collection[str] = ()
    reader_grace_ms: int = 0
    audience: Audience | None = None

    def __post_init__(self) -> None:
        self.files = MemoryFiles(now_ms=self.clock.now_ms)

    @property
    def sink_id(self) -> str:
        return f"uid-{self.uid}"

    def store(self) -> Store:
        real = self.open_store() if self.open_store else MemoryStore(self.files)
        # The fault of the moment of the call, not of the moment when the store is made.
        return FaultyStore(real, lambda *operation: self.fault(*operation))  # noqa: PLW0108

    def tiers(self) -> FileTiers:
        closed = Closed.HELD if isinstance(self.compaction, Compaction) else Closed.PENDING
        commit = self.partition_commit
        return FileTiers(
            address=self.store,
            plan=replace(self.plan, closed=closed),
            uid=self.uid,
            publishing=None if commit is None else Publishing(commit=commit, base_path="/base"),
            compaction=self.compaction,
            on_other_layout=self.on_other_layout,
            emptied=self.emptied,
            reader_grace_ms=self.reader_grace_ms,
        )

    def ledger(self, sink_id: str | None = None) -> Ledger:
        return self.tiers().open_ledger(sink_id or self.sink_id)

    def driver(self, sink_id: str | None = None, **options) -> EpochLoop:
        """A driver that has just started."""
        options = EpochOptions(**options)
        return EpochLoop(self.tiers(), self.ledger(sink_id), ports=self.ports(), options=options)

    def forget_inventory(self) -> None:
        """As if an earlier release had written all that is there."""
        for path in [path for path in self.files.files if path.startswith(f"{DIRECTORY}/")]:
            del self.files.files[path]

    def ports(self) -> Ports:
        """Those of a driver."""
        return Ports(clock=self.clock, ids=self.ids, runner=SerialRunner(), audience=self.audience)

    def maintenance(self, announce: Announce = Announce.RAISE) -> Maintenance:
        return Maintenance(self.tiers(), clock=self.clock, ids=self.ids, announce=announce)

    def job(self, *partitions: Iterable[pa.RecordBatch] | pa.RecordBatch, **options) -> FakeJob:
        lists = [[given] if isinstance(given, pa.RecordBatch) else given for given in partitions]
        return FakeJob(lists, self.clock, self.ids, **options)

    def context(self, epoch: int = 0, subtask: int = 0) -> WriterContext:
        return WriterContext(
            sink_id=self.sink_id,
            epoch=epoch,
            subtask_index=subtask,
            number_of_parallel_subtasks=None,
            attempt=0,
            time_zone="UTC",
            clock=self.clock,
            ids=self.ids,
            metrics=Metrics(),
        )

    def writer(self, held_files: Sequence[HeldFile] = (), *, epoch: int = 0) -> FileWriter:
        return FileWriter(self.plan, self.store(), self.context(epoch), held_files)

    def bucket_of(self, writer: FileWriter, bucket: str = "") -> WriterBucket:
        return writer._buckets[bucket]

    def contents(self) -> dict[str, bytes]:
        """Every file but the ledger's."""
        found = {path: file.content for path, file in self.files.files.copy().items()}
        return {path: data for path, data in found.items() if not path.startswith("_filesink/")}

    def visible(self) -> dict[str, bytes]:
        """What readers take for data."""
        return {path: data for path, data in self.contents().items() if not is_hidden(path)}

    def hidden(self) -> list[str]:
        return sorted(path for path in self.contents() if is_hidden(path))

    def rows(self) -> list[str]:
        """The visible lines, sorted."""
        return sorted(line for data in self.visible().values() for line in data.decode().splitlines())


def is_hidden(path: str) -> bool:
    """Whether readers skip the file by its name."""
    return path.rpartition("/")[2][0] in "._"


def micro_batch(batch_id: int, *, query_id: str = QUERY, fingerprint: str = "") -> MicroBatch:
    """A micro-batch of the test's query; its fingerprint follows from its number."""
    return MicroBatch(query_id=query_id, batch_id=batch_id, fingerprint=fingerprint or f"{batch_id:064x}")
