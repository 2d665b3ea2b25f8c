"""The epoch, on the driver. One path for batch and streaming, for data, upkeep and the end of input.

    look       read the newest record; first publish what another driver has decided and not completed
    decided?   this very cause is on record: compare offsets, drain the input, compare rows; write nothing
    write      the tasks write hidden files and report their names; stages close what is due, merge and verify
    decide     create one record, which holds committables, announcement, schema and the next state
    publish    the committer makes visible what the record names; then partitions are announced
    complete   create the completion of the record; then sweep the files that losing attempts left

Rules:
1. *Decide* is the one point of no return. Before it an epoch may only be discarded; after it an epoch may
   only be completed. So a driver may die between any two steps. An undecided epoch was never visible: it is
   swept, and its input is written again. A decided epoch is published by the next driver that looks, as often
   as it takes; when its input comes again, it ends at *decided?*.
2. Two drivers may be at work. A slot takes one record; the driver that comes second does not get it. If the
   record there is of the same batch, it adopts that outcome. If not, a stream stops with an error, while a
   batch write tries the next slot (``decision``).
3. If writing or deciding fails, the ledger is read again before the error is raised: another driver may have
   taken the slot and swept the files, and then that is the real reason.
4. Each call executes the input of a micro-batch exactly once, for a replay, too: a stateful query needs it.
   A batch write that lost its ``txn_id`` to another one (``ledger.claims``) executes it once more.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Generic, TypeVar

from filesink.api import Input, Prepared, Sink
from filesink.commit.chain import Chain, Epoch
from filesink.commit.decision import Decision
from filesink.commit.outcome import Outcome, first_outcome
from filesink.commit.publisher import Decider
from filesink.commit.recorded_schema import next_schema, schema_of
from filesink.commit.repeats import Repeats
from filesink.commit.replay import EpochOptions, OnGap, overtaken, same_batch, second_call, slot_taken
from filesink.commit.task import WriteTask
from filesink.commit.task_results import Gathered, gather, kept_by, states_of
from filesink.errors import CommitStateUnknown
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import (
    BatchWrite,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Operation,
    Upkeep,
)
from filesink.ports import Ports, WriteJob

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


class EpochLoop(Generic[S, C, A]):
    """Runs the epochs of one sink in one ledger, one at a time.

    Args:
        sink: what is written to.
        ledger: its chain.
        ports: clock, ids and where stages run their work.
        options: see ``EpochOptions``.
    """

    def __init__(self, sink: Sink[S, C, A], ledger: Ledger, *, ports: Ports, options: EpochOptions) -> None:
        self.ledger = ledger.with_patience(ports.clock)
        self._sink = sink
        self._chain = Chain(sink, self.ledger, ports=ports, options=options)
        self._stages = tuple(sink.pre_commit_stages())
        self._decision = Decision(sink, self._chain, self._stages)
        self._repeats = Repeats(sink, options)
        self._lock = threading.Lock()
        self._done_here: tuple[str, int] | None = None  # run id and batch id

    def run(
        self, cause: MicroBatch | BatchWrite, job: WriteJob, *, on_gap: OnGap | None = None
    ) -> Outcome[C]:
        """Write a micro-batch or a batch, or replay a decided one; ``on_gap`` replaces the options' one."""
        with self._lock:
            if isinstance(cause, MicroBatch) and self._done_here == (job.run_id, cause.batch_id):
                raise second_call(cause)
            with self._chain.telling.attempt(cause):
                outcome = self._run(cause, job, on_gap)
            if isinstance(cause, MicroBatch):
                self._done_here = (job.run_id, cause.batch_id)
            return outcome

    def upkeep(self) -> Outcome[C] | None:
        """Close parts that are due although no data came. Does nothing while another epoch is at work."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._without_input(Upkeep(), Input.GOES_ON)
        finally:
            self._lock.release()

    def compact(self) -> Outcome[C] | None:
        """Replace finished files, if a stage finds any that are due. Waits for the epoch at work."""
        with self._lock:
            return self._without_input(OfflineCompaction(), Input.GOES_ON)

    def operate(self, cause: Operation) -> Outcome[C] | None:
        """As ``compact``, for whatever the stages replace or remove; nothing is announced later."""
        with self._lock:
            return self._without_input(cause, Input.ENDED)

    def finish(self) -> Outcome[C] | None:
        """Close everything: the input has ended. ``None`` if nothing was open."""
        with self._lock:
            return self._without_input(Finish(), Input.ENDED)

    def recover(self, slot: int | None = None) -> Outcome[C] | None:
        """Publish what an earlier driver has decided, in ``slot`` or in the first half-done one.

        ``None`` if there is nothing to do, or if another write has the ``txn_id``.
        """
        with self._lock:
            self._chain.forget()
            found = [one for one in self.ledger.history.unfinished() if slot is None or one.slot == slot]
            return self._chain.carry_through(found[0]) if found else None

    def close(self) -> None:
        """Release what the committers hold; waits for the epoch at work."""
        with self._lock:
            self._chain.publisher.close()

    # --- the steps, in their order

    def _run(self, cause: MicroBatch | BatchWrite, job: WriteJob, on_gap: OnGap | None) -> Outcome[C]:
        head, decided = self._chain.look(cause, job.run_id, on_gap)
        if decided is not None:
            return self._repeats.replay(decided, cause, job)
        continued = self._chain.continued_by(cause, head)
        schema = next_schema(self._sink, job.schema, cause=cause, head=continued, ledger=self.ledger)
        source = Input.ENDED if isinstance(cause, BatchWrite) else Input.GOES_ON
        epoch = self._chain.begin(head, cause, source=source, schema=schema, job=job)
        self._chain.telling.began(cause, epoch.context)
        for stage in self._stages:
            stage.begin(epoch.context)
        outcome = self._commit(epoch, self._write(epoch, job))
        return outcome if outcome is not None else self._run(cause, job, on_gap)

    def _without_input(
        self, cause: Upkeep | Finish | OfflineCompaction | Operation, source: Input
    ) -> Outcome[C] | None:
        with self._chain.telling.attempt(cause):
            return self._run_without_input(cause, source)

    def _run_without_input(
        self, cause: Upkeep | Finish | OfflineCompaction | Operation, source: Input
    ) -> Outcome[C] | None:
        head = self._chain.settle()
        prepared: Prepared[S, C] = Prepared((), states_of(self._sink, kept_by(head)))
        epoch = self._chain.begin(head, cause, source=source, schema=schema_of(head))
        if any(stage.is_due(epoch.context, prepared) for stage in self._stages):
            self._chain.telling.began(cause, epoch.context)
            return self._commit(epoch, Gathered(prepared=prepared))
        self._chain.stays_at(head)
        return None

    def _write(self, epoch: Epoch, job: WriteJob) -> Gathered[S, C]:
        kept = kept_by(epoch.continued)
        task = WriteTask.of(epoch.context, self._sink, states=kept, time_zone=job.time_zone)
        try:
            results = job.write(task.run)
            gathered = gather(self._sink, kept, results, job.losers(), sink_id=task.sink_id)
            return replace(gathered, digest=job.digest())
        except Exception as error:  # raised again, or as what another driver has caused
            self._decision.raise_if_overtaken(epoch.context, error)
            raise

    def _commit(self, epoch: Epoch, gathered: Gathered[S, C]) -> Outcome[C] | None:
        """Decide and publish what was prepared; ``None`` if another write has claimed its ``txn_id``."""
        record = None
        try:
            self._chain.make_way(epoch)
            record = self._decision.record(epoch, gathered)
            record, standing = self._decision.decide(epoch, record)
        except CommitStateUnknown:
            raise  # what stands in the slot may be our own record
        except Exception as error:  # raised again; nothing is discarded unless the slot is free for sure
            if self._decision.raise_if_overtaken(epoch.context, error):
                self._decision.discard(gathered, record)
            raise
        if standing.nonce != record.nonce:
            self._decision.discard(gathered, record)
            if not same_batch(standing.cause, epoch.cause):
                raise slot_taken(standing)
            self._chain.settle()
            return self._repeats.outcome_of(standing, epoch.cause, gathered.rows, gathered.digest)
        if not self.ledger.is_open and not self.ledger.counts(record.slot):
            self._decision.discard(gathered, record)
            raise overtaken(epoch.context)
        return self._publish(epoch, record, gathered)

    def _publish(self, epoch: Epoch, record: EpochRecord, gathered: Gathered[S, C]) -> Outcome[C] | None:
        """Publish, announce and complete, then tidy up; ``None`` if another write has its ``txn_id``."""
        metrics = {**gathered.metrics, **epoch.context.metrics.values}
        self._chain.telling.decided(record, metrics)
        committables = self._chain.publisher.publish(record, Decider.THIS_DRIVER)
        if committables is None:
            return None
        left, kept = self._chain.publisher.failed, self._chain.publisher.kept
        self._chain.advances_to(record)
        self._chain.telling.complete(record, committables, metrics=metrics, stay=(*left, *kept))
        self._chain.tidy_up(record, committables, gathered.losers)
        before = self._chain.failed_before(epoch.head)
        return first_outcome(record, committables, metrics=metrics, left=left, left_before=before, kept=kept)
