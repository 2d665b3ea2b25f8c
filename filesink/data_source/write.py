"""One write through the data source, batch or stream: where tasks, commit and abort come together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from filesink.commit.external_epochs import CollectedEpochs, counted, slot_for, tag_of
from filesink.commit.replay import EpochOptions, History
from filesink.commit.task import WriteTask
from filesink.data_source.hive_table import HiveTable, announcing
from filesink.data_source.task_message import Report, TaskMessage
from filesink.data_source.task_properties import session_zone
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.record import BatchWrite, MicroBatch
from filesink.metastore.announcements import Announced
from filesink.operations.replacing.refresh import Refresh
from filesink.parts.committables import Committable, HeldFile
from filesink.ports import Ports
from filesink.spark.input.job import task_context
from filesink.system import SystemClock, SystemIds, ThreadRunner, this_driver

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSourceWrite:
    """One write through the data source: what both writers do in tasks and on the driver. Pickled.

    Attributes:
        sink: the tiers; a pickle of them does not announce partitions.
        table: whose partitions are announced, if any.
        schema: of the input.
        epochs: see ``EpochOptions``.
        time_zone: the user's; ``None`` for the session's.
        by_clock: see ``DataSourceOptions``.
        made_ms: the driver's clock when Spark made the data source.
        base_path: for messages.
    """

    sink: FileTiers
    table: HiveTable | None
    schema: pa.Schema
    epochs: EpochOptions
    time_zone: str | None
    by_clock: bool
    made_ms: int
    base_path: str

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
            first = next(batches, None)
            task = WriteTask(
                sink=self.sink,
                sink_id=tag_of(cause, sink_id),
                slot=slot,
                driver_ms=self.made_ms,
                time_zone=self.time_zone or self._session_zone(context, first),
            )
            result = task.run(subtask, attempt, () if first is None else chain([first], batches))
        if isinstance(cause, BatchWrite):
            return Report(mode=cause.mode.value, slot=slot, result=result).to_message()
        ids = cause.query_id, cause.batch_id
        return Report(query_id=ids[0], batch_id=ids[1], slot=slot, result=result).to_message()

    def _session_zone(self, context: TaskContext, first: pa.RecordBatch | None) -> str:
        return session_zone(context, None if first is None else first.schema, by_clock=self.by_clock)

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
        sink = announcing(self.sink, self.table)
        head = None if ledger.is_open else ledger.head()
        # The first epoch of a run sweeps everywhere what earlier runs have left, the others only next to
        # their own files. Whatever earlier runs have decided is older than this run.
        later = head is not None and head.complete and head.record.decided_ms >= self.made_ms
        return CollectedEpochs(
            sink,
            ledger,
            ports=Ports(clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner(), who=this_driver()),
            options=replace(
                self.epochs,
                history=History.NONE if later else History.POSSIBLE,
                make_way=Refresh(tiers=sink, base_path=self.base_path),
            ),
        )
