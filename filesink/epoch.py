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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from filesink.api import OF_STAGES, EpochContext, Input, Prepared, Sink
from filesink.epoch_record import (
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
from filesink.errors import CommitStateUnknown, ConcurrentDriverError, FilesinkError, StorageError
from filesink.gathering import Gathered, gather, states_of
from filesink.identity import check_return
from filesink.ledger import Head, Ledger
from filesink.ports import Losers, NotedRunner, Ports, WriteJob
from filesink.publisher import Decider, Publisher
from filesink.recorded_schema import next_schema, replaced_chains, schema_of
from filesink.replay import (
    EpochOptions,
    History,
    OnGap,
    check_fingerprint,
    check_rows,
    find_decided,
    overtaken,
    same_batch,
    second_call,
)
from filesink.save_mode import SaveMode
from filesink.task import WriteTask, encode_states

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[C]):
    """What became of an epoch.

    ``replayed`` is true if an earlier call had decided it and this one wrote nothing.
    """

    slot: int
    cause: Cause
    rows: int
    committables: Sequence[C]
    replayed: bool = False
    metrics: Mapping[str, int] = field(default_factory=dict)


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
        self._options = options
        self._publisher = Publisher(sink, self.ledger, ports.clock)
        self._stages = tuple(sink.pre_commit_stages())
        self._lock = threading.Lock()
        self._runner = NotedRunner(ports.runner)  # of the epoch at work
        # Kept between good epochs: a driver that is alone on a sink reads its chain once.
        self._head: Head | None = None
        self._fresh = options.history is History.NONE
        self._clean = False
        self._done_here: tuple[str, int] | None = None  # run id and batch id
        self._known_run: str | None = None  # was not refused when it began

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

    def recover(self) -> Outcome[C] | None:
        """Publish what an earlier driver has decided and not completed; ``None`` if there is nothing."""
        with self._lock:
            self._head = None
            head = self.ledger.head()
            if head is None or head.complete:
                return None
            committables = self._publisher.publish(head.record, Decider.EARLIER_DRIVER)
            return _outcome(head.record, committables, replayed=True)

    def close(self) -> None:
        """Release what the committers hold; waits for an epoch at work."""
        with self._lock:
            self._publisher.close()

    # --- the steps, in their order

    def _run(self, cause: MicroBatch | BatchWrite, job: WriteJob, on_gap: OnGap | None) -> Outcome[C]:
        head, decided = self._look(cause, job.run_id, on_gap)
        if decided is not None:
            return self._replay(decided, cause, job.count_rows)
        schema = next_schema(self._sink, job.schema, cause=cause, head=head, ledger=self.ledger)
        epoch = self._begin(head, cause, Input.ENDED if isinstance(cause, BatchWrite) else Input.GOES_ON)
        for stage in self._stages:
            stage.begin(epoch)
        return self._commit(epoch, head, cause, self._write(epoch, head, job), schema)

    def _look(
        self, cause: MicroBatch | BatchWrite, run_id: str = "", on_gap: OnGap | None = None
    ) -> tuple[Head | None, EpochRecord | None]:
        """The newest record, and that of this very cause if it is decided; their epochs are complete."""
        is_known = self._head is not None and self._known_run == run_id  # upkeep may have come before the run
        head = self._settle()
        if isinstance(cause, MicroBatch) and not is_known:
            check_return(cause, head, self.ledger, on_new_query=self._options.on_new_query)
            self._known_run = run_id
        options = self._options if on_gap is None else replace(self._options, on_gap=on_gap)
        decided = find_decided(cause, head, self.ledger, options)
        if decided is not None and (head is None or decided.slot > head.record.slot):
            self._head = None  # another driver has decided it since, and may have died
            head = self._settle()
        return head, decided

    def _settle(self) -> Head | None:
        """The newest record, its epoch complete."""
        if self._head is not None:
            return self._head
        # An earlier driver, or an epoch of this one that failed, may have left files anywhere.
        self._clean, self._fresh = self._fresh, False
        head = self.ledger.head()
        if head is not None and not head.complete:
            log.info("sink %s: publishing what epoch %d has decided", self.ledger.sink_id, head.record.slot)
            self._publisher.publish(head.record, Decider.EARLIER_DRIVER)
            head = replace(head, complete=True)
        return head

    def _begin(self, head: Head | None, cause: Cause, source: Input) -> EpochContext:
        """A new epoch. Until it has succeeded, nothing is known of the chain any more."""
        self._head = None
        self._runner = NotedRunner(self._ports.runner)
        return EpochContext(
            sink_id=self.ledger.sink_id,
            slot=0 if head is None else head.record.slot + 1,
            now_ms=self._ports.clock.now_ms(),
            input=source,
            ids=self._ports.ids,
            runner=self._runner,
            waiting=() if head is None else self._publisher.waiting(head.record.waiting),
            clock=self._ports.clock,
            mode=cause.mode if isinstance(cause, BatchWrite) else SaveMode.APPEND,
            replaces=replaced_chains(cause, self.ledger),
        )

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
            return gather(self._sink, _kept(head), job.write(task.run), job.losers())
        except Exception as error:  # raised again, or as what another driver has caused
            self._is_undecided(epoch, error)
            raise

    def _commit(
        self, epoch: EpochContext, head: Head | None, cause: Cause, gathered: Gathered[S, C], schema: Section
    ) -> Outcome[C]:
        record = None
        try:
            record = self._record(epoch, head, cause, gathered, schema)
            standing = self.ledger.decide(record)
        except CommitStateUnknown:
            raise  # what stands in the slot may be our own record
        except Exception as error:  # raised again; nothing is discarded unless the slot is free for sure
            if self._is_undecided(epoch, error):
                self._discard(gathered, record)
            raise
        if standing.nonce != record.nonce:
            self._discard(gathered, record)
            return self._lost(standing, cause, gathered)
        if not self.ledger.counts(epoch.slot):
            self._discard(gathered, record)
            raise overtaken(epoch)
        committables = self._publisher.publish(record, Decider.THIS_DRIVER)
        self._head = Head(record=record, complete=True)
        losers = Losers.POSSIBLE if self._runner.used else gathered.losers
        self._after(record, committables, losers)
        return replace(_outcome(record, committables), metrics={**gathered.metrics, **epoch.metrics.values})

    def _record(
        self, epoch: EpochContext, head: Head | None, cause: Cause, gathered: Gathered[S, C], schema: Section
    ) -> EpochRecord:
        prepared = gathered.prepared
        for stage in self._stages:
            prepared = stage.prepare(epoch, prepared)
        kept = EMPTY if head is None else head.record.waiting
        announcement, waiting = self._publisher.combine(epoch, prepared, kept)
        states = {subtask: encode_states(self._sink, values) for subtask, values in prepared.states.items()}
        last = None if head is None else head.record.last_batch
        return EpochRecord(
            slot=epoch.slot,
            nonce=epoch.ids.uuid(),
            sink_id=epoch.sink_id,
            cause=cause,
            last_batch=cause if isinstance(cause, MicroBatch) else last,
            decided_ms=epoch.now_ms,
            rows=gathered.rows,
            committables=Section.of(self._sink.committable_codec, prepared.committables),
            announcement=announcement,
            waiting=waiting,
            schema=schema,
            states={subtask: section for subtask, section in states.items() if section.data},
            replaces=epoch.replaces,
        )

    def _lost(self, standing: EpochRecord, cause: Cause, gathered: Gathered[S, C]) -> Outcome[C]:
        """Another driver has the slot. If it did the same work, that is as good; else stop."""
        if same_batch(standing.cause, cause):
            self._settle()
            return self._replay(standing, cause, lambda: gathered.rows)
        raise ConcurrentDriverError(
            f"another driver has decided slot {standing.slot} of sink '{standing.sink_id}' meanwhile; "
            "what this one "
            "had prepared was discarded. Stop one of the two; a restart goes on from the new state",
            code="CONCURRENT_DRIVER",
        )

    def _replay(self, decided: EpochRecord, cause: Cause, count_rows: Callable[[], int]) -> Outcome[C]:
        """Go through a decided epoch again: nothing is written, the input is drained and compared."""
        committables = decided.committables.decode(self._sink.committable_codec)
        if isinstance(cause, MicroBatch) and isinstance(decided.cause, MicroBatch):
            check_fingerprint(decided.cause, cause)
            check_rows(decided, cause.batch_id, count_rows(), self._options.on_replay_mismatch)
        return _outcome(decided, committables, replayed=True)

    def _without_input(self, cause: Upkeep | Finish | OfflineCompaction, source: Input) -> Outcome[C] | None:
        head = self._settle()
        prepared: Prepared[S, C] = Prepared((), states_of(self._sink, _kept(head)))
        epoch = self._begin(head, cause, source)
        if any(stage.is_due(epoch, prepared) for stage in self._stages):
            return self._commit(epoch, head, cause, Gathered(prepared=prepared), schema_of(head))
        self._head = head
        return None

    def _is_undecided(self, epoch: EpochContext, error: Exception) -> bool:
        """Whether the slot is free for sure after ``error``; raises if another driver has it."""
        try:
            taken = self.ledger.read(epoch.slot) is not None or self.ledger.is_void(epoch.slot)
        except FilesinkError as unreadable:
            error.add_note(f"the ledger could not be read either: {unreadable}")
            return False
        if taken and not isinstance(error, ConcurrentDriverError):
            raise overtaken(epoch) from error
        return not taken

    def _discard(self, gathered: Gathered[S, C], record: EpochRecord | None) -> None:
        """Remove what an epoch has prepared that is not decided. What stays is swept later."""
        try:
            self._publisher.discard(gathered.reported, EMPTY if record is None else record.announcement)
        except StorageError as error:
            log.warning("sink %s: discarding failed: %s", self.ledger.sink_id, error)

    def _after(self, record: EpochRecord, committables: Sequence[C], losers: Losers) -> None:
        """Housekeeping of a complete epoch. A failure costs nothing but space, and is tried again."""
        try:
            self.ledger.fold(newest=record.slot, keep=self._options.keep_batches)
            if not self._clean:
                self._sink.sweep(record, None)
                self.ledger.sweep(record.slot)
            elif losers is Losers.POSSIBLE:
                self._sink.sweep(record, committables)
            self._clean = True
        except StorageError as error:
            self._clean = False
            log.warning("sink %s: sweeping failed, the next epoch tries again: %s", record.sink_id, error)


def _kept(head: Head | None) -> Mapping[int, Section]:
    return {} if head is None else head.record.states


def _outcome(record: EpochRecord, committables: Sequence[C], *, replayed: bool = False) -> Outcome[C]:
    return Outcome(
        slot=record.slot, cause=record.cause, rows=record.rows, committables=committables, replayed=replayed
    )
