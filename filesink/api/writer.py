"""The first tier: the writer, and what it knows about the task it runs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from filesink.api.metrics import Metrics
from filesink.ports import Clock, Ids

if TYPE_CHECKING:
    import pyarrow as pa

StateT = TypeVar("StateT")
CommittableT = TypeVar("CommittableT")


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
    """What a writer knows about the task it runs in.

    Attributes:
        sink_id: the sink's identity in its ledger; for a batch write an id of its own.
        epoch: the slot of the ledger that this epoch is meant for; for a batch write 0, since it has no slot
            before it is decided. ``sink_id`` and ``epoch`` together are unique.
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
    ``close``. Neither is called if the attempt is killed, so whatever it leaves behind must be
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
        """Release everything; always called last, unless the attempt is killed."""
