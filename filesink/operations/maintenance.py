"""Recovery and sweeping of file sinks, by hand: for operators, with no query running and no Spark.

A restart does the same by itself for its own sink. Here every ledger below the base path is looked
at, or that of the sink's uid.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from enum import Enum

from filesink.commit.checkpoints import check_replay
from filesink.commit.epoch import EpochLoop, Outcome
from filesink.commit.replay import EpochOptions
from filesink.errors import IdentityError, StagedDataLost
from filesink.file_sink.report import EpochReport, RecoveryReport, SweepPlan, report_of
from filesink.file_sink.tiers import FileTiers, chain_of
from filesink.ledger.directory import ledger_ids
from filesink.ledger.identity import EXCLUSIVE, OF_STREAMS, append_sink_id, stream_sink_id, txn_name
from filesink.ledger.layouts import Layouts
from filesink.ledger.ledger import APPENDS, Ledger
from filesink.ledger.record import BatchWrite, EpochRecord, Finish, MicroBatch, TakenBack, Upkeep
from filesink.ledger.sweep import (
    NOT_SWEPT,
    Chain,
    Finished,
    Hidden,
    Leftover,
    all_files,
    check_tail,
    leftovers,
)
from filesink.metastore.announcements import Announced
from filesink.naming import sink_tag
from filesink.operations.lost_files import GivingUp
from filesink.operations.retraction import Retraction
from filesink.parts.committables import Committable, DiscardFile, HeldFile, PendingFile, UndoneFile
from filesink.ports import Clock, Ids, Ports, SerialRunner
from filesink.storage.probes import store_ms

log = logging.getLogger("filesink")


class Lost(Enum):
    """What to do with an epoch whose decided bytes are gone."""

    RAISE = "raise"
    REWRITE = "rewrite"
    ACCEPT = "accept"


class Announce(Enum):
    """What to do with a partition that cannot be announced."""

    RAISE = "raise"
    SKIP = "skip"


class Maintenance:
    """Recovers and sweeps what is below one base path.

    Args:
        tiers: the sink.
        clock: tells which chains have not moved for long.
        ids: needed by the committers' ports.
        announce: see ``FileSink.recover``.
    """

    def __init__(
        self, tiers: FileTiers, *, clock: Clock, ids: Ids, announce: Announce = Announce.RAISE
    ) -> None:
        self._unannounced: list[str] = []
        self._announce = announce
        if announce is Announce.SKIP:
            tiers = replace(tiers, skip=self._unannounced.append)
        self._tiers = tiers
        self._store = tiers.address()
        self._ports = Ports(clock=clock, ids=ids, runner=SerialRunner())
        self._giving_up = GivingUp(tiers, self._store, self._ports)

    def recover(self, lost: Lost, checkpoint: str | None) -> RecoveryReport:
        """See ``FileSink.recover``."""
        retraction = Retraction(
            self._tiers,
            self._store,
            self._ports,
            check_replay=lambda cause: self._check_replay(cause, checkpoint),
        )
        published: list[EpochReport] = []
        retracted: list[int] = []
        given_up = 0
        for ledger in self._ledgers():
            if not self._may_be_ours(ledger.sink_id):
                continue  # whatever is wrong with it
            unfinished = ledger.unfinished()
            for record in unfinished:
                if not self._is_ours(ledger, record):
                    continue
                try:
                    outcome, rows = self._carry_through(ledger, record, lost)
                except StagedDataLost:
                    if lost is Lost.RAISE:
                        raise
                    outcome, rows = self._without_lost(retraction, ledger, record, lost)
                given_up += rows
                _note(outcome, published, retracted)
            if not unfinished:
                given_up += self._held_lost(ledger, lost)
            self._skip_waiting(ledger)
        swept = len(self._remove(self._dead(None, self._ports.clock.now_ms)))
        return RecoveryReport(
            published=tuple(published),
            retracted=tuple(retracted),
            lost_rows=given_up,
            swept=swept,
            unannounced=tuple(self._unannounced),
        )

    def plan_sweep(self, older_than_ms: int) -> SweepPlan:
        """See ``FileSink.plan_sweep``."""
        return SweepPlan(files=tuple(self._dead(older_than_ms, self._ports.clock.now_ms)))

    def sweep(self, older_than_ms: int) -> SweepPlan:
        """See ``FileSink.sweep``."""
        return SweepPlan(files=self._remove(self._dead(older_than_ms, self._store_ms)))

    def _store_ms(self) -> int:
        """The time by which files are dated: a host whose clock is ahead would take those at work for old."""
        return store_ms(self._store, self._ports.ids.uuid())

    def _dead(self, older_than_ms: int | None, now_ms: Callable[[], int]) -> Iterator[Leftover]:
        """Each chain is read after the files were seen, and just before its own are judged.

        So whoever removes one at a time takes none away that a driver has decided on meanwhile.
        """
        seen: dict[str, list[Hidden]] = {}
        newest: dict[str, Finished] = {}
        for file in all_files(self._store):
            match file:
                case Hidden():
                    seen.setdefault(file.tag, []).append(file)
                case Finished() if file.tag not in newest or newest[file.tag].slot < file.slot:
                    newest[file.tag] = file
                case _:
                    pass
        ledgers = self._ledgers()
        oldest = None
        if older_than_ms is not None and (seen or ledgers):
            oldest = now_ms() - older_than_ms
        _leave_shared(seen, newest, ledgers)
        for ledger in ledgers:
            tag = sink_tag(ledger.sink_id)
            files = [*seen.pop(tag, ()), *_unfinished(ledger)]
            if tag in newest or files:
                yield from self._dead_of(ledger, files, newest.get(tag), oldest)
        yield from self._dead_without_chain(seen, oldest)
        yield from Layouts(self._store).dead(oldest)

    def _dead_of(
        self, ledger: Ledger, files: Sequence[Hidden], newest: Finished | None, oldest: int | None
    ) -> Iterator[Leftover]:
        chain = self._chain(ledger, oldest)
        if not ledger.is_open:
            ours = [file for file in files if not file.path.startswith(ledger.directory.path)]
            check_tail(chain, [*ours, *([newest] if newest else [])], decided=ledger.last_slot())
        yield from leftovers(chain, files)

    def _dead_without_chain(self, seen: dict[str, list[Hidden]], oldest: int | None) -> Iterator[Leftover]:
        """Of files that bear the tag of a batch write, or of a sink that has no ledger here."""
        for chain in self._batch_writes() if seen else ():
            yield from leftovers(chain, seen.pop(sink_tag(chain.sink_id), ()))
        for file in (file for files in seen.values() for file in files):
            if oldest is not None and file.mtime_ms < oldest:
                yield Leftover(path=file.path, size=file.size, reason="its sink has no ledger here")

    def _batch_writes(self) -> Iterator[Chain]:
        """Every batch write whose record is kept: its files bear a tag of its own."""
        for ledger in self._ledgers():
            if ledger.is_open or ledger.sink_id == EXCLUSIVE:
                records = list(ledger.newest_first())
                # Asked afterwards: one that is decided between the two looks is no leftover of a write.
                unfinished = {record.slot for record in ledger.publishing()}
                for record in records:
                    if record.files_of != record.sink_id:
                        is_done = record.slot not in unfinished
                        named = frozenset() if is_done else _named(self._tiers, record)
                        yield Chain(sink_id=record.files_of, complete_slot=0 if is_done else -1, named=named)

    def _chain(self, ledger: Ledger, oldest: int | None) -> Chain:
        head = ledger.head()
        if ledger.is_open:  # others may be at work for any slot that is kept
            is_stale = oldest is not None and (head is None or ledger.directory.changed_ms() < oldest)
            return Chain(
                sink_id=ledger.sink_id,
                complete_slot=ledger.directory.listing().folded_to(),
                named=frozenset(),
                stale_before_ms=oldest if is_stale else None,
            )
        if head is None:  # what its first epoch left, if that was never decided
            return Chain(sink_id=ledger.sink_id, complete_slot=-1, named=frozenset(), stale_before_ms=oldest)
        # Of its own tag: files of a batch write have others.
        chain = replace(chain_of(head.record), sink_id=ledger.sink_id, complete_slot=head.record.slot)
        if not head.complete:  # what it names is still to be published: nothing of it is dead
            return replace(chain, complete_slot=head.record.slot - 1, named=_named(self._tiers, head.record))
        is_stale = oldest is not None and ledger.directory.changed_ms() < oldest
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
        others = (*OF_STREAMS, APPENDS)
        return uid is None or sink_id in _chains_of(uid) or not sink_id.startswith(others)

    def _is_ours(self, ledger: Ledger, record: EpochRecord) -> bool:
        """Whether ``ledger``, whose newest is ``record``, is one of this sink's; without a uid all are."""
        uid, cause = self._tiers.uid, record.cause
        if isinstance(cause, TakenBack) and (undone := ledger.read(cause.slot)):
            cause = undone.cause
        if uid is None or record.sink_id == EXCLUSIVE or record.sink_id in _chains_of(uid):
            return True
        # Earlier releases: a txn_id had a chain of its own.
        return isinstance(cause, BatchWrite) and record.sink_id == txn_name(uid, cause.txn_id)

    def _ledgers(self) -> list[Ledger]:
        """Our own first: what is wrong with another may end the call."""
        own = None if self._tiers.uid is None else stream_sink_id(self._tiers.uid, "")
        ids = sorted(ledger_ids(self._store), key=lambda sink_id: sink_id != own)
        clock = self._ports.clock
        return [self._tiers.open_ledger(sink_id).with_patience(clock) for sink_id in ids]

    def _loop(self, ledger: Ledger) -> EpochLoop[HeldFile, Committable, Announced]:
        return EpochLoop(self._tiers, ledger, ports=self._ports, options=EpochOptions())

    def _without_lost(
        self, retraction: Retraction, ledger: Ledger, record: EpochRecord, lost: Lost
    ) -> tuple[Outcome[Committable] | None, int]:
        """Take ``record`` back or publish what is left of it, as the user wants; also the rows given up."""
        if _is_taken_back(retraction, ledger, record, lost):
            return self._carry_through(ledger, ledger.unfinished()[0], lost)
        return self._giving_up.publish_the_rest(ledger, record)

    def _carry_through(
        self, ledger: Ledger, record: EpochRecord, lost: Lost
    ) -> tuple[Outcome[Committable] | None, int]:
        """Do what ``record`` says; also rows given up in the state that holds again."""
        with closing(self._loop(ledger)) as loop:
            outcome = loop.recover(record.slot)
        # ``None``: a completion that was late came between two looks, maybe that of taking back.
        is_undone = outcome is None or isinstance(outcome.cause, TakenBack)
        return outcome, self._held_lost(ledger, lost) if is_undone and lost is Lost.ACCEPT else 0

    def _held_lost(self, ledger: Ledger, lost: Lost) -> int:
        """Rows of open parts given up, if the newest epoch is complete."""
        head = None if ledger.is_open else ledger.head()
        if head is None or not head.complete or not self._is_ours(ledger, head.record):
            return 0
        return self._give_up_held(ledger, head.record, lost)

    def _give_up_held(self, ledger: Ledger, record: EpochRecord, lost: Lost) -> int:
        """Rows of open parts whose bytes are gone, taken out of the state by the user's own word."""
        gone = self._giving_up.lost_held(record)
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
        self._giving_up.forget_held(ledger, record, gone)
        return rows

    def _skip_waiting(self, ledger: Ledger) -> None:
        """Let go of partitions that wait and would fail the epoch that announces them."""
        head = ledger.head() if self._announce is Announce.SKIP and not ledger.is_open else None
        if head is not None and head.complete:
            self._unannounced += self._giving_up.forget_waiting(ledger, head.record)

    def _check_replay(self, cause: MicroBatch, checkpoint: str | None) -> None:
        check_replay(cause, checkpoint)


def _chains_of(uid: str) -> tuple[str, ...]:
    return stream_sink_id(uid, ""), append_sink_id(uid)


def _note(outcome: Outcome[Committable] | None, published: list[EpochReport], retracted: list[int]) -> None:
    match outcome:
        case None:
            pass
        case Outcome(slot=slot, cause=TakenBack(slot=undone)):
            if undone != slot:
                retracted.append(undone)
        case _:
            published.append(report_of(outcome))


def _is_taken_back(retraction: Retraction, ledger: Ledger, record: EpochRecord, lost: Lost) -> bool:
    """Decide that ``record`` is void if that is what the user wants: or if it costs nothing.

    An epoch without input costs nothing, if it can be taken back: its rows are held, for a later one.
    """
    if lost is Lost.ACCEPT and not isinstance(record.cause, Upkeep | Finish):
        return False
    try:
        retraction.decide(ledger, record)
    except IdentityError:
        if lost is Lost.REWRITE:
            raise
        return False
    return True


def _leave_shared(
    seen: dict[str, list[Hidden]], newest: dict[str, Finished], ledgers: Iterable[Ledger]
) -> None:
    """Take the files out of ``seen`` whose tag is that of two sinks: nobody knows whose they are."""
    found: dict[str, list[str]] = {}
    for ledger in ledgers:
        found.setdefault(sink_tag(ledger.sink_id), []).append(ledger.sink_id)
    for tag, ids in found.items():
        if len(ids) > 1:
            newest.pop(tag, None)
        if len(ids) > 1 and tag in seen:
            del seen[tag]
            log.warning(NOT_SWEPT, ids[0], ", ".join(ids[1:]))


def _unfinished(ledger: Ledger) -> Iterator[Hidden]:
    tag = sink_tag(ledger.sink_id)
    for path, slot, entry in ledger.directory.unfinished():
        yield Hidden(path=path, tag=tag, slot=slot, size=entry.size, mtime_ms=entry.mtime_ms)


def _named(tiers: FileTiers, record: EpochRecord) -> frozenset[str]:
    """Every hidden path that a record not yet complete refers to."""
    files = record.committables.decode(tiers.committable_codec)
    staged = {file.staged.path for file in files if isinstance(file, PendingFile | HeldFile | UndoneFile)}
    discards = {file.path for file in files if isinstance(file, DiscardFile)}
    return frozenset(staged | discards | set(chain_of(record).named))
