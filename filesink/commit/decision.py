"""The record of an epoch: how it is made, and how it gets into the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from filesink.api import EpochContext, PreCommitStage, Prepared, Sink
from filesink.commit.chain import Chain
from filesink.commit.task import encode_states
from filesink.commit.task_results import Gathered
from filesink.ledger.head import Head
from filesink.ledger.identity import queries_of
from filesink.ledger.open_chain import append
from filesink.ledger.record import EMPTY, BatchWrite, Cause, EpochRecord, MicroBatch, Section

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


class Decision(Generic[S, C, A]):
    """Makes the records of one sink, and has them decided.

    Args:
        sink: whose committables and states go on record.
        chain: where a record goes.
        stages: run before a record is made, in their order.
    """

    def __init__(
        self, sink: Sink[S, C, A], chain: Chain[S, C, A], stages: Sequence[PreCommitStage[S, C]]
    ) -> None:
        self._sink = sink
        self._chain = chain
        self._stages = stages

    def record(
        self, epoch: EpochContext, head: Head | None, cause: Cause, gathered: Gathered[S, C], schema: Section
    ) -> EpochRecord:
        """What the tasks have gathered, after all stages, as the record that may follow ``head``."""
        prepared = gathered.prepared
        for stage in self._stages:
            prepared = stage.prepare(epoch, prepared)
        kept = EMPTY if head is None else head.record.waiting
        announcement, waiting = self._chain.publisher.combine(epoch, prepared, kept)
        states = {subtask: encode_states(self._sink, values) for subtask, values in prepared.states.items()}
        last = None if head is None else head.record.last_batch
        return EpochRecord(
            slot=next_slot(head),
            nonce=epoch.ids.uuid(),
            sink_id=self._chain.ledger.sink_id,
            cause=cause,
            last_batch=cause if isinstance(cause, MicroBatch) else last,
            decided_ms=epoch.now_ms,
            rows=gathered.rows,
            committables=self._committables(prepared, head),
            announcement=announcement,
            waiting=waiting,
            schema=schema,
            states={subtask: section for subtask, section in states.items() if section.data},
            replaces=epoch.replaces,
            queries=queries_of(cause, head, self._chain.ledger),
            digest=gathered.digest,
        )

    def decide(
        self, epoch: EpochContext, record: EpochRecord, head: Head | None
    ) -> tuple[EpochRecord, EpochRecord]:
        """Create ``record``, made to follow ``head``: the point of no return.

        A batch write whose slot is taken goes on to the next one, with its files at hand: they are its own.

        Returns:
            The record as it was tried last, and what stands in its slot; the same nonce if it was won.
        """
        ledger, carried = self._chain.ledger, self._chain.left_by(head)
        if ledger.is_open:
            placed = append(record, ledger)
            return placed, placed
        while True:
            standing = ledger.decide(record)
            writes = isinstance(record.cause, BatchWrite) and record.cause.writer
            if standing.nonce == record.nonce or not writes:
                return record, standing
            newest = self._chain.settle()  # another driver's epoch, and those after it
            taken = self._taken(standing, newest)
            if newest is None or taken is None:
                return record, standing
            record = self._again(epoch, newest, record, taken, carried)
            carried = [*carried, *self._chain.left_by(newest)]

    def _taken(self, standing: EpochRecord, newest: Head | None) -> list[EpochRecord] | None:
        """The records from ``standing`` to ``newest``; ``None`` if some are folded away meanwhile."""
        if newest is None or newest.record.slot < standing.slot:
            return None
        taken = [standing]
        for slot in range(standing.slot + 1, newest.record.slot + 1):
            found = self._chain.ledger.read(slot)
            if found is None:
                return None
            taken.append(found)
        return taken

    def _again(
        self,
        epoch: EpochContext,
        head: Head,
        record: EpochRecord,
        taken: Sequence[EpochRecord],
        carried: Sequence[C],
    ) -> EpochRecord:
        """``record`` as it may follow ``head``, although ``taken`` came before it; raises if it may not.

        ``carried`` is what earlier epochs have left, and whoever comes next has to remove.
        """
        prepared = self._beside(epoch, record, taken, carried)
        publisher = self._chain.publisher
        waiting = publisher.waiting(head.record.waiting)
        announcement, later = publisher.combine(
            replace(epoch, waiting=waiting), prepared, head.record.waiting
        )
        return replace(
            record,
            slot=next_slot(head),
            committables=self._committables(prepared, head),
            announcement=announcement,
            waiting=later,
            queries=queries_of(record.cause, head, self._chain.ledger),
        )

    def _beside(
        self, epoch: EpochContext, record: EpochRecord, taken: Sequence[EpochRecord], carried: Sequence[C]
    ) -> Prepared[S, C]:
        """What ``record`` commits, as the stages let it stand beside what ``taken`` has committed."""
        codec = self._sink.committable_codec
        # What is carried is nobody's own: two that both have it need not be in each other's way.
        ours, *others = (
            [one for one in found.committables.decode(codec) if one not in carried]
            for found in (record, *taken)
        )
        prepared: Prepared[S, C] = Prepared(ours, {})
        for stage in self._stages:
            prepared = stage.follow(epoch, prepared, others)
        return prepared

    def _committables(self, prepared: Prepared[S, C], head: Head | None) -> Section:
        """Those of an epoch that follows ``head``, which may have left some to be removed."""
        codec = self._sink.committable_codec
        return Section.of(codec, [*prepared.committables, *self._chain.left_by(head)])


def next_slot(head: Head | None) -> int:
    """The slot after the newest record; 0 in a new chain."""
    return 0 if head is None else head.record.slot + 1
