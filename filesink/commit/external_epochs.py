"""Epochs of an engine that runs the tasks by itself and hands in what they have reported.

    tasks     slot_for(cause)      the slot to write for, or ``None``: this very epoch is decided
    driver    commit, then perhaps abort, each in a process of its own that has seen no task

Rules:
1. Files made for a slot can be decided in that slot only: once it is taken, the driver that took
   it may sweep them at any moment. So a task reads the slot from the ledger, reports it, and ``commit``
   refuses any other.
2. The engine calls ``commit`` with the results of all tasks or not at all, and never calls ``abort`` at
   the same time. So an epoch that lacks a task's result has never been handed to ``commit``.
3. No process keeps anything for the next one. What must be known is in results and ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.api import EpochContext, Input, Prepared, Sink
from filesink.commit.chain import Epoch
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.recorded_schema import next_schema
from filesink.commit.replay import EpochOptions, continued_by, find_decided, overtaken
from filesink.commit.task import TaskResult
from filesink.commit.task_results import Gathered, gather, kept_by, states_of
from filesink.errors import ConcurrentDriverError
from filesink.ledger.head import Head, next_slot
from filesink.ledger.identity import check_tag
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EMPTY, BatchWrite, MicroBatch, Section
from filesink.ports import Losers

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


class CollectedEpochs(EpochLoop[S, C, A]):
    """Commits and aborts what tasks have written already; see the rules above."""

    def commit(
        self,
        cause: MicroBatch | BatchWrite,
        results: Sequence[bytes],
        *,
        slot: int | None,
        schema: pa.Schema,
    ) -> Outcome[C]:
        """Commit the epoch, or recognise it as decided and compare the rows.

        Args:
            cause: what the tasks ran for.
            results: one per partition.
            slot: what ``slot_for`` told all of them; ``None`` too if it told them different ones.
            schema: of the input.

        Raises:
            ConcurrentDriverError: the chain has moved since; nothing of these results was decided.
            FilesinkError: see ``EpochLoop.run``.
        """
        with self._lock:
            head, decided = self._chain.look(cause)
            continued = self._chain.continued_by(cause, head)
            gathered = self._gather(cause, continued, results)
            if decided is not None:
                self._chain.publisher.discard(gathered.reported)
                return self._repeats.outcome_of(decided, cause, gathered.rows, "")
            epoch = self._chain.begin(head, cause, source=Input.ENDED, columns=schema)
            if slot != epoch.context.slot:
                self._chain.publisher.discard(gathered.reported)
                raise _moved_on(epoch.context, slot)
            kept = next_schema(self._sink, schema, cause=cause, head=continued, ledger=self.ledger)
            outcome = self._commit(replace(epoch, schema=kept), gathered)
            return outcome if outcome is not None else self._came_second(epoch, cause, gathered)

    def _came_second(
        self, epoch: Epoch, cause: MicroBatch | BatchWrite, gathered: Gathered[S, C]
    ) -> Outcome[C]:
        """Another write of the same txn_id came first."""
        _, decided = self._chain.look(cause)
        if decided is None:
            raise overtaken(epoch.context)
        return self._repeats.outcome_of(decided, cause, gathered.rows, "")

    def _gather(
        self, cause: MicroBatch | BatchWrite, head: Head | None, results: Sequence[bytes]
    ) -> Gathered[S, C]:
        """Tasks were given no state here, so what they report of it is new and replaces nothing."""
        files_of = tag_of(cause, self.ledger.sink_id)
        gathered = gather(self._sink, {}, results, Losers.POSSIBLE, sink_id=files_of)
        states = states_of(self._sink, kept_by(head))
        for subtask, new in gathered.prepared.states.items():
            states[subtask] = [*states.get(subtask, ()), *new]
        return replace(gathered, prepared=Prepared(gathered.prepared.committables, states))

    def abort(self, results: Sequence[bytes | None], *, files_of: str) -> None:
        """Discard what tasks have reported, unless ``commit`` may have been called with it.

        Args:
            results: one per partition, ``None`` for a task without. ``commit`` is called only with all
                of them, and discards by itself what it knows to be undecided.
            files_of: see ``tag_of``.

        A record whose creation has failed may still appear: a server may carry out late what it has
        answered with an error. So what was handed to ``commit`` is left to the sweep of the next epoch.
        """
        if None in results:
            reported = [result for result in results if result is not None]
            with self._lock:
                found = gather(self._sink, {}, reported, Losers.POSSIBLE, sink_id=files_of)
                self._chain.publisher.discard(found.reported)


def slot_for(
    cause: MicroBatch | BatchWrite,
    ledger: Ledger,
    *,
    sink: Sink[Any, Any, Any],
    schema: pa.Schema,
    options: EpochOptions,
) -> int | None:
    """The slot that a task writes records of ``schema`` for; ``None`` if this very epoch is decided.

    Called by each task before it writes.

    Raises:
        IdentityError: the query may not write here; nothing has been written yet.
        SchemaError: nor may these columns.
    """
    head = None if ledger.is_open else ledger.head()
    if find_decided(cause, head, ledger, options) is not None:
        return None
    continued = continued_by(cause, head, options.on_new_query)
    next_schema(sink, schema, cause=cause, head=continued, ledger=ledger)
    writer = cause.writer if isinstance(cause, BatchWrite) else ""
    if writer or head is None:
        check_tag(writer or ledger.sink_id, ledger)
    return 0 if writer else next_slot(head)


def tag_of(cause: MicroBatch | BatchWrite, sink_id: str) -> str:
    """The id whose tag the files of an epoch bear, see ``filesink.ledger.identity``."""
    return (isinstance(cause, BatchWrite) and cause.writer) or sink_id


def counted(sink: Sink[S, C, A], rows: int, *, subtask: int, attempt: int) -> bytes:
    """The result of a task that has only counted, because its epoch is decided."""
    return TaskResult(
        subtask=subtask,
        attempt=attempt,
        rows=rows,
        committables=Section.of(sink.committable_codec, []),
        state=EMPTY,
        metrics={},
    ).to_bytes()


def _moved_on(epoch: EpochContext, slot: int | None) -> ConcurrentDriverError:
    return ConcurrentDriverError(
        f"another driver continued sink '{epoch.sink_id}' while tasks wrote for slot {slot}; what they "
        "wrote was discarded. Stop one of the two drivers; a restart continues from the new state",
        code="CONCURRENT_DRIVER",
    )
