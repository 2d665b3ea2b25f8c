"""The sink API: three tiers, no files, no Spark.

    tasks      SinkWriter.write* ─▶ prepare_commit ─▶ snapshot_state ─▶ close
    driver     PreCommitStage.prepare* ─▶ *decide* ─▶ SinkCommitter.commit ─▶ SinkAggregatedCommitter.commit

The tiers and their names are SeaTunnel's (``SeaTunnelSink`` and its writer, committer and
aggregated committer); the richer writer context and the stages before the commit are Flink's
(FLIP-177, FLIP-191). ``FileSink`` is one implementation; an engine drives any other the same way.

One *epoch* is the unit of commit: a micro-batch, a batch write, or a step of the engine without
input. Its record in the ledger is the point of no return. Before it only discarding is allowed,
after it only going on: every ``commit`` may be called again, in another process, until it has
returned an empty list, and finds out by looking what has been done already.

A ``Sink`` is pickled to the tasks; nothing else of this API is. What crosses processes goes
through the codecs, and so does what survives a restart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from filesink.framing import Codec
from filesink.ports import Clock, Ids, TaskRunner
from filesink.save_mode import SaveMode
from filesink.system import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa

    from filesink.ledger.ledger import Ledger
    from filesink.ledger.record import EpochRecord

StateT = TypeVar("StateT")
CommittableT = TypeVar("CommittableT")
AggregatedT = TypeVar("AggregatedT")

#: Under this index stages keep state of their own, beside that of the subtasks; no task is given it.
OF_STAGES = -1
#: In the metadata of a column of the input: path and type of an interval in it whose first or last unit
#: its Arrow type does not tell.
SHORT_INTERVAL = b"filesink.interval"


@dataclass(slots=True)
class Metrics:
    """Counters of one task, added up over the tasks of an epoch into its report."""

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Count ``amount`` more of ``name``, as in ``metrics.add("parts_rolled", 1)``."""
        self.values[name] = self.values.get(name, 0) + amount


@dataclass(slots=True)
class Mailbox:
    """Completions of asynchronous work, handed to the writer's own thread (FLIP-177).

    ``post`` may be called from any thread; the engine calls ``drain`` between two batches and
    before ``prepare_commit``, so a writer needs no locks.
    """

    _letters: list[Callable[[], None]] = field(default_factory=list)

    def post(self, letter: Callable[[], None]) -> None:
        """Have ``letter`` called in the writer's thread."""
        self._letters.append(letter)  # list.append is atomic

    def drain(self) -> None:
        """Call what was posted, in order; an error of a letter fails the task."""
        while self._letters:
            self._letters.pop(0)()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterContext:
    """What a writer knows of the task it runs in.

    Attributes:
        sink_id: the sink's identity in its ledger; of a batch write an id that is made for it alone.
        epoch: the slot of the ledger that this epoch is meant for; of a batch write 0, since it has no slot
            before it is decided. Unique is ``sink_id`` with ``epoch``.
        subtask_index: Spark's partition id, from 0. A replay may come with other partitions.
        number_of_parallel_subtasks: how many tasks there are; ``None`` where the engine cannot
            know (Spark does not tell a Python task).
        attempt: which try of this task, from 0. Attempts may run at the same time.
        time_zone: of the session, as Spark's own functions use it.
        clock: the driver's clock, continued in the task.
    """

    sink_id: str
    epoch: int
    subtask_index: int
    number_of_parallel_subtasks: int | None
    attempt: int
    time_zone: str
    clock: Clock
    ids: Ids
    metrics: Metrics = field(default_factory=Metrics)
    mailbox: Mailbox = field(default_factory=Mailbox)


class SinkWriter(ABC, Generic[StateT, CommittableT]):
    """Writes the records of one partition in one epoch. Lives in a task; used by one thread.

    Order of calls: ``write`` any number of times, then ``prepare_commit`` and ``snapshot_state``
    once each with no write in between, then ``close``. If anything raises: ``abort_prepare``, then
    ``close``. Neither is called when the attempt is killed, so whatever it leaves behind must be
    recognisable by name.
    """

    @abstractmethod
    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """Take in records. May block (back-pressure) and be interrupted."""

    @abstractmethod
    def prepare_commit(self, epoch: int) -> list[CommittableT]:
        """End the epoch: what is to be committed, durable by the time this returns."""

    def snapshot_state(self, epoch: int) -> list[StateT]:
        """What the next epoch's writer of this subtask goes on with; durable as well."""
        del epoch
        return []

    def abort_prepare(self) -> None:
        """Undo what this attempt did. Must not touch what other attempts may use."""

    def close(self) -> None:
        """Release everything; called last in any case but a kill."""


class SinkCommitter(ABC, Generic[CommittableT]):
    """Makes decided committables take effect. Lives on the driver; used by one thread.

    Attributes:
        failure: why the last ``commit`` has left something; ``None`` where that is not told. Is shown to
            the user when retries end; with one that ``is_permanent`` they end at once.
    """

    failure: Exception | None = None

    @abstractmethod
    def commit(self, committables: Sequence[CommittableT]) -> list[CommittableT]:
        """Commit, and return those to try again.

        Replayable: called again after any failure with the same values, some of which may have
        been committed, by a driver that may still be alive. What can never succeed raises.
        """

    def may_wait(self, committable: CommittableT) -> bool:
        """Whether an epoch may be complete without ``committable``, because all that is left is to remove it.

        Asked of what ``commit`` has returned, when trying again did not help. The next epoch gets it.
        """
        del committable
        return False

    def restore(self) -> None:
        """Rely on nothing seen so far: another driver has decided what ``commit`` gets next."""

    def abort(self, committables: Sequence[CommittableT]) -> None:
        """Discard what the tasks of an epoch that was *not* decided have reported."""


class Input(Enum):
    """Whether an epoch may be followed by others."""

    GOES_ON = "goes on"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochContext:
    """The epoch a stage works for: its slot, the driver's time (ms), and whether input has ended.

    Attributes:
        sink_id: as ``WriterContext.sink_id``; so is ``slot`` as its ``epoch``.
        runner: runs larger pieces of work where there is room for them.
        waiting: what the aggregated committer has put off in earlier epochs.
        clock: for measuring and waiting only; what is decided follows from ``now_ms``.
        metrics: what stages count; they are reported with those of the tasks.
        pressing: a stage adds the names of what must be whole after this epoch, such as buckets that
            are about to be announced, for later stages that would let pieces of it wait.
        mode: that of a batch write; anything else appends.
        replaces: see ``EpochRecord``.
        supersedes: committables of an earlier write, whose place this one takes.
        schema: columns of the input; ``None`` for an epoch without.
    """

    sink_id: str
    slot: int
    now_ms: int
    input: Input
    ids: Ids
    runner: TaskRunner
    waiting: Sequence[Any] = ()
    clock: Clock = field(default_factory=SystemClock)
    metrics: Metrics = field(default_factory=Metrics)
    pressing: set[str] = field(default_factory=set)
    mode: SaveMode = SaveMode.APPEND
    replaces: Mapping[str, int] = field(default_factory=dict)
    supersedes: Sequence[Any] = ()
    schema: pa.Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What of the input crosses to the writers.

    Attributes:
        columns: name to SQL expression over the input and the derived columns; nothing else crosses.
        metadata: of the schema of every batch.
    """

    columns: Mapping[str, str]
    metadata: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Prepared(Generic[StateT, CommittableT]):
    """What an epoch is about to decide: committables, and states by subtask index."""

    committables: Sequence[CommittableT]
    states: Mapping[int, Sequence[StateT]]


@dataclass(frozen=True, slots=True)
class Announcements(Generic[AggregatedT]):
    """What an aggregated committer commits with this epoch, and what it puts off to a later one."""

    now: Sequence[AggregatedT] = ()
    later: Sequence[AggregatedT] = ()


class SinkAggregatedCommitter(ABC, Generic[CommittableT, AggregatedT]):
    """Commits once per epoch, for all tasks together, after every committable took effect.

    Attributes:
        failure: as ``SinkCommitter.failure``.
    """

    failure: Exception | None = None

    @abstractmethod
    def combine(
        self, epoch: EpochContext, prepared: Prepared[Any, CommittableT]
    ) -> Announcements[AggregatedT]:
        """What is to be committed for the epoch, and what waits. Called before *decide*; put on record.

        Called once, after the stages. What was put off before is in ``epoch.waiting`` and is
        forgotten unless it is put off again. A stage has to say that something is due without data.
        """

    @abstractmethod
    def commit(self, aggregated: Sequence[AggregatedT]) -> list[AggregatedT]:
        """Commit, and return those to try again. Replayable, as ``SinkCommitter.commit``."""

    def restore_commit(self, aggregated: Sequence[AggregatedT]) -> list[AggregatedT]:
        """``commit`` for an epoch that an earlier driver has decided; by default the same."""
        return self.commit(aggregated)

    def abort(self, aggregated: Sequence[AggregatedT]) -> None:
        """Undo ``combine`` for an epoch that was not decided."""

    def close(self) -> None:
        """Release everything. Called when the engine stops using the sink."""


class PreCommitStage(ABC, Generic[StateT, CommittableT]):
    """Works on an epoch between its tasks and its record, on the driver.

    The place to close what is due and to merge small pieces (Flink's pre-commit topology).
    Nothing is decided yet: a stage creates and reports, it never removes.
    """

    def begin(self, epoch: EpochContext) -> None:
        """Raise to refuse an epoch of a batch or micro-batch before its tasks run."""

    @abstractmethod
    def prepare(
        self, epoch: EpochContext, prepared: Prepared[StateT, CommittableT]
    ) -> Prepared[StateT, CommittableT]:
        """Turn what the tasks reported and what the ledger held into what the epoch decides."""

    def follow(
        self,
        epoch: EpochContext,
        prepared: Prepared[StateT, CommittableT],
        others: Sequence[Sequence[CommittableT]],
    ) -> Prepared[StateT, CommittableT]:
        """Bring up to date what this stage has prepared, or raise: other writes have come before this one.

        Called for batch writes that take turns, after ``prepare``, for every time that the turn was lost.

        Args:
            epoch: this one.
            prepared: what it was about to decide.
            others: committables of each epoch that was decided meanwhile; all are complete.
        """
        del epoch, others
        return prepared

    def is_due(self, epoch: EpochContext, prepared: Prepared[StateT, CommittableT]) -> bool:
        """Whether ``prepare`` would change anything though no data came. Asked by the timer."""
        del epoch, prepared
        return False


class Sink(ABC, Generic[StateT, CommittableT, AggregatedT]):
    """A destination. Immutable and picklable; makes the tiers where an engine needs them."""

    #: The user's stable name of this sink, or ``None``: then a stream's query id stands for it.
    uid: str | None = None
    #: The modes of batch writes that its stages and committers carry out.
    save_modes: ClassVar[Collection[SaveMode]] = (SaveMode.APPEND,)

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter[StateT, CommittableT]:
        """A writer for a subtask without state. Called once per task attempt."""

    def restore_writer(
        self, context: WriterContext, states: Sequence[StateT]
    ) -> SinkWriter[StateT, CommittableT]:
        """A writer that goes on with ``states``, never empty, of its subtask's last epoch.

        States of a subtask that does not run in an epoch are kept and offered again.
        """
        del states
        return self.create_writer(context)

    @abstractmethod
    def create_committer(self) -> SinkCommitter[CommittableT]:
        """The committer; made once per driver."""

    def create_aggregated_committer(self) -> SinkAggregatedCommitter[CommittableT, AggregatedT] | None:
        """The aggregated committer, if there is one; made once per driver."""
        return None

    def pre_commit_stages(self) -> Sequence[PreCommitStage[StateT, CommittableT]]:
        """Stages in the order in which they run; made once per driver."""
        return ()

    @abstractmethod
    def open_ledger(self, sink_id: str) -> Ledger:
        """The durable chain of this sink's epochs. ``Ledger(open_store(directory, {}), sink_id)`` will do."""

    @property
    @abstractmethod
    def committable_codec(self) -> Codec[CommittableT]:
        """Bytes of committables, between processes and in the ledger."""

    @property
    def state_codec(self) -> Codec[StateT] | None:
        """Bytes of writer states; ``None`` for a sink without state."""
        return None

    @property
    def aggregated_codec(self) -> Codec[AggregatedT] | None:
        """Bytes of aggregated committables; needed with an aggregated committer."""
        return None

    def derived_columns(self) -> Mapping[str, str]:
        """Columns that the engine computes and appends before records reach a writer.

        Name to SQL expression, as in ``{"__bucket": "date_format(ts, 'yyyy-MM')"}``.
        """
        return {}

    def projection(self, schema: pa.Schema) -> Projection | None:
        """What the engine computes instead of handing every column over; ``None`` for every column.

        Called on the driver with a schema, derived columns included, that ``prepare`` has accepted.
        """
        del schema
        return None

    def prepare(self, schema: pa.Schema) -> None:
        """Check the destination and the schema of the input, derived columns included.

        Called on the driver before anything is written: once when a stream starts and before each
        batch write. Must not write data.
        """

    def on_record(self, schema: pa.Schema) -> pa.Schema:
        """``schema``, the columns of the input, with metadata that the ledger keeps for ``check_continues``.

        For what else must go on as it was; by default nothing. The metadata is all that may differ.
        """
        return schema

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """Raise ``SchemaError`` if records of ``new`` may not lie beside those of ``old``; by default never.

        Called on the driver before the tasks of an epoch (where Spark starts the tasks by itself, in
        each task before it writes) if its input has other columns than the last one had, or other
        metadata of ``on_record``. Derived columns are in neither.
        """
        del old, new

    def check_reported(self, found: Prepared[StateT, CommittableT], *, sink_id: str) -> None:
        """Raise if no task that wrote for ``sink_id`` can have reported ``found``; by default never.

        Called on the driver for the result of each task, before anything is done with it.
        """
        del found, sink_id

    def sweep(self, record: EpochRecord, touched: Sequence[CommittableT] | None) -> int:
        """Remove what attempts for slots up to that of ``record`` left behind.

        Called on the driver when ``record`` is complete and the newest. ``touched`` limits the
        search to places next to those committables; ``None`` means everywhere. Returns how many
        pieces were removed.
        """
        del record, touched
        return 0
