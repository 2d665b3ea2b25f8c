"""The record of an epoch: how it is made, how it gets into the ledger, and what happens if it does not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from filesink.api import EpochContext, PreCommitStage, Prepared, Sink
from filesink.commit.chain import Chain, Epoch
from filesink.commit.replay import overtaken
from filesink.commit.task import encode_states
from filesink.commit.task_results import Gathered
from filesink.errors import ConcurrentDriverError, FilesinkError, StorageError
from filesink.ledger.head import Head, next_slot
from filesink.ledger.identity import queries_of
from filesink.ledger.open_chain import append
from filesink.ledger.record import EMPTY, BatchWrite, EpochRecord, MicroBatch, Section

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")

log = logging.getLogger("filesink")


class Decision(Generic[S, C, A]):
    """Makes the records of one sink and puts them into the ledger.

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

    def record(self, epoch: Epoch, gathered: Gathered[S, C]) -> EpochRecord:
        """What the tasks have gathered, after all stages, as the record that may follow the epoch's head."""
        head, context, prepared = epoch.head, epoch.context, gathered.prepared
        for stage in self._stages:
            prepared = stage.prepare(context, prepared)
        kept = EMPTY if epoch.continued is None else epoch.continued.record.waiting
        announcement, waiting = self._chain.publisher.combine(context, prepared, kept)
        states = {subtask: encode_states(self._sink, values) for subtask, values in prepared.states.items()}
        return EpochRecord(
            slot=next_slot(head),
            nonce=context.ids.uuid(),
            sink_id=self._chain.ledger.sink_id,
            cause=epoch.cause,
            last_batch=_last_batch(epoch),
            decided_ms=context.now_ms,
            rows=gathered.rows,
            committables=self._committables(prepared, head),
            announcement=announcement,
            waiting=waiting,
            schema=epoch.schema,
            states={subtask: section for subtask, section in states.items() if section.data},
            replaces=context.replaces,
            queries=queries_of(epoch.cause, head, self._chain.ledger),
            digest=gathered.digest,
            offsets=epoch.offsets,
            after_version=self._chain.publisher.newest_version(),
        )

    def decide(self, epoch: Epoch, record: EpochRecord) -> tuple[EpochRecord, EpochRecord]:
        """Create ``record``, made to follow the epoch's head: the point of no return.

        A batch write whose slot is taken tries the next one with the same files, which belong to no slot.

        Returns:
            The record as it was tried last, and the record in its slot. Equal nonces: this driver won.
        """
        ledger, carried = self._chain.ledger, self._chain.left_by(epoch.head)
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
            record = self._again(epoch.context, newest, record, taken, carried)
            carried = [*carried, *self._chain.left_by(newest)]

    def raise_if_overtaken(self, epoch: EpochContext, error: Exception) -> bool:
        """Raise if another driver has taken the slot: then ``error`` may be its doing.

        Returns:
            Whether the slot is free for sure. A batch write has no slot of its own, so nobody can take it.
        """
        ledger = self._chain.ledger
        if epoch.sink_id != ledger.sink_id:
            return True
        try:
            taken = ledger.read(epoch.slot) is not None or ledger.history.has_folded(epoch.slot)
        except FilesinkError as unreadable:
            error.add_note(f"the ledger could not be read either: {unreadable}")
            return False
        if taken and not isinstance(error, ConcurrentDriverError):
            raise overtaken(epoch) from error
        return not taken

    def discard(self, gathered: Gathered[S, C], record: EpochRecord | None) -> None:
        """Remove what an undecided epoch has prepared. What cannot be removed is swept later."""
        try:
            self._chain.publisher.discard(gathered.reported, EMPTY if record is None else record.announcement)
        except StorageError as error:
            log.warning("sink %s: discarding failed: %s", self._chain.ledger.sink_id, error)

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

        ``carried`` is what earlier epochs could not remove: the next epoch, whichever it is, has to.
        """
        publisher = self._chain.publisher
        waiting = publisher.waiting(head.record.waiting)
        following = replace(epoch, waiting=waiting, left=self._chain.left_by(head))
        prepared = self._beside(following, record, taken, carried)
        announcement, later = publisher.combine(following, prepared, head.record.waiting)
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
        """What ``record`` commits, after the stages have adapted it to what ``taken`` has committed."""
        codec = self._sink.committable_codec
        # What is carried along belongs to neither, so it is no conflict if both records have it. It is told
        # by its bytes: with a grace there may be thousands, and not every sink can hash its committables.
        known = {codec.encode([one]) for one in carried}
        ours, *others = (
            [one for one in found.committables.decode(codec) if not known or codec.encode([one]) not in known]
            for found in (record, *taken)
        )
        prepared: Prepared[S, C] = Prepared(ours, {})
        for stage in self._stages:
            prepared = stage.follow(epoch, prepared, others)
        return prepared

    def _committables(self, prepared: Prepared[S, C], head: Head | None) -> Section:
        """The committables of an epoch that follows ``head``, and what ``head`` has left to be removed."""
        codec = self._sink.committable_codec
        return Section.of(codec, [*prepared.committables, *self._chain.left_by(head)])


def _last_batch(epoch: Epoch) -> MicroBatch | None:
    if isinstance(epoch.cause, MicroBatch):
        return epoch.cause
    return None if epoch.head is None else epoch.head.record.last_batch
