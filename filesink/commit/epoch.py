"""The epoch, on the driver. One path for batch and streaming, for data, upkeep and the end of input.

    state    = the last record's                       one lock in the process, from here to complete
    decided? → publish what is left, drain the input and compare the rows; nothing is written
    schema   = the columns of the input, if they may follow those of the last one
    results  = the tasks write their partitions
    stages   close what is due and merge it
    record   = committables, announcement, schema, next state
    ledger.decide(record)                              the one point of no return
    publish → complete → sweep what losers left

Rules:
1. Before *decide* only discarding is allowed, after it only going on.
2. Whatever fails before *decide*, the ledger is read again before the error is raised: the failure
   may be the work of another driver that went on.
3. The input is executed exactly once per epoch, for a replay too: a stateful query needs it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from filesink.api import OF_STAGES, EpochContext, Input, Prepared, Sink
from filesink.commit.chain import Chain
from filesink.commit.decision import Decision, next_slot
from filesink.commit.outcome import Outcome, first_outcome
from filesink.commit.publisher import Decider
from filesink.commit.recorded_schema import next_schema, replaced_chains, schema_of
from filesink.commit.repeats import Repeats
from filesink.commit.replay import EpochOptions, OnGap, overtaken, same_batch, second_call, slot_taken
from filesink.commit.task import WriteTask
from filesink.commit.task_results import Gathered, gather, states_of
from filesink.errors import CommitStateUnknown, ConcurrentDriverError, FilesinkError, StorageError
from filesink.ledger.head import Head
from filesink.ledger.identity import check_tag
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import (
    EMPTY,
    BatchWrite,
    Cause,
    EpochRecord,
    Finish,
    MicroBatch,
    OfflineCompaction,
    Section,
    Upkeep,
)
from filesink.ports import Losers, NotedRunner, Ports, WriteJob
from filesink.save_mode import SaveMode

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")

log = logging.getLogger("filesink")


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
        self._ports = ports
        self._chain = Chain(sink, self.ledger, clock=ports.clock, options=options)
        self._stages = tuple(sink.pre_commit_stages())
        self._decision = Decision(sink, self._chain, self._stages)
        self._repeats = Repeats(sink, options)
        self._lock = threading.Lock()
        self._runner = NotedRunner(ports.runner)  # of the epoch at work
        self._done_here: tuple[str, int] | None = None  # run id and batch id

    def run(
        self, cause: MicroBatch | BatchWrite, job: WriteJob, *, on_gap: OnGap | None = None
    ) -> Outcome[C]:
        """Write one micro-batch or one batch: the whole epoch, or the replay of a decided one.

        ``on_gap`` is for this call, instead of that of the options.
        """
        with self._lock:
            if isinstance(cause, MicroBatch) and self._done_here == (job.run_id, cause.batch_id):
                raise second_call(cause)
            outcome = self._run(cause, job, on_gap)
            if isinstance(cause, MicroBatch):
                self._done_here = (job.run_id, cause.batch_id)
            return outcome

    def upkeep(self) -> Outcome[C] | None:
        """Close what is due though no data came. Does nothing while another epoch is at work."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._without_input(Upkeep(), Input.GOES_ON)
        finally:
            self._lock.release()

    def compact(self) -> Outcome[C] | None:
        """Replace finished files, if a stage finds any that are due. Waits for an epoch at work."""
        with self._lock:
            return self._without_input(OfflineCompaction(), Input.GOES_ON)

    def finish(self) -> Outcome[C] | None:
        """Close everything: the input has ended. ``None`` if nothing was open."""
        with self._lock:
            return self._without_input(Finish(), Input.ENDED)

    def recover(self, slot: int | None = None) -> Outcome[C] | None:
        """Publish what an earlier driver has decided, in ``slot`` or in the first that is half done.

        ``None`` if there is nothing to do, or another write has the ``txn_id``.
        """
        with self._lock:
            self._chain.forget()
            found = [one for one in self.ledger.history.unfinished() if slot is None or one.slot == slot]
            return self._chain.carry_through(found[0]) if found else None

    def close(self) -> None:
        """Release what the committers hold; waits for an epoch at work."""
        with self._lock:
            self._chain.publisher.close()

    # --- the steps, in their order

    def _run(self, cause: MicroBatch | BatchWrite, job: WriteJob, on_gap: OnGap | None) -> Outcome[C]:
        head, decided = self._chain.look(cause, job.run_id, on_gap)
        if decided is not None:
            return self._repeats.replay(decided, cause, job)
        schema = next_schema(self._sink, job.schema, cause=cause, head=head, ledger=self.ledger)
        source = Input.ENDED if isinstance(cause, BatchWrite) else Input.GOES_ON
        epoch = replace(self._begin(head, cause, source), schema=job.schema)
        for stage in self._stages:
            stage.begin(epoch)
        gathered = self._write(epoch, head, job)
        outcome = self._commit(epoch, head, cause, gathered, schema)
        return outcome if outcome is not None else self._run(cause, job, on_gap)

    def _without_input(self, cause: Upkeep | Finish | OfflineCompaction, source: Input) -> Outcome[C] | None:
        head = self._chain.settle()
        prepared: Prepared[S, C] = Prepared((), states_of(self._sink, _kept(head)))
        epoch = self._begin(head, cause, source)
        if any(stage.is_due(epoch, prepared) for stage in self._stages):
            return self._commit(epoch, head, cause, Gathered(prepared=prepared), schema_of(head))
        self._chain.stays_at(head)
        return None

    def _begin(self, head: Head | None, cause: Cause, source: Input) -> EpochContext:
        """A new epoch. Until it has succeeded, nothing is known of the chain any more."""
        self._runner = NotedRunner(self._ports.runner)
        self._chain.begin()
        writer = cause.writer if isinstance(cause, BatchWrite) else ""
        if writer or head is None:
            check_tag(writer or self.ledger.sink_id, self.ledger)
        return EpochContext(
            sink_id=writer or self.ledger.sink_id,
            slot=0 if writer else next_slot(head),
            now_ms=self._ports.clock.now_ms(),
            input=source,
            ids=self._ports.ids,
            runner=self._runner,
            waiting=() if head is None else self._chain.publisher.waiting(head.record.waiting),
            clock=self._ports.clock,
            mode=cause.mode if isinstance(cause, BatchWrite) else SaveMode.APPEND,
            replaces=replaced_chains(cause, self.ledger),
            supersedes=self._superseded_by(cause),
        )

    def _superseded_by(self, cause: Cause) -> Sequence[C]:
        """What an earlier write of the same txn_id has committed, if ``cause`` takes its place."""
        if not (isinstance(cause, BatchWrite) and cause.supersedes):
            return ()
        earlier = self.ledger.claims(cause.remembered_in).standing()
        return () if earlier is None else earlier.committables.decode(self._sink.committable_codec)

    def _write(self, epoch: EpochContext, head: Head | None, job: WriteJob) -> Gathered[S, C]:
        task = WriteTask(
            sink=self._sink,
            sink_id=epoch.sink_id,
            slot=epoch.slot,
            driver_ms=epoch.now_ms,
            time_zone=job.time_zone,
            states={subtask: state for subtask, state in _kept(head).items() if subtask != OF_STAGES},
        )
        try:
            results = job.write(task.run)
            gathered = gather(self._sink, _kept(head), results, job.losers(), sink_id=epoch.sink_id)
            return replace(gathered, digest=job.digest())
        except Exception as error:  # raised again, or as what another driver has caused
            self._is_undecided(epoch, error)
            raise

    def _commit(
        self, epoch: EpochContext, head: Head | None, cause: Cause, gathered: Gathered[S, C], schema: Section
    ) -> Outcome[C] | None:
        """Decide and publish what was prepared; ``None`` if another write of its txn_id came first."""
        record = None
        try:
            record = self._decision.record(epoch, head, cause, gathered, schema)
            record, standing = self._decision.decide(epoch, record, head)
        except CommitStateUnknown:
            raise  # what stands in the slot may be our own record
        except Exception as error:  # raised again; nothing is discarded unless the slot is free for sure
            if self._is_undecided(epoch, error):
                self._discard(gathered, record)
            raise
        if standing.nonce != record.nonce:
            self._discard(gathered, record)
            return self._lost(standing, cause, gathered)
        if not self.ledger.is_open and not self.ledger.counts(record.slot):
            self._discard(gathered, record)
            raise overtaken(epoch)
        return self._publish(epoch, head, record, gathered)

    def _publish(
        self, epoch: EpochContext, head: Head | None, record: EpochRecord, gathered: Gathered[S, C]
    ) -> Outcome[C] | None:
        """Publish what was decided, complete it, tidy up; ``None`` if ``record`` is void after all."""
        committables = self._chain.publisher.publish(record, Decider.THIS_DRIVER)
        if committables is None:
            return None
        now = self._chain.advances_to(record)
        self._chain.tidy_up(record, committables, Losers.POSSIBLE if self._runner.used else gathered.losers)
        left, before = self._chain.left_by(now), self._chain.left_by(head)
        return replace(
            first_outcome(record, committables),
            metrics={**gathered.metrics, **epoch.metrics.values},
            left=left,
            newly_left=[one for one in left if one not in before],
        )

    def _lost(self, standing: EpochRecord, cause: Cause, gathered: Gathered[S, C]) -> Outcome[C]:
        """Another driver has the slot. If it did the same work, that is as good; else stop."""
        if same_batch(standing.cause, cause):
            self._chain.settle()
            return self._repeats.outcome_of(standing, cause, gathered.rows, gathered.digest)
        raise slot_taken(standing)

    def _is_undecided(self, epoch: EpochContext, error: Exception) -> bool:
        """Whether the slot is free for sure after ``error``; raises if another driver has it.

        A batch write has no slot of its own: it is free unless the ledger has said otherwise.
        """
        if epoch.sink_id != self.ledger.sink_id:
            return True
        try:
            taken = self.ledger.read(epoch.slot) is not None or self.ledger.history.is_void(epoch.slot)
        except FilesinkError as unreadable:
            error.add_note(f"the ledger could not be read either: {unreadable}")
            return False
        if taken and not isinstance(error, ConcurrentDriverError):
            raise overtaken(epoch) from error
        return not taken

    def _discard(self, gathered: Gathered[S, C], record: EpochRecord | None) -> None:
        """Remove what an epoch has prepared that is not decided. What stays is swept later."""
        try:
            self._chain.publisher.discard(gathered.reported, EMPTY if record is None else record.announcement)
        except StorageError as error:
            log.warning("sink %s: discarding failed: %s", self.ledger.sink_id, error)


def _kept(head: Head | None) -> Mapping[int, Section]:
    return {} if head is None else head.record.states
