"""What one task does in one epoch: drive a writer over the batches of a partition.

Runs in an executor, once per attempt. Returns bytes; an attempt that fails or is killed returns
nothing, and whatever it left is known by name and swept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from filesink.api import OF_STAGES, EpochContext, Metrics, Sink, SinkWriter, WriterContext
from filesink.errors import InternalError, StateCorruptError
from filesink.framing import check_field, frame, from_json, to_json, unframe
from filesink.ledger.record import EMPTY, Section
from filesink.ports import Clock, Ids
from filesink.system import SystemIds, TaskClock

if TYPE_CHECKING:
    import pyarrow as pa

RESULT_VERSION = 1
S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What one task reports. ``rows`` counts the records it took in."""

    subtask: int
    attempt: int
    rows: int
    committables: Section
    state: Section
    metrics: Mapping[str, int]

    def to_bytes(self) -> bytes:
        """The form in which a result crosses from task to driver."""
        head = {
            "subtask": self.subtask,
            "attempt": self.attempt,
            "rows": self.rows,
            "metrics": dict(self.metrics),
            "committables": [self.committables.version, len(self.committables.data)],
            "state": [self.state.version, len(self.state.data)],
        }
        payload = to_json(head) + b"\n" + self.committables.data + self.state.data
        return frame("task-result", RESULT_VERSION, payload)

    @staticmethod
    def from_bytes(data: bytes) -> TaskResult:
        """What ``to_bytes`` was called on; raises ``StateError`` for anything else."""
        _, payload = unframe("task-result", RESULT_VERSION, data, where="the result of a task")
        line, _, body = payload.partition(b"\n")
        head = from_json(line, where="the result of a task")
        try:
            (version, length), (state_version, state_length) = head.pop("committables"), head.pop("state")
            numbers = [head["subtask"], head["attempt"], head["rows"]]
            for number in (*numbers, version, length, state_version, state_length):
                check_field("number", number, int)
            for name, value in head["metrics"].items():
                check_field("metric", name, str)
                check_field(name, -value if type(value) is int and value < 0 else value, int)
            if len(body) != length + state_length:
                raise StateCorruptError("the result of a task is cut short", code="LENGTH")
            return TaskResult(
                **head,
                committables=Section(version, body[:length]),
                state=Section(state_version, body[length:]),
            )
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise StateCorruptError("the result of a task is malformed", code="JSON") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask(Generic[S, C, A]):
    """One epoch's work, as sent to every task.

    Attributes:
        driver_ms: the driver's clock when the epoch began.
        states: the state of every subtask, as it stands in the ledger.
    """

    sink: Sink[S, C, A]
    sink_id: str
    slot: int
    driver_ms: int
    time_zone: str
    states: Mapping[int, Section] = field(default_factory=dict)

    @staticmethod
    def of(
        epoch: EpochContext, sink: Sink[S, C, A], *, states: Mapping[int, Section], time_zone: str
    ) -> WriteTask[S, C, A]:
        """The work of ``epoch``, after a record with ``states``."""
        return WriteTask(
            sink=sink,
            sink_id=epoch.sink_id,
            slot=epoch.slot,
            driver_ms=epoch.now_ms,
            time_zone=time_zone,
            states={subtask: state for subtask, state in states.items() if subtask != OF_STAGES},
        )

    def run(self, subtask: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Write one partition. Called in the task; ``attempt`` counts from 0."""
        return self.run_with(subtask, attempt, batches, clock=TaskClock(self.driver_ms), ids=SystemIds())

    def run_with(
        self, subtask: int, attempt: int, batches: Iterable[pa.RecordBatch], *, clock: Clock, ids: Ids
    ) -> bytes:
        """``run`` with a clock and ids of the caller's."""
        context = WriterContext(
            sink_id=self.sink_id,
            epoch=self.slot,
            subtask_index=subtask,
            number_of_parallel_subtasks=None,
            attempt=attempt,
            time_zone=self.time_zone,
            clock=clock,
            ids=ids,
            metrics=Metrics(),
        )
        writer = self._writer(context)
        try:
            rows = _write_all(writer, batches, context)
            return self._result(writer, context, rows)
        except BaseException:  # a closed generator and a stopped worker leave files as well
            writer.abort_prepare()
            raise
        finally:
            writer.close()

    def _writer(self, context: WriterContext) -> SinkWriter[S, C]:
        section = self.states.get(context.subtask_index)
        states: Sequence[S] = [] if section is None else decode_states(self.sink, section)
        return self.sink.restore_writer(context, states) if states else self.sink.create_writer(context)

    def _result(self, writer: SinkWriter[S, C], context: WriterContext, rows: int) -> bytes:
        committables = writer.prepare_commit(self.slot)
        return TaskResult(
            subtask=context.subtask_index,
            attempt=context.attempt,
            rows=rows,
            committables=Section.of(self.sink.committable_codec, committables),
            state=encode_states(self.sink, writer.snapshot_state(self.slot)),
            metrics=context.metrics.values,
        ).to_bytes()


def _write_all(writer: SinkWriter[S, C], batches: Iterable[pa.RecordBatch], context: WriterContext) -> int:
    rows = 0
    for batch in batches:
        context.mailbox.drain()
        if batch.num_rows:
            writer.write(batch, context)
            rows += batch.num_rows
    context.mailbox.drain()
    return rows


def encode_states(sink: Sink[S, C, A], states: Sequence[S]) -> Section:
    """States of one subtask as a section; empty states are no state."""
    codec = sink.state_codec
    if not states:
        return EMPTY
    if codec is None:
        raise InternalError(f"{type(sink).__name__} has writer state but no state_codec", code="NO_CODEC")
    return Section.of(codec, states)


def decode_states(sink: Sink[S, C, A], section: Section) -> Sequence[S]:
    """States of one subtask from a section of a record or of a task's result."""
    codec = sink.state_codec
    if not section.data:
        return []
    if codec is None:
        raise InternalError(f"the ledger holds state but {type(sink).__name__} has no codec", code="NO_CODEC")
    return section.decode(codec)
