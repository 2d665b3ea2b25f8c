"""Recovery and sweeping of file sinks, by hand: for operators, with no query running and no Spark.

A restart does the same by itself for its own sink. Here every ledger below the base path is looked
at, or only those of the sink's uid.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import Enum

from filesink.commit.checkpoints import check_replay
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.errors import IdentityError, StagedDataLost
from filesink.file_sink.report import EpochReport, RecoveryReport, SweepPlan, report_of
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord, Finish, MicroBatch, TakenBack, Upkeep
from filesink.ledger.sweep import Leftover
from filesink.metastore.announcements import Announced
from filesink.operations.dead_files import DeadFiles
from filesink.operations.due_files import DueFiles
from filesink.operations.lost_files import GivingUp
from filesink.operations.recovery_plan import RecoveryPlan, planned_epochs
from filesink.operations.retraction import Retraction
from filesink.operations.sink_ledgers import SinkLedgers
from filesink.parts.committables import Committable, HeldFile
from filesink.ports import Audience, Clock, Ids, Ports, SerialRunner
from filesink.storage.probes import store_ms


class Lost(Enum):
    """What to do with an epoch whose decided bytes are gone."""

    RAISE = "raise"
    REWRITE = "rewrite"
    ACCEPT = "accept"


class Announce(Enum):
    """What to do with a partition that cannot be announced."""

    RAISE = "raise"
    SKIP = "skip"


@dataclass(slots=True)
class _Recovered:
    """What a recovery has done so far."""

    published: list[EpochReport] = field(default_factory=list)
    retracted: list[int] = field(default_factory=list)
    lost_rows: int = 0

    def note(self, outcome: Outcome[Committable] | None) -> None:
        match outcome:
            case None:
                pass
            case Outcome(slot=slot, cause=TakenBack(slot=undone)):
                if undone != slot:
                    self.retracted.append(undone)
            case _:
                self.published.append(report_of(outcome))


class Maintenance:
    """Recovers and sweeps what is below one base path.

    Args:
        tiers: the sink.
        clock: tells which chains have not moved for long.
        ids: needed by the committers' ports.
        announce: see ``FileSink.recover``.
        audience: is told of epochs that are completed.
        chain: the id of the only chain that is recovered; ``None`` for those of the sink.
    """

    def __init__(
        self,
        tiers: FileTiers,
        *,
        clock: Clock,
        ids: Ids,
        announce: Announce = Announce.RAISE,
        audience: Audience | None = None,
        chain: str | None = None,
    ) -> None:
        self._unannounced: list[str] = []
        self._announce = announce
        if announce is Announce.SKIP:
            tiers = replace(tiers, skip=self._unannounced.append)
        self._tiers = tiers
        self._store = tiers.address()
        self._ports = Ports(clock=clock, ids=ids, runner=SerialRunner(), audience=audience)
        self._ledgers = SinkLedgers(tiers, self._store, clock, chain)
        self._dead = DeadFiles(tiers, self._store, self._ledgers)
        self._giving_up = GivingUp(tiers, self._store, self._ports)
        self._left = DueFiles(self._store, tiers.open_ledger(EXCLUSIVE))

    def recover(self, lost: Lost, checkpoint: str | None) -> RecoveryReport:
        """See ``FileSink.recover``."""
        retraction = Retraction(
            self._tiers,
            self._store,
            self._ports,
            check_replay=lambda cause: self._check_replay(cause, checkpoint),
        )
        found = _Recovered()
        for ledger in self._ledgers.all():
            if self._ledgers.may_be_ours(ledger.sink_id):  # what is wrong with another does not matter
                self._recover_chain(retraction, ledger, lost, found)
        swept = len(self._remove(self._dead.find(None, self._ports.clock.now_ms)))
        swept += len(self._left.remove(self._store_ms))
        return RecoveryReport(
            published=tuple(found.published),
            retracted=tuple(found.retracted),
            lost_rows=found.lost_rows,
            swept=swept,
            unannounced=tuple(self._unannounced),
        )

    def _recover_chain(self, retraction: Retraction, ledger: Ledger, lost: Lost, found: _Recovered) -> None:
        unfinished = ledger.history.unfinished()
        for record in unfinished:
            if not self._ledgers.is_ours(ledger, record):
                continue
            try:
                outcome, rows = self._carry_through(ledger, record, lost)
            except StagedDataLost:
                if lost is Lost.RAISE:
                    raise
                outcome, rows = self._without_lost(retraction, ledger, record, lost)
            found.lost_rows += rows
            found.note(outcome)
        if not unfinished:
            found.lost_rows += self._held_lost(ledger, lost)
        self._skip_waiting(ledger)

    def plan_recover(self) -> RecoveryPlan:
        """What ``recover`` would do now."""
        now_ms = self._ports.clock.now_ms
        garbage = SweepPlan(files=(*self._dead.find(None, now_ms), *self._left.plan(now_ms)))
        return RecoveryPlan(epochs=tuple(planned_epochs(self._ledgers, self._store)), garbage=garbage)

    def plan_sweep(self, older_than_ms: int) -> SweepPlan:
        """See ``FileSink.plan_sweep``."""
        now_ms = self._ports.clock.now_ms
        return SweepPlan(files=(*self._dead.find(older_than_ms, now_ms), *self._left.plan(now_ms)))

    def sweep(self, older_than_ms: int) -> SweepPlan:
        """See ``FileSink.sweep``."""
        swept = self._remove(self._dead.find(older_than_ms, self._store_ms))
        return SweepPlan(files=(*swept, *self._left.remove(self._store_ms)))

    def _store_ms(self) -> int:
        """The store's time, by which files are dated: a host whose clock is ahead takes new ones for old."""
        return store_ms(self._store, self._ports.ids.uuid())

    def _remove(self, dead: Iterable[Leftover]) -> tuple[Leftover, ...]:
        removed = []
        for leftover in dead:
            self._store.discard(leftover.path)
            removed.append(leftover)
        return tuple(removed)

    def _loop(self, ledger: Ledger) -> EpochLoop[HeldFile, Committable, Announced]:
        return EpochLoop(self._tiers, ledger, ports=self._ports, options=EpochOptions())

    def _without_lost(
        self, retraction: Retraction, ledger: Ledger, record: EpochRecord, lost: Lost
    ) -> tuple[Outcome[Committable] | None, int]:
        """Take ``record`` back or publish what is left of it, as the user wants; and the rows given up."""
        if _is_taken_back(retraction, ledger, record, lost):
            return self._carry_through(ledger, ledger.history.unfinished()[0], lost)
        return self._giving_up.publish_the_rest(ledger, record)

    def _carry_through(
        self, ledger: Ledger, record: EpochRecord, lost: Lost
    ) -> tuple[Outcome[Committable] | None, int]:
        """Complete ``record``; and the rows given up, if that makes an earlier state hold again."""
        with closing(self._loop(ledger)) as loop:
            outcome = loop.recover(record.slot)
        # ``None``: somebody completed it between two looks, and that may have been taking back.
        is_undone = outcome is None or isinstance(outcome.cause, TakenBack)
        return outcome, self._held_lost(ledger, lost) if is_undone and lost is Lost.ACCEPT else 0

    def _held_lost(self, ledger: Ledger, lost: Lost) -> int:
        """Rows of open parts given up, if the newest epoch is complete."""
        head = None if ledger.is_open else ledger.head()
        if head is None or not head.complete or not self._ledgers.is_ours(ledger, head.record):
            return 0
        return self._give_up_held(ledger, head.record, lost)

    def _give_up_held(self, ledger: Ledger, record: EpochRecord, lost: Lost) -> int:
        """Take parts whose bytes are gone out of the state, if the user says so; returns their rows."""
        gone = self._giving_up.lost_held(record)
        if not gone:
            return 0
        rows = sum(held.rows for held in gone)
        if lost is not Lost.ACCEPT:
            raise StagedDataLost(
                f"sink '{record.sink_id}': {len(gone)} held files of {rows} rows are gone, or cannot be read "
                f"because their header is gone, such as '{gone[0].staged.path}'. Restore them, or give these "
                "rows up with lost='accept'",
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


def _is_taken_back(retraction: Retraction, ledger: Ledger, record: EpochRecord, lost: Lost) -> bool:
    """Decide that ``record`` is void if the user wants that, or if it costs nothing; whether that was done.

    Taking back an epoch without input costs nothing: its rows are still held, for a later epoch.
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
