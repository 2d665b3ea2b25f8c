"""Rolls a decided epoch forward: commit, announce, complete. May be run again, by anyone.

Rules: nothing here undoes anything. A step that asks for a retry gets it, with growing pauses, as long
as that may help, and then raises: an epoch that could not be committed is never reported as done, and
stays decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from filesink.api import EpochContext, Prepared, Sink, SinkAggregatedCommitter, SinkCommitter
from filesink.errors import CommitFailedError, FilesinkError, InternalError, StagedDataLost, StateError
from filesink.ledger.completion import End
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EMPTY, EpochRecord, Section, TakenBack
from filesink.ledger.transactions import is_valid, remember
from filesink.ports import Ports
from filesink.retry import RETRIES, Backoff

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")
T = TypeVar("T")

log = logging.getLogger("filesink")

_CLEANUP_RETRIES = 2  # of what only has to be removed, while everybody waits


class Decider(Enum):
    """Who has decided the record that is being published."""

    THIS_DRIVER = "this driver"
    EARLIER_DRIVER = "an earlier driver"


class Publisher(Generic[S, C, A]):
    """Publishes the epochs of one sink.

    Args:
        sink: makes the committers, once each.
        ledger: where an epoch is marked complete.
        ports: of the driver; its clock waits between retries.
        visible: called when all files of a record are visible.
        retries: further rounds without progress, for each tier.

    Raises:
        InternalError: ``NO_CODEC``; what the aggregated committer announces could not be put on record.
    """

    def __init__(
        self,
        sink: Sink[S, C, A],
        ledger: Ledger,
        ports: Ports,
        *,
        visible: Callable[[EpochRecord], object] = lambda _: None,
        retries: int = RETRIES,
    ) -> None:
        self._sink = sink
        self._ledger = ledger
        self._clock = ports.clock
        self._visible = visible
        self._retries = retries
        #: What of the record published last is left for the next epoch.
        self.left = EMPTY
        #: The part of it that could not be removed, and the part that is not due yet.
        self.failed: list[C] = []
        self.kept: list[C] = []
        self._committer = sink.create_committer()
        self._aggregated = sink.create_aggregated_committer()
        self._inventory = sink.open_inventory(ports)
        if self._aggregated is not None and sink.aggregated_codec is None:
            raise InternalError(
                f"{type(sink).__name__} has an aggregated committer but no aggregated_codec", code="NO_CODEC"
            )

    def waiting(self, section: Section) -> Sequence[A]:
        """What the aggregated committer had put off, from its section of the last record."""
        codec = self._sink.aggregated_codec
        return section.decode(codec) if codec and section.data else ()

    def combine(
        self, epoch: EpochContext, prepared: Prepared[S, C], kept: Section
    ) -> tuple[Section, Section]:
        """What is announced with this epoch, and what waits. Called before *decide*.

        ``kept`` is what waited so far; a sink that announces nothing (any more) keeps it as it is.
        """
        codec = self._sink.aggregated_codec
        if self._aggregated is None or codec is None:
            return EMPTY, kept
        found = self._aggregated.combine(epoch, prepared)
        now, later = (Section.of(codec, values) if values else EMPTY for values in (found.now, found.later))
        return now, later

    def publish(self, record: EpochRecord, decider: Decider) -> list[C] | None:
        """Publish ``record`` and complete its epoch; return what was committed.

        ``None`` if another write has its ``txn_id``: then its files are discarded. What could not be
        removed is in ``left``, and in the completion, for the next epoch.

        Raises:
            CommitFailedError: retries were used up.
            FilesinkError: what a committer raised. In both cases the epoch stays decided.
        """
        self.left, self.failed, self.kept = EMPTY, [], []
        committables = record.committables.decode(self._sink.committable_codec)
        if not is_valid(record, self._ledger):
            self.discard(committables, record.announcement)
            if self._inventory is not None:
                self._inventory.begin()
            self._ledger.complete(record, left=self._ledger.history.left_before(record.slot))
            return None
        if decider is Decider.EARLIER_DRIVER:
            self._committer.restore()
        try:
            self._carry_out(record, committables, decider)
        except StagedDataLost:
            # Another driver may have done all of it, and what it published been replaced since.
            if not self._ledger.history.is_complete(record):
                raise
            self.left = self._ledger.history.left_before(record.slot + 1)
        return committables

    def _carry_out(self, record: EpochRecord, committables: list[C], decider: Decider) -> None:
        due, later = self.due(committables)
        kept = self._until_done(
            self._committer, self._committer.commit, due, record.slot, may_wait=self._committer.may_wait
        )
        if kept:
            log.warning(
                "sink %s: %d files that are replaced could not be removed; later epochs try again: %s",
                record.sink_id, len(kept), self._committer.failure,
            )  # fmt: skip
        self._visible(record)
        self.announce(record, decider)
        self.end(record, committables, failed=kept, later=later)
        self._end_of_what_it_takes_back(record)

    def due(self, committables: Sequence[C]) -> tuple[list[C], list[C]]:
        """Those that are to be carried out now, and those that are for later epochs."""
        due: list[C] = []
        later: list[C] = []
        now_ms = self._clock.now_ms()
        for one in committables:
            (due if self._committer.is_due(one, now_ms) else later).append(one)
        return due, later

    def is_due(self, committable: C, now_ms: int) -> bool:
        """See ``SinkCommitter.is_due``."""
        return self._committer.is_due(committable, now_ms)

    def end(
        self,
        record: EpochRecord,
        committables: Sequence[C],
        *,
        failed: Sequence[C] = (),
        later: Sequence[C] = (),
    ) -> None:
        """The end of ``publish``, when everything of the epoch is visible and announced: note and complete.

        Args:
            record: of the epoch.
            committables: those that took effect; all but what was given up.
            failed: those that are still to be removed, though they are due.
            later: those that are not due.
        """
        remember(record, self._ledger)
        if self._inventory is not None:
            self._inventory.note(record, committables)
        now_ms = self._clock.now_ms()  # until now a reader may have begun with the version before
        self.failed, self.kept = list(failed), [self._committer.dated(one, now_ms) for one in later]
        left = EMPTY
        if self.failed or self.kept:
            left = Section.of(self._sink.committable_codec, [*self.failed, *self.kept])
        self._complete(record, left)

    def _complete(self, record: EpochRecord, left: Section) -> None:
        """Complete ``record``. If another driver was quicker, what it says is left is what is left."""
        created = self._ledger.complete(record, left=left)
        self.left = left if created or not left.data else self._ledger.history.left_before(record.slot + 1)

    def newest_version(self) -> int:
        """The newest version of the inventory, for the record of the epoch to be decided; 0 without one."""
        return 0 if self._inventory is None else self._inventory.newest()

    def _end_of_what_it_takes_back(self, record: EpochRecord) -> None:
        """Complete the slot of the record that is taken back; in an open chain no later epoch would."""
        if self._ledger.is_open and isinstance(record.cause, TakenBack):
            undone = self._ledger.read(record.cause.slot)
            if undone is not None:
                self._ledger.complete(undone, end=End.TAKEN_BACK)

    def announce(self, record: EpochRecord, decider: Decider) -> None:
        """The part of ``publish`` between the files and the completion."""
        codec = self._sink.aggregated_codec
        if not record.announcement.data:
            return
        if self._aggregated is None or codec is None:
            raise StateError(
                f"epoch {record.slot} of sink '{record.sink_id}' announces partitions, and this sink is "
                "built without partition commit: they would stay unannounced. Its files are visible; call "
                "recover() on a sink that is built as the one that wrote it, or recover(announce='skip')",
                code="PARTITION_COMMIT_OFF",
            )
        commit = self._aggregated.commit
        if decider is Decider.EARLIER_DRIVER:
            commit = self._aggregated.restore_commit
        self._until_done(self._aggregated, commit, record.announcement.decode(codec), record.slot)

    def discard(self, committables: Sequence[C], announcement: Section = EMPTY) -> None:
        """Discard what tasks have reported and what was combined, for an epoch that was not decided."""
        self._committer.abort(committables)
        codec = self._sink.aggregated_codec
        if self._aggregated is not None and codec is not None and announcement.data:
            self._aggregated.abort(announcement.decode(codec))

    def close(self) -> None:
        """Release what the committers hold."""
        if self._aggregated is not None:
            self._aggregated.close()

    def _until_done(
        self,
        committer: SinkCommitter[Any] | SinkAggregatedCommitter[Any, Any],
        commit: Callable[[Sequence[T]], list[T]],
        values: list[T],
        slot: int,
        *,
        may_wait: Callable[[T], bool] = lambda _: False,
    ) -> list[T]:
        """Commit ``values`` with retries; return what is left and ``may_wait``."""
        patience: Backoff | None = None
        left = commit(values) if values else []
        while left:
            first, can_wait = committer.failure, all(map(may_wait, left))
            retries = min(_CLEANUP_RETRIES, self._retries) if can_wait else self._retries
            patience = patience or Backoff(self._clock, retries=retries)
            if _is_permanent(first) or not patience.wait():
                if can_wait:
                    return left
                raise _gave_up(slot, left, values, first) from first
            before = len(left)
            left = commit(left)
            if len(left) < before:
                patience = None
        return left


def _is_permanent(error: Exception | None) -> bool:
    return isinstance(error, FilesinkError) and error.is_permanent


def _gave_up(slot: int, left: Sequence[T], values: Sequence[T], first: Exception | None) -> CommitFailedError:
    code = "PERMANENT" if _is_permanent(first) else "RETRIES"
    tried = "and trying again did not help" if code == "RETRIES" else "and trying again cannot help"
    reason = "The log says why" if first is None else f"The first failed with {type(first).__name__} {first}"
    return CommitFailedError(
        f"epoch {slot}: {len(left)} of {len(values)} pieces could not be committed, {tried}; the epoch stays "
        f"decided and nothing was undone. {reason}. Once that is fixed, restart the query or call recover()",
        code=code,
    )
