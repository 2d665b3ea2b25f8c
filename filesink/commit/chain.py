"""What a driver knows of the chain it writes to, from one epoch to the next.

A driver that is alone on a sink reads its chain once. Until an epoch has succeeded, nothing is known of
the chain any more; then it is read again, and what an earlier driver has decided is published first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from filesink.api import EpochContext, Input, Sink
from filesink.commit.listening.telling import Telling
from filesink.commit.outcome import Outcome, later_outcome
from filesink.commit.publisher import Decider, Publisher
from filesink.commit.recorded_schema import replaced_chains
from filesink.commit.replay import EpochOptions, History, OnGap, continued_by, find_decided, overtaken
from filesink.errors import FilesinkError, StorageError
from filesink.ledger.head import Head, next_slot
from filesink.ledger.identity import EXCLUSIVE, check_return, check_tag
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EMPTY, BatchWrite, Cause, EpochRecord, MicroBatch, Section
from filesink.ledger.transactions import decided_by_earlier_release, other_mode
from filesink.ports import Losers, NotedRunner, Ports, WriteJob
from filesink.save_mode import SaveMode

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")

log = logging.getLogger("filesink")

_LOOK_EVERY = 50  # epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """An epoch at work.

    Attributes:
        head: the newest record when it began, its epoch complete; ``None`` in a new chain and an open one.
        cause: what it is for.
        context: what stages know of it.
        schema: columns of its input, for its record.
        offsets: of its input, for its record.
    """

    head: Head | None
    cause: Cause
    context: EpochContext
    schema: Section
    offsets: str

    @property
    def continued(self) -> Head | None:
        """The record whose open parts and waiting partitions this epoch goes on with."""
        return None if self.context.takes_over else self.head


class Chain(Generic[S, C, A]):
    """One chain, as seen by the driver that writes to it. Used by one epoch at a time.

    Args:
        sink: what is written to.
        ledger: the chain.
        ports: clock, ids and where stages run their work.
        options: see ``EpochOptions``.
    """

    def __init__(self, sink: Sink[S, C, A], ledger: Ledger, *, ports: Ports, options: EpochOptions) -> None:
        self.ledger = ledger
        self.telling = Telling(ledger.sink_id, ports)
        self.publisher = Publisher(sink, ledger, ports, visible=self.telling.visible)
        self._remove_due = sink.create_remover()
        self._sink = sink
        self._ports = ports
        self._runner = NotedRunner(ports.runner)  # of the epoch at work
        self._options = options
        self._head: Head | None = None
        self._fresh = self._is_of_a_run = options.history is History.NONE
        self._clean = False
        self._stuck: frozenset[int] = frozenset()  # slots of an open chain, half done when the epoch began
        self._known_run: str | None = None  # was not refused when it began

    def look(
        self, cause: MicroBatch | BatchWrite, run_id: str = "", on_gap: OnGap | None = None
    ) -> tuple[Head | None, EpochRecord | None]:
        """The newest record, and the record of this very cause if it is decided; both epochs are complete."""
        is_known = self._head is not None and self._known_run == run_id  # upkeep may have come before the run
        head = self.settle()
        if isinstance(cause, MicroBatch) and not is_known:
            check_return(cause, head, self.ledger, on_new_query=self._options.on_new_query)
            self._known_run = run_id
        options = self._options if on_gap is None else replace(self._options, on_gap=on_gap)
        decided = find_decided(cause, head, self.ledger, options)
        if isinstance(cause, BatchWrite) and decided is not None:
            self._see_through(decided)
        elif decided is not None and (head is None or decided.slot > head.record.slot):
            self._head = None  # another driver has decided it since, and may have died
            head = self.settle()
        return head, decided

    def settle(self) -> Head | None:
        """The newest record, once its epoch is complete; ``None`` in an open chain, where none depends on it.

        Publishes and completes what other drivers have decided and not completed.
        """
        if self._head is not None or self.ledger.is_open:
            return self._head
        # An earlier driver, or an epoch of this one that failed, may have left files anywhere.
        self._clean, self._fresh = self._fresh, False
        head = self.ledger.head()
        while head is not None and not head.complete:  # others may go on as soon as one is
            self.carry_through(head.record)
            head = self.ledger.head()
        return head

    def carry_through(self, record: EpochRecord) -> Outcome[C] | None:
        """Publish what an earlier driver has decided; ``None`` if another write has its ``txn_id``."""
        log.info("sink %s: publishing what epoch %d has decided", self.ledger.sink_id, record.slot)
        with self.telling.resumed(record):
            published = self.publisher.publish(record, Decider.EARLIER_DRIVER)
            if published is None:
                return None
            self.telling.complete(record, published, stay=(*self.publisher.failed, *self.publisher.kept))
        return later_outcome(record, published)

    def _see_through(self, decided: EpochRecord) -> None:
        """Make sure that a write which an earlier call has decided, in whatever mode, is visible."""
        home = self.ledger.beside(decided.sink_id)
        if home.history.is_complete(decided):
            return
        if home.sink_id == self.ledger.sink_id:
            self.carry_through(decided)
        elif decided.sink_id == decided_by_earlier_release(decided):
            publisher = Publisher(self._sink, home, self._ports)
            publisher.publish(decided, Decider.EARLIER_DRIVER)
            publisher.close()
        else:
            raise other_mode(decided)

    def continued_by(self, cause: Cause, head: Head | None) -> Head | None:
        """See ``filesink.commit.replay.continued_by``."""
        return continued_by(cause, head, self._options.on_new_query)

    def make_way(self, epoch: Epoch) -> None:
        """Remove what readers see, if ``epoch`` takes its place. What it has left open is swept.

        Raises:
            ConcurrentDriverError: somebody has gone on with this chain, or replaces files as well.
        """
        if not epoch.context.takes_over:
            return

        def check() -> None:
            head = self.ledger.head()
            if next_slot(head) != epoch.context.slot:
                raise overtaken(epoch.context)

        log.info("sink %s: a new query replaces all that the path holds", self.ledger.sink_id)
        self._options.make_way(self._ports, check)

    def forget(self) -> None:
        """Forget what is known of the chain: an epoch begins, or a caller wants a new look."""
        self._head = None

    def begin(
        self,
        head: Head | None,
        cause: Cause,
        *,
        source: Input,
        schema: Section = EMPTY,
        columns: pa.Schema | None = None,
        job: WriteJob | None = None,
    ) -> Epoch:
        """Begin an epoch after ``head``. Until it has succeeded, nothing counts as known of the chain.

        Half-done records are read: a damaged one stops every writer. ``columns`` are those of an input that
        this driver does not run.
        """
        self.forget()
        slots = self.ledger.directory.listing().unfinished() if self.ledger.is_open else ()
        self._stuck = frozenset(slot for slot in slots if self.ledger.read(slot) is not None)
        self._runner = NotedRunner(self._ports.runner)
        context = replace(self._context(head, cause, source), schema=columns)
        if job is not None:
            context = replace(context, schema=job.schema, is_wanted=job.is_wanted)
        offsets = "" if job is None else job.offsets
        return Epoch(head=head, cause=cause, context=context, schema=schema, offsets=offsets)

    def _context(self, head: Head | None, cause: Cause, source: Input) -> EpochContext:
        writer = cause.writer if isinstance(cause, BatchWrite) else ""
        if writer or head is None:
            check_tag(writer or self.ledger.sink_id, self.ledger)
        continued = self.continued_by(cause, head)
        return EpochContext(
            sink_id=writer or self.ledger.sink_id,
            slot=0 if writer else next_slot(head),
            now_ms=self._ports.clock.now_ms(),
            input=source,
            ids=self._ports.ids,
            runner=self._runner,
            waiting=() if continued is None else self.publisher.waiting(continued.record.waiting),
            clock=self._ports.clock,
            mode=cause.mode if isinstance(cause, BatchWrite) else SaveMode.APPEND,
            replaces=replaced_chains(cause, self.ledger),
            supersedes=self._superseded_by(cause),
            left=self.left_by(head),
            takes_over=continued is not head,
        )

    def _superseded_by(self, cause: Cause) -> Sequence[C]:
        """What an earlier write of the same txn_id has committed, if ``cause`` takes its place."""
        if not (isinstance(cause, BatchWrite) and cause.supersedes):
            return ()
        earlier = self.ledger.claims(cause.remembered_in).standing()
        return () if earlier is None else earlier.committables.decode(self._sink.committable_codec)

    def stays_at(self, head: Head | None) -> None:
        """Note that the epoch that began had nothing to do. Does not touch the store."""
        self._head = head

    def advances_to(self, record: EpochRecord) -> None:
        """Note that the epoch of ``record`` is complete. Does not touch the store."""
        head = Head(record=record, complete=True, left=self.publisher.left)
        self._head = None if self.ledger.is_open else head

    def left_by(self, head: Head | None) -> list[C]:
        """What the epoch of ``head`` has left to be removed; the next epoch sees to it."""
        return head.left.decode(self._sink.committable_codec) if head is not None and head.left.data else []

    def failed_before(self, head: Head | None) -> list[C]:
        """What the epoch of ``head`` has tried to remove in vain."""
        decided_ms = 0 if head is None else head.record.decided_ms
        return [one for one in self.left_by(head) if self.publisher.is_due(one, decided_ms)]

    def tidy_up(self, record: EpochRecord, committables: Sequence[C], losers: Losers) -> None:
        """Housekeeping of a complete epoch. A failure costs nothing but space, and is tried again."""
        if self._runner.used:
            losers = Losers.POSSIBLE
        self._see_to_others(record)
        try:
            self.ledger.folding.fold(newest=record.slot, keep=self._options.keep_batches)
            if record.files_of != record.sink_id:  # nobody else has left files with this tag
                if losers is Losers.POSSIBLE:
                    self.telling.swept(self._sink.sweep(record, committables))
                self.ledger.folding.sweep(record.slot)
                self._unstick()
                return
            if not self._clean:
                self.telling.swept(self._sink.sweep(record, None))
                self.ledger.folding.sweep(record.slot)
            elif losers is Losers.POSSIBLE:
                self.telling.swept(self._sink.sweep(record, committables))
            self._clean = True
        except StorageError as error:
            self._clean = False
            log.warning("sink %s: sweeping failed, the next epoch tries again: %s", record.sink_id, error)

    def _see_to_others(self, record: EpochRecord) -> None:
        """Remove what writes of another chain have left others time for; epochs of that chain do it anyway.

        A driver that is made anew for each epoch of a run remembers no time, and looks now and then.
        """
        if self.ledger.sink_id != EXCLUSIVE and not (self._is_of_a_run and record.slot % _LOOK_EVERY):
            self._remove_due(self._ports.clock.now_ms())

    def _unstick(self) -> None:
        """Complete what was half done before and still is. Its driver is dead, or slow: that does no harm."""
        try:
            for record in self.ledger.history.unfinished() if self._stuck else ():
                if record.slot in self._stuck:
                    self.carry_through(record)
        except FilesinkError as error:  # they stay decided, and recover() raises the same
            log.warning(
                "sink %s: epochs of other writes are decided and cannot be published: %s",
                self.ledger.sink_id, error,
            )  # fmt: skip
