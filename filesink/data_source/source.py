"""``format("filesink")``: Spark runs the tasks and calls commit, instead of our engine.

What runs where, measured on Spark 4.3 (every process is another one, and none but tasks knows ids):

    driver    DataSource(options).writer()           once per batch write; pickled to tasks and commit
              DataSource(options).streamWriter()     once per micro-batch; pickled to tasks only
    task      write()                                TaskContext has query id, batch id, session's zone
    driver    DataSource(options)                    once per run of a stream, pickled to …
              … .streamWriter().commit()             once per micro-batch: knows batch id and messages
              … .streamWriter().abort()              after commit has failed, or a task; absent messages
                                                     are None

Rules:
1. commit has neither query id nor state, so messages carry the first, and the ledger is all there
   is of the second. Hence the smaller promise: every part is closed at each epoch, and a replay is
   known by query id, batch id and number of rows, since the offset log cannot be read here.
2. The slot that hidden names carry is read from the ledger by each task; see
   ``filesink.commit.external_epochs``.
3. Spark waits for commit to return before it calls abort, also when ``stop()`` interrupts the query.
4. Continuous processing hands no message to commit and only logs what commit raises: the query goes
   on and writes nothing. Neither writer can see the trigger on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from filesink.commit.external_epochs import CollectedEpochs, counted, slot_for, tag_of
from filesink.commit.replay import EpochOptions, History, OnGap
from filesink.commit.task import WriteTask
from filesink.data_source.options import DataSourceOptions, HiveTable, announcing, parse_options
from filesink.data_source.save_modes import ModeOf, reported_mode, session_mode
from filesink.data_source.task_message import Report, TaskMessage
from filesink.errors import ConfigError, InternalError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import batch_write, stream_sink_id
from filesink.ledger.record import BatchWrite, MicroBatch
from filesink.metastore.announcements import Announced
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.file_format import check_crossing
from filesink.ports import Ports
from filesink.save_mode import SaveMode
from filesink.spark.input.schema import arrow_schema
from filesink.spark.streams import BATCH_ID, QUERY_ID
from filesink.system import SystemClock, SystemIds, ThreadRunner

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_ZONE = "spark.sql.session.timeZone"
_CONTINUOUS = "__is_continuous_processing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What both writers do. Pickled.

    Attributes:
        sink: the tiers; a pickle has them without whom they tell of partitions.
        table: that is told of partitions, if any.
        schema: of the input.
        epochs: see ``EpochOptions``.
        time_zone: the user's; ``None`` for the session's.
        made_ms: the driver's clock when Spark made the data source.
    """

    sink: FileTiers
    table: HiveTable | None
    schema: pa.Schema
    epochs: EpochOptions
    time_zone: str | None
    made_ms: int

    def write(
        self, cause: MicroBatch | BatchWrite, sink_id: str, batches: Iterator[pa.RecordBatch]
    ) -> TaskMessage:
        """Write one partition, or count it if its epoch is decided. Called in the task."""
        context = task_context()
        subtask, attempt = context.partitionId(), context.attemptNumber()
        ledger = self.sink.open_ledger(sink_id)
        slot = slot_for(cause, ledger, sink=self.sink, schema=self.schema, options=self.epochs)
        if slot is None:
            rows = sum(batch.num_rows for batch in batches)
            result = counted(self.sink, rows, subtask=subtask, attempt=attempt)
        else:
            task = WriteTask(
                sink=self.sink,
                sink_id=tag_of(cause, sink_id),
                slot=slot,
                driver_ms=self.made_ms,
                time_zone=self.time_zone or _session_zone(context),
            )
            result = task.run(subtask, attempt, batches)
        if isinstance(cause, BatchWrite):
            return Report(mode=cause.mode.value, slot=slot, result=result).to_message()
        ids = cause.query_id, cause.batch_id
        return Report(query_id=ids[0], batch_id=ids[1], slot=slot, result=result).to_message()

    def commit(self, cause: MicroBatch | BatchWrite, sink_id: str, reports: Sequence[Report]) -> None:
        """Commit what all tasks have reported. Called on the driver."""
        slots = {report.slot for report in reports}
        slot = slots.pop() if len(slots) == 1 else None
        with closing(self._loop(sink_id)) as loop:
            loop.commit(cause, [report.result for report in reports], slot=slot, schema=self.schema)

    def abort(self, sink_id: str, reports: Sequence[Report | None], *, files_of: str) -> None:
        """Discard what tasks have reported, unless commit has been tried. Called on the driver."""
        with closing(self._loop(sink_id)) as loop:
            loop.abort([None if report is None else report.result for report in reports], files_of=files_of)

    def _loop(self, sink_id: str) -> CollectedEpochs[HeldFile, Committable, Announced]:
        ledger = self.sink.open_ledger(sink_id).with_patience(SystemClock())
        head = None if ledger.is_open else ledger.head()
        # A run's first epoch looks everywhere for what earlier runs have left, the others only next
        # to their own files. A run is younger than all that its predecessors have decided.
        later = head is not None and head.complete and head.record.decided_ms >= self.made_ms
        return CollectedEpochs(
            announcing(self.sink, self.table),
            ledger,
            ports=Ports(clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner()),
            options=replace(self.epochs, history=History.NONE if later else History.POSSIBLE),
        )


class BatchWriter(DataSourceArrowWriter):
    """One batch write. Made on the driver; the same pickle serves tasks, commit and abort.

    Args:
        door: does the work.
        cause: what is written, and in which mode.
        sink_id: of the ledger; made here, because a fresh one must be the same everywhere.
        chosen: who says what an overwrite replaces. Only tasks can see the session's setting.
    """

    def __init__(
        self, door: Door, *, cause: BatchWrite, sink_id: str, chosen: ModeOf = ModeOf.OPTIONS
    ) -> None:
        self._door = door
        self._cause = cause
        self._sink_id = sink_id
        self._chosen = chosen

    def write(  # type: ignore[override] # PySpark's own Arrow classes do the same
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Write one partition; called once per task attempt."""
        cause = self._cause
        if self._chosen is ModeOf.SESSION:
            cause = replace(cause, mode=session_mode(task_context()))
        return self._door.write(cause, self._sink_id, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible; called once."""
        reports = _all_reports(messages)
        cause = self._cause
        if self._chosen is ModeOf.SESSION:
            cause = replace(cause, mode=reported_mode(reports))
        self._door.commit(cause, self._sink_id, reports)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called after a task or ``commit`` has failed; ``None`` stands for a task without result."""
        files_of = tag_of(self._cause, self._sink_id)
        self._door.abort(self._sink_id, _reports(messages), files_of=files_of)


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a stream. Made anew for the tasks and for each commit and abort."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def write(  # type: ignore[override] # PySpark's own Arrow classes do the same
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Write one partition; called once per task attempt."""
        cause = _micro_batch(task_context())
        return self._door.write(cause, self._sink_id(cause.query_id), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the files of all tasks visible; called again, with new files, if Spark replays."""
        reports = _all_reports(messages)
        causes = {(report.query_id, report.batch_id) for report in reports}
        if len(causes) != 1 or {batch_id for _, batch_id in causes} != {batchId}:
            raise InternalError(
                f"tasks of {len(causes)} batches were handed in for batch {batchId}; please report this",
                code="BATCH_ID",
            )
        query_id = reports[0].query_id
        cause = MicroBatch(query_id=query_id, batch_id=batchId, fingerprint="")
        self._door.commit(cause, self._sink_id(query_id), reports)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Called after a task or ``commit`` has failed; ``None`` stands for a task without result."""
        reports = _reports(messages)
        known = next((report for report in reports if report is not None), None)
        if known is not None:
            sink_id = self._sink_id(known.query_id)
            self._door.abort(sink_id, reports, files_of=sink_id)

    def _sink_id(self, query_id: str) -> str:
        return stream_sink_id(self._door.sink.uid, query_id)


class FileSinkDataSource(DataSource):
    """The data source ``filesink``. Write only; see ``filesink.register``."""

    format_name: ClassVar[str] = "filesink"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._made_ms = SystemClock().now_ms()

    @classmethod
    def name(cls) -> str:
        """What users give to ``format(…)``."""
        return cls.format_name

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:  # noqa: FBT001 - Spark's signature
        """See ``DataSource.writer``; called on the driver before the job starts."""
        options = parse_options(self.options)
        chosen = ModeOf.SESSION if overwrite and options.overwrite_mode is None else ModeOf.OPTIONS
        mode = (options.overwrite_mode or SaveMode.OVERWRITE) if overwrite else SaveMode.APPEND
        sink_id, cause = batch_write(mode, options.builder.uid, options.txn_id, SystemIds())
        return BatchWriter(self.open_door(options, schema), cause=cause, sink_id=sink_id, chosen=chosen)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: FBT001, N802
        """See ``DataSource.streamWriter``; called on the driver twice per micro-batch."""
        if overwrite:
            raise ConfigError(
                "output mode 'complete' writes rows again that were written before; only 'append' makes "
                "files that stay. Use .outputMode('append')",
                code="OUTPUT_MODE",
            )
        options = parse_options(self.options)
        if options.txn_id:
            raise ConfigError(
                "option 'txnId' names the data of a batch write; a stream is known by its query and batch "
                "ids. Remove it; 'uid' gives a stream a stable name",
                code="CONFLICT",
            )
        return StreamWriter(self.open_door(options, schema))

    def open_door(self, options: DataSourceOptions, schema: StructType) -> Door:
        """Check everything that can be known before data is read."""
        sink, table = options.builder.tiers(), options.table
        columns = arrow_schema(schema)
        check_crossing(sink.plan.format, columns)  # all columns do
        announcing(sink, table).prepare(columns)
        epochs = replace(options.builder.epochs, on_gap=OnGap.REFUSE)  # every batch comes through here
        return Door(
            sink=sink,
            table=table,
            schema=columns,
            epochs=epochs,
            time_zone=options.time_zone,
            made_ms=self._made_ms,
        )


def task_context() -> TaskContext:
    """The context of the running task."""
    context = TaskContext.get()
    if context is None:
        raise InternalError("Spark gave this task no TaskContext", code="NO_TASK_CONTEXT")
    return context


def _micro_batch(context: TaskContext) -> MicroBatch:
    if context.getLocalProperty(_CONTINUOUS) == "true":
        raise _continuous()
    query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if not query_id or not batch_id:
        raise InternalError(
            f"Spark did not provide '{QUERY_ID}' and '{BATCH_ID}' to this task; without them a replay cannot "
            "be told from new data. Use FileSink instead, and report this with your version of Spark",
            code="NO_BATCH_ID",
        )
    return MicroBatch(query_id=query_id, batch_id=int(batch_id), fingerprint="")


def _session_zone(context: TaskContext) -> str:
    zone = context.getLocalProperty(_ZONE)
    if not zone:
        raise InternalError(
            f"this task does not know '{_ZONE}', which Spark passes on only where it is set. Call "
            "filesink.register(spark), which sets it, for the session that writes, or give option 'timeZone'",
            code="NO_TIME_ZONE",
        )
    return zone


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[Report | None]:
    return [None if message is None else Report.from_message(message) for message in messages]


def _all_reports(messages: Sequence[WriterCommitMessage | None]) -> list[Report]:
    """Reports of every task. Continuous processing commits without any."""
    reports = [report for report in _reports(messages) if report is not None]
    if not reports or len(reports) < len(messages):
        raise _continuous()
    return reports


def _continuous() -> ConfigError:
    return ConfigError(
        "Spark commits without results of its tasks, as in continuous processing, which cannot be "
        "exactly-once; use a micro-batch trigger, such as .trigger(processingTime='10 seconds')",
        code="TRIGGER",
    )
