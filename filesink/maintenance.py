"""Recovery and sweeping of file sinks, by hand: for operators, with no query running and no Spark.

A restart does the same by itself for its own sink. Here every ledger below the base path is looked
at, or that of the sink's uid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from enum import Enum

from filesink.closing import Part, parts_of
from filesink.committables import (
    CODEC_VERSION,
    Committable,
    DiscardFile,
    HeldFile,
    PendingFile,
    ReplacedFile,
    SupersededFile,
)
from filesink.epoch import EpochLoop, Outcome
from filesink.epoch_record import EMPTY, BatchWrite, EpochRecord, Finish, MicroBatch, Section, Upkeep
from filesink.errors import ConcurrentDriverError, ConfigError, IdentityError, StagedDataLost, StorageError
from filesink.file_tiers import FileTiers, chain_of
from filesink.gathering import states_of
from filesink.identity import EXCLUSIVE, OF_STREAMS, batch_sink_id, stream_sink_id
from filesink.ledger import Ledger, ledger_ids
from filesink.metastore.announcements import Announced
from filesink.naming import join, parent, parse_ours, sink_tag
from filesink.ports import Clock, Ids, Ports, SerialRunner
from filesink.publisher import Decider, Publisher
from filesink.replay import EpochOptions
from filesink.report import EpochReport, RecoveryReport, SweepPlan, report_of
from filesink.storage.api import Store
from filesink.storage.open import open_store
from filesink.storage.staged import HiddenFile
from filesink.sweep import Chain, Hidden, Leftover, hidden_files, leftovers
from filesink.task import encode_states
from filesink.transactions import forget, remember


class Lost(Enum):
    """What to do with an epoch whose decided bytes are gone."""

    RAISE = "raise"
    REWRITE = "rewrite"
    ACCEPT = "accept"


class Maintenance:
    """Recovers and sweeps what is below one base path.

    Args:
        tiers: the sink.
        clock: tells which chains have not moved for long.
        ids: needed by the committers' ports.
    """

    def __init__(self, tiers: FileTiers, *, clock: Clock, ids: Ids) -> None:
        self._tiers = tiers
        self._store = tiers.address()
        self._ports = Ports(clock=clock, ids=ids, runner=SerialRunner())

    def recover(self, lost: Lost, checkpoint: str | None) -> RecoveryReport:
        """See ``FileSink.recover``."""
        published: list[EpochReport] = []
        retracted: list[int] = []
        given_up = 0
        for ledger in self._ledgers():
            if not self._may_be_ours(ledger.sink_id):
                continue  # whatever is wrong with it
            head = ledger.head()
            if head is None or not self._is_ours(head.record):
                continue
            if head.complete:
                given_up += self._give_up_held(ledger, head.record, lost)
                continue
            try:
                with closing(self._loop(ledger)) as loop:
                    outcome = loop.recover()
            except StagedDataLost:
                if lost is Lost.RAISE:
                    raise
                if lost is Lost.REWRITE or self._comes_again(ledger, head.record):
                    retracted.append(self._retract(ledger, head.record, checkpoint))
                    if lost is Lost.ACCEPT:
                        given_up += self._give_up_before(ledger, head.record, lost)
                    continue
                outcome, rows = self._accept(ledger, head.record)
                given_up += rows
            if outcome is not None:
                published.append(report_of(outcome))
        swept = len(self._remove(self._dead(None)))
        return RecoveryReport(
            published=tuple(published), retracted=tuple(retracted), lost_rows=given_up, swept=swept
        )

    def plan_sweep(self, older_than_ms: int) -> SweepPlan:
        """See ``FileSink.plan_sweep``."""
        return SweepPlan(files=tuple(self._dead(older_than_ms)))

    def sweep(self, older_than_ms: int) -> SweepPlan:
        """See ``FileSink.sweep``."""
        return SweepPlan(files=self._remove(self._dead(older_than_ms)))

    def _dead(self, older_than_ms: int | None) -> Iterator[Leftover]:
        """Each chain is read after the files were seen, and just before its own are judged.

        So whoever removes one at a time takes none away that a driver has decided on meanwhile.
        """
        oldest = None if older_than_ms is None else self._ports.clock.now_ms() - older_than_ms
        seen: dict[str, list[Hidden]] = {}
        for file in hidden_files(self._store):
            seen.setdefault(file.tag, []).append(file)
        for ledger in self._ledgers():
            files = [*seen.pop(sink_tag(ledger.sink_id), ()), *_unfinished(ledger)]
            if files:
                yield from leftovers(self._chain(ledger, oldest), files)
        for file in (file for files in seen.values() for file in files):
            if oldest is not None and file.mtime_ms < oldest:
                yield Leftover(path=file.path, size=file.size, reason="its sink has no ledger here")

    def _chain(self, ledger: Ledger, oldest: int | None) -> Chain:
        head = ledger.head()
        if head is None:  # what its first epoch left, if that was never decided
            return Chain(sink_id=ledger.sink_id, complete_slot=-1, named=frozenset(), stale_before_ms=oldest)
        chain = chain_of(head.record)
        if not head.complete:  # what it names is still to be published: nothing of it is dead
            return replace(chain, complete_slot=head.record.slot - 1, named=_named(self._tiers, head.record))
        is_stale = oldest is not None and head.record.decided_ms < oldest
        return replace(chain, stale_before_ms=oldest if is_stale else None)

    def _remove(self, dead: Iterable[Leftover]) -> tuple[Leftover, ...]:
        removed = []
        for leftover in dead:
            self._store.discard(leftover.path)
            removed.append(leftover)
        return tuple(removed)

    def _may_be_ours(self, sink_id: str) -> bool:
        """As ``_is_ours``, by the name of the chain alone."""
        uid = self._tiers.uid
        return uid is None or sink_id == stream_sink_id(uid, "") or not sink_id.startswith(OF_STREAMS)

    def _is_ours(self, record: EpochRecord) -> bool:
        """Whether the chain of ``record`` is one of this sink's; without a uid all are."""
        uid, cause = self._tiers.uid, record.cause
        if uid is None or record.sink_id == EXCLUSIVE:
            return True
        txn_id = cause.txn_id if isinstance(cause, BatchWrite) else ""
        return record.sink_id == batch_sink_id(uid, txn_id, self._ports.ids)

    def _ledgers(self) -> list[Ledger]:
        return [self._tiers.open_ledger(sink_id) for sink_id in ledger_ids(self._store)]

    def _loop(self, ledger: Ledger) -> EpochLoop[HeldFile, Committable, Announced]:
        return EpochLoop(self._tiers, ledger, ports=self._ports, options=EpochOptions())

    def _comes_again(self, ledger: Ledger, record: EpochRecord) -> bool:
        """Whether the epoch had no input and can be taken back: its rows are held, for a later one."""
        return isinstance(record.cause, Upkeep | Finish) and not self._removed(ledger, record)

    def _give_up_before(self, ledger: Ledger, record: EpochRecord, lost: Lost) -> int:
        """As ``_give_up_held``, of the state that holds again since ``record`` was taken back."""
        before = ledger.read(record.slot - 1)
        return 0 if before is None else self._give_up_held(ledger, before, lost)

    def _accept(self, ledger: Ledger, record: EpochRecord) -> tuple[Outcome[Committable], int]:
        """Publish what is left of an epoch; the rest is given up by the user's own word.

        What was to be removed for the sake of a file that is gone stays.
        """
        committer = self._tiers.create_committer()
        committables = _committables(self._tiers, record)
        lost = [file for file in committables if isinstance(file, PendingFile) and self._is_lost(file)]
        given_up = {file.target for file in lost}
        stay = _still_needed(committables, given_up)
        there = [file for file in committables if file not in lost and file not in stay]
        left = committer.commit(there)
        if left:
            raise StorageError(
                f"{len(left)} files could not be published; call recover() again", code="RETRY"
            )
        publisher = Publisher(self._tiers, ledger, self._ports.clock)
        publisher.announce(record, Decider.EARLIER_DRIVER)
        publisher.close()
        remember(record, ledger)
        ledger.complete(record.slot)
        outcome = Outcome(
            slot=record.slot, cause=record.cause, rows=record.rows, committables=there, replayed=True
        )
        unmerged = _unmerged(committables, gone=self._gone(committables))
        return outcome, sum(file.rows for file in lost if file.target not in unmerged)

    def _give_up_held(self, ledger: Ledger, record: EpochRecord, lost: Lost) -> int:
        """Rows of open parts whose bytes are gone, taken out of the state by the user's own word."""
        states = states_of(self._tiers, record.states)
        parts = [part for values in states.values() for part in parts_of(values)]
        gone = [held for part in parts for held in self._unreadable(part)]
        if not gone:
            return 0
        rows = sum(held.rows for held in gone)
        if lost is not Lost.ACCEPT:
            raise StagedDataLost(
                f"sink '{record.sink_id}': {len(gone)} held files of {rows} rows are gone, or "
                f"unreadable without a header that is, such as '{gone[0].staged.path}'. Restore them, or "
                "give these rows up with lost='accept'",
                code="HELD_LOST",
            )
        kept = {subtask: [held for held in values if held not in gone] for subtask, values in states.items()}
        self._go_on_with(ledger, record, kept)
        return rows

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
            committables=Section(CODEC_VERSION, self._tiers.committable_codec.encode([])),
            announcement=EMPTY,
            states={subtask: section for subtask, section in sections.items() if section.data},
        )
        if ledger.decide(following).nonce != following.nonce:
            raise ConcurrentDriverError(
                f"a query of sink '{record.sink_id}' is running; stop it before recover()",
                code="CONCURRENT_DRIVER",
            )
        ledger.complete(following.slot)

    def _is_lost(self, file: PendingFile) -> bool:
        return self._store.is_lost(file.staged, file.target)

    def _retract(self, ledger: Ledger, record: EpochRecord, checkpoint: str | None) -> int:
        """Take back an epoch: first what it has published, last its record, so that it can be repeated."""
        if isinstance(record.cause, MicroBatch):
            self._check_replay(record.cause, checkpoint)
        committables = _committables(self._tiers, record)
        self._check_removed(ledger, record)
        files = [file for file in committables if isinstance(file, PendingFile)]
        published = [file for file in files if self._store.is_published(file.staged, file.target)]
        directories = sorted({parent(file.target) for file in files})
        for file in published:
            self._hide_again(file, record.slot)
        self._store.sync_directories(directories)
        for file in published:
            self._store.delete(file.target)
        # Else a power cut could bring back files whose record is gone.
        self._store.sync_directories(directories)
        forget(record, ledger)
        ledger.retract(record.slot)
        return record.slot

    def _check_removed(self, ledger: Ledger, record: EpochRecord) -> None:
        """Raise if rows of earlier epochs may be nowhere but in files that taking back removes."""
        if gone := self._removed(ledger, record):
            raise IdentityError(
                f"epoch {record.slot} has begun to remove what its files replace ('{gone[0]}' is gone): rows "
                "of earlier epochs may be in its files only, so it cannot be taken back, and nothing was. "
                "Restore the lost files, or use lost='accept', which gives up their rows alone. An overwrite "
                "is to be written again after that",
                code="NO_REPLAY",
            )

    def _removed(self, ledger: Ledger, record: EpochRecord) -> list[str]:
        """Files of earlier epochs that are gone, and whose rows may be in a file of this epoch."""
        committables = _committables(self._tiers, record)
        discards = {file.path for file in committables if isinstance(file, DiscardFile)}
        files = [file for file in committables if isinstance(file, PendingFile)]
        # A merge stays in its bucket; where no file is left, nothing can be lost by taking back.
        buckets = {file.bucket for file in files if not self._is_lost(file)}
        merged = [
            held.staged.path
            for held in self._held_before(ledger, record)
            if held.staged.path in discards and held.bucket in buckets and self._store.is_gone(held.staged)
        ]
        return sorted([*self._gone(committables), *merged])

    def _held_before(self, ledger: Ledger, record: EpochRecord) -> list[HeldFile]:
        """The state that the epoch started from, and that holds again when it is taken back."""
        before = ledger.read(record.slot - 1) if record.slot else None
        states = {} if before is None else states_of(self._tiers, before.states)
        return [held for values in states.values() for held in values]

    def _gone(self, committables: Sequence[Committable]) -> set[str]:
        """Files that the epoch replaces and that are not there any more."""
        replaced = {file.path for file in committables if isinstance(file, ReplacedFile)}
        directories = {parent(path) for path in replaced}
        there = {join(path, entry.name) for path in directories for entry in self._store.list(path)}
        return replaced - there

    def _hide_again(self, file: PendingFile, slot: int) -> None:
        """Give a file that was held since an earlier epoch, whose state still names it, that name back."""
        name = parse_ours(file.staged.path.rpartition("/")[2])
        is_new = name is not None and name.slot == slot  # its rows will be written again
        # An object was copied, and is still held: else nothing is taken back, see ``_check_removed``.
        if not is_new and isinstance(file.staged, HiddenFile):
            self._store.publish(replace(file.staged, path=file.target), file.staged.path)

    def _check_replay(self, cause: MicroBatch, checkpoint: str | None) -> None:
        if checkpoint is None:
            raise ConfigError(
                "lost='rewrite' needs checkpoint_location: only Spark's commit log tells whether batch "
                f"{cause.batch_id} will be replayed",
                code="CHECKPOINT",
            )
        log = open_store(checkpoint, {})
        _check_checkpoint(log, cause)
        if log.read(f"commits/{cause.batch_id}") is not None:
            raise IdentityError(
                f"Spark has noted batch {cause.batch_id} as done and will not replay it; use "
                f"lost='accept', or remove commits/{cause.batch_id} from the checkpoint first",
                code="NO_REPLAY",
            )


def _check_checkpoint(log: Store, cause: MicroBatch) -> None:
    """Raise ``IdentityError`` unless Spark has planned this very batch in this checkpoint."""
    offsets = log.read(f"offsets/{cause.batch_id}")
    if _query_id(log.read("metadata")) != cause.query_id:
        reason = f"its metadata file does not name query {cause.query_id}"
    elif offsets is None:
        reason = f"it has no offsets/{cause.batch_id}"
    elif cause.fingerprint and hashlib.sha256(offsets).hexdigest() != cause.fingerprint:
        reason = f"its offsets/{cause.batch_id} are other input than the epoch was decided from"
    else:
        return
    raise IdentityError(
        f"checkpoint_location is not where batch {cause.batch_id} came from, so nothing would replay it: "
        f"{reason}. Nothing was taken back. Pass the checkpoint of the query that writes to this sink",
        code="WRONG_CHECKPOINT",
    )


def _query_id(metadata: bytes | None) -> object:
    """The id in a checkpoint's ``metadata`` file, one line of JSON; ``None`` if there is none."""
    try:
        values = json.loads(metadata or b"null")
    except ValueError:
        return None
    return values.get("id") if isinstance(values, dict) else None


def _unfinished(ledger: Ledger) -> Iterator[Hidden]:
    tag = sink_tag(ledger.sink_id)
    for path, slot, entry in ledger.unfinished():
        yield Hidden(path=path, tag=tag, slot=slot, size=entry.size, mtime_ms=entry.mtime_ms)


def _committables(tiers: FileTiers, record: EpochRecord) -> list[Committable]:
    section = record.committables
    return tiers.committable_codec.decode(section.version, section.data)


def _still_needed(committables: Sequence[Committable], given_up: Collection[str]) -> list[ReplacedFile]:
    """Files that were to be removed, and whose rows are to be read nowhere else.

    An overwrite replaces all of them by all of its files; of what was merged it is known by which.
    """
    holders = _holders(committables)
    return [
        file
        for file in committables
        if isinstance(file, ReplacedFile) and given_up and holders.get(file.path, set()) <= set(given_up)
    ]


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


def _named(tiers: FileTiers, record: EpochRecord) -> frozenset[str]:
    """Every hidden path that a record not yet complete refers to."""
    files = _committables(tiers, record)
    staged = {file.staged.path for file in files if isinstance(file, PendingFile | HeldFile)}
    discards = {file.path for file in files if isinstance(file, DiscardFile)}
    return frozenset(staged | discards | set(chain_of(record).named))
