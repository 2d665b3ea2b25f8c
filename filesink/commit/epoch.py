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
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from filesink.api import OF_STAGES, EpochContext, Input, Prepared, Sink
from filesink.commit.publisher import Decider, Publisher
from filesink.commit.recorded_schema import next_schema, replaced_chains, schema_of
from filesink.commit.replay import (
    EpochOptions,
    History,
    OnGap,
    OnRepeatedTxn,
    check_fingerprint,
    check_rows,
    check_same_data,
    find_decided,
    overtaken,
    same_batch,
    second_call,
)
from filesink.commit.task import WriteTask, encode_states
from filesink.commit.task_results import Gathered, gather, states_of
from filesink.errors import CommitStateUnknown, ConcurrentDriverError, FilesinkError, StorageError
from filesink.ledger.identity import check_return, check_tag, queries_of
from filesink.ledger.ledger import Head, Ledger
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
from filesink.ledger.transactions import decided_by_earlier_release, other_mode
from filesink.ports import Losers, NotedRunner, Ports, WriteJob
from filesink.save_mode import SaveMode

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[C]):
    """What became of an epoch.

    Attributes:
        replayed: an earlier call had decided it and this one wrote nothing.
        decided_ms: the driver's clock when it was decided, milliseconds since 1970 UTC.
        left: committables that should have been removed and could not be yet; later epochs try again.
        newly_left: those of ``left`` that no epoch before this one has left.
    """

    slot: int
    cause: Cause
    rows: int
    committables: Sequence[C]
    replayed: bool = False
    metrics: Mapping[str, int] = field(default_factory=dict)
    decided_ms: int = 0
    left: Sequence[C] = ()
    newly_left: Sequence[C] = ()


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
        self._stuck: frozenset[int] = frozenset()  # slots of an open chain, half done when the epoch began
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

    def recover(self, slot: int | None = None) -> Outcome[C] | None:
        """Publish what an earlier driver has decided, in ``slot`` or in the first that is half done.

        ``None`` if there is nothing to do, or another write has the ``txn_id``.
        """
        with self._lock:
            self._head = None
            found = [one for one in self.ledger.unfinished() if slot is None or one.slot == slot]
            return self._carry_through(found[0]) if found else None

    def _carry_through(self, record: EpochRecord) -> Outcome[C] | None:
        log.info("sink %s: publishing what epoch %d has decided", self.ledger.sink_id, record.slot)
        published = self._publisher.publish(record, Decider.EARLIER_DRIVER)
        return None if published is None else _outcome(record, published, replayed=True)

    def close(self) -> None:
        """Release what the committers hold; waits for an epoch at work."""
        with self._lock:
            self._publisher.close()

    # --- the steps, in their order

    def _run(self, cause: MicroBatch | BatchWrite, job: WriteJob, on_gap: OnGap | None) -> Outcome[C]:
        head, decided = self._look(cause, job.run_id, on_gap)
        if decided is not None:
            return self._replay(decided, cause, job)
        schema = next_schema(self._sink, job.schema, cause=cause, head=head, ledger=self.ledger)
        source = Input.ENDED if isinstance(cause, BatchWrite) else Input.GOES_ON
        epoch = replace(self._begin(head, cause, source), schema=job.schema)
        for stage in self._stages:
            stage.begin(epoch)
        gathered = self._write(epoch, head, job)
        outcome = self._commit(epoch, head, cause, gathered, schema)
        return outcome if outcome is not None else self._run(cause, job, on_gap)

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
        if isinstance(cause, BatchWrite) and decided is not None:
            self._see_through(decided)
        elif decided is not None and (head is None or decided.slot > head.record.slot):
            self._head = None  # another driver has decided it since, and may have died
            head = self._settle()
        return head, decided

    def _see_through(self, decided: EpochRecord) -> None:
        """Have a write be visible that an earlier call has decided, in this mode or in another one."""
        home = self.ledger.beside(decided.sink_id)
        if home.is_complete(decided):
            return
        if home.sink_id == self.ledger.sink_id:
            self._carry_through(decided)
        elif decided.sink_id == decided_by_earlier_release(decided):
            publisher = Publisher(self._sink, home, self._ports.clock)
            publisher.publish(decided, Decider.EARLIER_DRIVER)
            publisher.close()
        else:
            raise other_mode(decided)

    def _settle(self) -> Head | None:
        """The newest record, its epoch complete; nobody needs that of an open chain."""
        if self._head is not None or self.ledger.is_open:
            return self._head
        # An earlier driver, or an epoch of this one that failed, may have left files anywhere.
        self._clean, self._fresh = self._fresh, False
        head = self.ledger.head()
        while head is not None and not head.complete:  # others may go on as soon as one is
            self._carry_through(head.record)
            head = self.ledger.head()
        return head

    def _begin(self, head: Head | None, cause: Cause, source: Input) -> EpochContext:
        """A new epoch. Until it has succeeded, nothing is known of the chain any more."""
        self._head = None
        self._runner = NotedRunner(self._ports.runner)
        self._stuck = self._half_done()
        writer = cause.writer if isinstance(cause, BatchWrite) else ""
        if writer or head is None:
            check_tag(writer or self.ledger.sink_id, self.ledger)
        return EpochContext(
            sink_id=writer or self.ledger.sink_id,
            slot=0 if writer else _next_slot(head),
            now_ms=self._ports.clock.now_ms(),
            input=source,
            ids=self._ports.ids,
            runner=self._runner,
            waiting=() if head is None else self._publisher.waiting(head.record.waiting),
            clock=self._ports.clock,
            mode=cause.mode if isinstance(cause, BatchWrite) else SaveMode.APPEND,
            replaces=replaced_chains(cause, self.ledger),
            supersedes=self._superseded_by(cause),
        )

    def _half_done(self) -> frozenset[int]:
        """Slots of an open chain. Their records are read: one that cannot be believed stops everybody."""
        slots = self.ledger.half_done() if self.ledger.is_open else ()
        return frozenset(slot for slot in slots if self.ledger.read(slot) is not None)

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
            record = self._record(epoch, head, cause, gathered, schema)
            record, standing = self._decide(epoch, record, self._left_by(head))
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
        committables = self._publisher.publish(record, Decider.THIS_DRIVER)
        if committables is None:
            return None
        left = self._publisher.left
        self._head = None if self.ledger.is_open else Head(record=record, complete=True, left=left)
        losers = Losers.POSSIBLE if self._runner.used else gathered.losers
        self._after(record, committables, losers)
        outcome = _outcome(record, committables)
        now = Head(record=record, complete=True, left=left)
        remaining, before = self._left_by(now), self._left_by(head)
        return replace(
            outcome,
            metrics={**gathered.metrics, **epoch.metrics.values},
            left=remaining,
            newly_left=[one for one in remaining if one not in before],
        )

    def _decide(
        self, epoch: EpochContext, record: EpochRecord, carried: Sequence[C]
    ) -> tuple[EpochRecord, EpochRecord]:
        """``record`` in the slot that was tried last, and what stands there.

        A batch write whose slot is taken goes on to the next one, with its files at hand: they are its own.
        ``carried`` is what an earlier epoch has left, and whoever comes next has to remove.
        """
        if self.ledger.is_open:
            placed = self.ledger.append(record)
            return placed, placed
        while True:
            standing = self.ledger.decide(record)
            writes = isinstance(record.cause, BatchWrite) and record.cause.writer
            if standing.nonce == record.nonce or not writes:
                return record, standing
            taken = [standing]
            newest = self._settle()  # another driver's epoch, and those after it
            if newest is None or newest.record.slot < standing.slot:
                return record, standing
            for slot in range(standing.slot + 1, newest.record.slot + 1):
                found = self.ledger.read(slot)
                if found is None:  # folded away meanwhile
                    return record, standing
                taken.append(found)
            record = self._again(epoch, newest, record, taken, carried)
            carried = [*carried, *self._left_by(newest)]

    def _again(
        self,
        epoch: EpochContext,
        head: Head,
        record: EpochRecord,
        taken: Sequence[EpochRecord],
        carried: Sequence[C],
    ) -> EpochRecord:
        """``record`` as it may follow ``head``, although ``taken`` came before it; raises if it may not."""
        codec = self._sink.committable_codec
        # What is carried is nobody's own: two that both have it need not be in each other's way.
        ours, *others = (
            [one for one in found.committables.decode(codec) if one not in carried]
            for found in (record, *taken)
        )
        prepared: Prepared[S, C] = Prepared(ours, {})
        for stage in self._stages:
            prepared = stage.follow(epoch, prepared, others)
        waiting = self._publisher.waiting(head.record.waiting)
        announcement, later = self._publisher.combine(
            replace(epoch, waiting=waiting), prepared, head.record.waiting
        )
        return replace(
            record,
            slot=head.record.slot + 1,
            committables=Section.of(codec, [*prepared.committables, *self._left_by(head)]),
            announcement=announcement,
            waiting=later,
            queries=queries_of(record.cause, head, self.ledger),
        )

    def _left_by(self, head: Head | None) -> list[C]:
        """What an epoch could not remove, and the next one is to try again."""
        return head.left.decode(self._sink.committable_codec) if head is not None and head.left.data else []

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
            slot=_next_slot(head),
            nonce=epoch.ids.uuid(),
            sink_id=self.ledger.sink_id,
            cause=cause,
            last_batch=cause if isinstance(cause, MicroBatch) else last,
            decided_ms=epoch.now_ms,
            rows=gathered.rows,
            committables=Section.of(
                self._sink.committable_codec, [*prepared.committables, *self._left_by(head)]
            ),
            announcement=announcement,
            waiting=waiting,
            schema=schema,
            states={subtask: section for subtask, section in states.items() if section.data},
            replaces=epoch.replaces,
            queries=queries_of(cause, head, self.ledger),
            digest=gathered.digest,
        )

    def _lost(self, standing: EpochRecord, cause: Cause, gathered: Gathered[S, C]) -> Outcome[C]:
        """Another driver has the slot. If it did the same work, that is as good; else stop."""
        if same_batch(standing.cause, cause):
            self._settle()
            return self._outcome_of(standing, cause, gathered.rows, gathered.digest)
        raise ConcurrentDriverError(
            f"another driver has decided slot {standing.slot} of sink '{standing.sink_id}' meanwhile; "
            "what this one "
            "had prepared was discarded. Stop one of the two; a restart goes on from the new state",
            code="CONCURRENT_DRIVER",
        )

    def _replay(self, decided: EpochRecord, cause: Cause, job: WriteJob) -> Outcome[C]:
        """Go through a decided epoch again: nothing is written, the input is drained and compared."""
        if isinstance(cause, MicroBatch) and isinstance(decided.cause, MicroBatch):
            check_fingerprint(decided.cause, cause)
        if isinstance(cause, BatchWrite) and self._options.on_repeated_txn is OnRepeatedTxn.SKIP:
            return self._outcome_of(decided, cause, decided.rows, decided.digest)
        return self._outcome_of(decided, cause, job.count_rows(), job.digest())

    def _outcome_of(self, decided: EpochRecord, cause: Cause, rows: int, digest: str) -> Outcome[C]:
        """That of an epoch that was decided before, for input of so many rows."""
        committables = decided.committables.decode(self._sink.committable_codec)
        match cause:
            case MicroBatch(batch_id=batch_id):
                check_rows(decided, batch_id, rows, self._options.on_replay_mismatch)
            case BatchWrite(txn_id=txn_id) if txn_id:
                check_same_data(decided, rows, digest)
            case _:
                pass
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
        """Whether the slot is free for sure after ``error``; raises if another driver has it.

        A batch write has no slot of its own: it is free unless the ledger has said otherwise.
        """
        if epoch.sink_id != self.ledger.sink_id:
            return True
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
            if record.files_of != record.sink_id:  # nobody else has left files with this tag
                if losers is Losers.POSSIBLE:
                    self._sink.sweep(record, committables)
                self.ledger.sweep(record.slot)
                self._unstick()
                return
            if not self._clean:
                self._sink.sweep(record, None)
                self.ledger.sweep(record.slot)
            elif losers is Losers.POSSIBLE:
                self._sink.sweep(record, committables)
            self._clean = True
        except StorageError as error:
            self._clean = False
            log.warning("sink %s: sweeping failed, the next epoch tries again: %s", record.sink_id, error)

    def _unstick(self) -> None:
        """Carry through what was half done all the while: its driver is dead, or slow, which does no harm."""
        try:
            for record in self.ledger.unfinished() if self._stuck else ():
                if record.slot in self._stuck:
                    self._carry_through(record)
        except FilesinkError as error:  # they stay decided, and recover() raises the same
            log.warning(
                "sink %s: epochs of other writes are decided and cannot be published: %s",
                self.ledger.sink_id, error,
            )  # fmt: skip


def _kept(head: Head | None) -> Mapping[int, Section]:
    return {} if head is None else head.record.states


def _next_slot(head: Head | None) -> int:
    return 0 if head is None else head.record.slot + 1


def _outcome(record: EpochRecord, committables: Sequence[C], *, replayed: bool = False) -> Outcome[C]:
    return Outcome(
        slot=record.slot,
        cause=record.cause,
        rows=record.rows,
        committables=committables,
        replayed=replayed,
        decided_ms=record.decided_ms,
    )
