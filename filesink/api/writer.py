"""The first tier: the writer, and what it knows about the task it runs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from filesink.api.mailbox import Mailbox
from filesink.api.metrics import Metrics
from filesink.api.timers import Timers
from filesink.ports import Clock, Ids

if TYPE_CHECKING:
    import pyarrow as pa

StateT = TypeVar("StateT")
CommittableT = TypeVar("CommittableT")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterContext:
    """What a writer knows about the task it runs in.

    Attributes:
        sink_id: the sink's identity in its ledger; for a batch write an id of its own.
        epoch: the slot of the ledger that this epoch is meant for; for a batch write 0, since it has no slot
            before it is decided. ``sink_id`` and ``epoch`` together are unique.
        subtask_index: Spark's partition id, from 0. A replay may come with other partitions.
        number_of_parallel_subtasks: how many tasks there are; ``None`` where the engine cannot know. Spark
            does not tell a Python task; it is known for a batch write of ``df.repartition(n)``, with
            columns selected or rows filtered afterwards at most. Fewer run at a time.
        attempt: which try of this task, from 0. Attempts may run at the same time.
        time_zone: of the session, as Spark's own functions use it.
        clock: the driver's clock, continued in the task.
        pulse: see ``Mailbox``.
        mailbox: takes completions of asynchronous work from any thread, and waits for them.
        timers: call the writer at a given time.
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
    pulse: Callable[[], None] = lambda: None
    mailbox: Mailbox = field(init=False)
    timers: Timers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mailbox", Mailbox(self.clock, pulse=self.pulse))
        object.__setattr__(self, "timers", self.mailbox.timers)


class SinkWriter(ABC, Generic[StateT, CommittableT]):
    """Writes the records of one partition in one epoch. Lives in a task; used by one thread.

    Order of calls: ``write`` any number of times, then ``prepare_commit`` and ``snapshot_state``
    once each with no write in between, then ``close``. If anything raises: ``abort_prepare``, then
    ``close``. Neither is called if the attempt is killed, so whatever it leaves behind must be
    recognisable by name.
    """

    @abstractmethod
    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """Take in records. May block for back-pressure, best in ``context.mailbox.yield_``.

        Only there a writer learns that its job was cancelled; one that blocks elsewhere is killed a few
        seconds later.
        """

    @abstractmethod
    def prepare_commit(self, epoch: int) -> list[CommittableT]:
        """End the epoch: what is to be committed, durable by the time this returns.

        May yield, as ``write``: what is in flight has to arrive before.
        """

    def snapshot_state(self, epoch: int) -> list[StateT]:
        """What the next epoch's writer of this subtask goes on with; durable as well."""
        del epoch
        return []

    def abort_prepare(self) -> None:
        """Undo what this attempt did. Must not touch what other attempts may use."""

    def close(self) -> None:
        """Release everything; always called last, unless the attempt is killed."""
