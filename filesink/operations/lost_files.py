"""Completes epochs without decided bytes that are gone: the user has given up these rows, and no others.

Rules:
1. Only what is gone is given up. Everything else of the epoch is published and announced as it was decided.
2. First the loss is made durable. Otherwise a power cut may give the file back when the epoch has its version
   and is not complete; the next driver would publish it, and no version would name it.
3. A file that one of the lost files was to replace stays: its rows are in no other file.
4. Nothing is given up unless the user says so, ``recover(lost="accept")``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from filesink.commit.outcome import Outcome
from filesink.commit.publisher import Decider, Publisher
from filesink.commit.task import encode_states
from filesink.commit.task_results import states_of
from filesink.errors import StorageError
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EMPTY, RECORD_VERSION, EpochRecord, Section, Upkeep
from filesink.metastore.announcements import Announcement
from filesink.metastore.skipping_committer import refused
from filesink.naming import parent
from filesink.operations.retraction import replaced_and_gone, taken_over_by
from filesink.operations.sink_ledgers import go_on_with
from filesink.parts.committables import (
    Committable,
    HeldFile,
    PendingFile,
    ReplacedFile,
    SupersededFile,
)
from filesink.parts.stages.open_parts import Part, parts_of

if TYPE_CHECKING:
    from filesink.file_sink.tiers import FileTiers
    from filesink.ports import Ports
    from filesink.storage.api import Store


class GivingUp:
    """Gives up the lost files of one sink's epochs.

    Args:
        tiers: the sink.
        store: where its files are.
        ports: of the driver that completes the epochs.
    """

    def __init__(self, tiers: FileTiers, store: Store, ports: Ports) -> None:
        self._tiers = tiers
        self._store = store
        self._ports = ports

    def publish_the_rest(self, ledger: Ledger, record: EpochRecord) -> tuple[Outcome[Committable], int]:
        """Publish what is left of an epoch that is decided and not complete; and the rows given up."""
        committer = self._tiers.create_committer()
        codec = self._tiers.committable_codec
        committables = record.committables.decode(codec)
        lost = [file for file in committables if isinstance(file, PendingFile) and self._is_lost(file)]
        for directory in sorted({parent(file.staged.path) for file in lost}):
            self._make_removals_durable(directory)
        given_up = {file.target for file in lost}
        stay = self._still_needed(ledger, record, given_up)
        unnamed = [*lost, *stay, *_not_superseded(committables, given_up)]
        there = [file for file in committables if file not in unnamed]
        publisher = Publisher(self._tiers, ledger, self._ports)
        due, later = publisher.due(there)
        left = committer.commit(due)
        if not all(map(committer.may_wait, left)):
            raise StorageError(
                f"{len(left)} files could not be published; call recover() again", code="RETRY"
            )
        publisher.announce(record, Decider.EARLIER_DRIVER)
        publisher.end(record, there, failed=left, later=later)
        publisher.close()
        outcome = Outcome(
            slot=record.slot, cause=record.cause, rows=record.rows, committables=there, replayed=True
        )
        unmerged = _unmerged(committables, gone=replaced_and_gone(self._store, committables))
        return outcome, sum(file.rows for file in lost if file.target not in unmerged)

    def lost_held(self, record: EpochRecord) -> list[HeldFile]:
        """Files of open parts in the state of ``record`` that are gone, or cannot be read without one."""
        states = states_of(self._tiers, record.states)
        return [
            held for values in states.values() for part in parts_of(values) for held in self._unreadable(part)
        ]

    def forget_held(self, ledger: Ledger, record: EpochRecord, gone: Collection[HeldFile]) -> None:
        """Decide a new epoch after ``record``, without the files ``gone`` in its state.

        Raises:
            ConcurrentDriverError: a query is writing to the chain.
        """
        states = states_of(self._tiers, record.states)
        kept = {subtask: [held for held in values if held not in gone] for subtask, values in states.items()}
        self._go_on_with(ledger, record, kept)

    def forget_waiting(self, ledger: Ledger, record: EpochRecord) -> list[str]:
        """Decide a new epoch after ``record``, without waiting partitions that cannot be announced.

        Returns:
            The directories of these partitions.

        Raises:
            ConcurrentDriverError: a query is writing to the chain.
        """
        committer, codec = self._tiers.partition_committer(), self._tiers.aggregated_codec
        if committer is None or not record.waiting.data:
            return []
        waiting = record.waiting.decode(codec)
        with closing(committer):
            gone = refused(committer, [one for one in waiting if isinstance(one, Announcement)])
        if gone:
            kept = [one for one in waiting if one not in gone]
            following = replace(record, waiting=Section.of(codec, kept) if kept else EMPTY)
            self._go_on_with(ledger, following, states_of(self._tiers, record.states))
        return [one.bucket for one in gone]

    def _still_needed(
        self, ledger: Ledger, record: EpochRecord, given_up: Collection[str]
    ) -> list[ReplacedFile]:
        """What ``record`` was to replace, and whose rows would then be nowhere.

        What it has only taken over has its rows where epochs before have put them.
        """
        needed = _still_needed(record.committables.decode(self._tiers.committable_codec), given_up)
        taken_over = taken_over_by(record, ledger)
        return [file for file in needed if file.identity() not in taken_over]

    def _unreadable(self, part: Part) -> list[HeldFile]:
        """Segments that are gone; all of the part if the header was in one of these."""
        gone = [held for held in part if self._store.is_gone(held.staged)]
        return list(part) if any(held.header_size for held in gone) else gone

    def _go_on_with(
        self, ledger: Ledger, record: EpochRecord, states: Mapping[int, Sequence[HeldFile]]
    ) -> None:
        sections = {subtask: encode_states(self._tiers, values) for subtask, values in states.items()}
        following = replace(
            record,
            slot=record.slot + 1,
            nonce=self._ports.ids.uuid(),
            cause=Upkeep(),
            decided_ms=self._ports.clock.now_ms(),
            rows=0,
            committables=Section.of(self._tiers.committable_codec, []),
            announcement=EMPTY,
            offsets="",
            version=RECORD_VERSION,
            states={subtask: section for subtask, section in sections.items() if section.data},
        )
        go_on_with(following, ledger)
        publisher = Publisher(self._tiers, ledger, self._ports)
        left = ledger.history.left_before(following.slot)
        codec = self._tiers.committable_codec
        publisher.end(following, [], later=left.decode(codec) if left.data else ())
        publisher.close()

    def _make_removals_durable(self, directory: str) -> None:
        """If the directory is gone, too, so is its name in the one above."""
        try:
            self._store.sync_directories([directory])
        except StorageError as error:
            if error.code != "NOT_FOUND" or not directory:
                raise
            self._make_removals_durable(parent(directory))

    def _is_lost(self, file: PendingFile) -> bool:
        return self._store.is_lost(file.staged, file.target)


def _still_needed(committables: Sequence[Committable], given_up: Collection[str]) -> list[ReplacedFile]:
    """Files that were to be removed, and whose rows would then be nowhere.

    An overwrite replaces all old files by all new ones. Of a merged file it is known which new file has
    its rows.
    """
    holders = _holders(committables)
    return [
        file
        for file in committables
        if isinstance(file, ReplacedFile) and given_up and holders.get(file.path, set()) <= set(given_up)
    ]


def _not_superseded(committables: Sequence[Committable], given_up: Collection[str]) -> list[SupersededFile]:
    """Files that were merged into nothing but what is given up: versions go on to have them."""
    holders = _holders(committables)
    merged = [file for file in committables if isinstance(file, SupersededFile)]
    return [file for file in merged if holders[file.path] <= set(given_up)]


def _unmerged(committables: Sequence[Committable], *, gone: Collection[str]) -> set[str]:
    """Targets of merged files all of whose inputs are still there."""
    inputs: dict[str, list[str]] = {}
    for path, targets in _holders(committables).items():
        for target in targets:
            inputs.setdefault(target, []).append(path)
    return {target for target, paths in inputs.items() if not set(paths) & set(gone)}


def _holders(committables: Iterable[Committable]) -> dict[str, set[str]]:
    """For each file that was merged, the files that hold its rows."""
    holders: dict[str, set[str]] = {}
    for file in committables:
        if isinstance(file, SupersededFile):
            holders.setdefault(file.path, set()).add(file.by)
    return holders
