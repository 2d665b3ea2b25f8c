"""Three batch writers at once, beside the query: appends under its uid, and overwrites of random partitions.

They are killed at random and started again until each has succeeded. One that meets another in the same
partition is told so, rightly and before anything of it is visible, and is run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from filesink.errors import ConcurrentDriverError, FilesinkError, MetastoreConflictError
from filesink.save_mode import SaveMode
from property_tests.simulation.observer.reading import Record
from property_tests.simulation.observer.view import EXCLUSIVE
from property_tests.simulation.others.overwriter import Overwriter, Overwrites, Write
from property_tests.simulation.stage import Stage

_WRITERS = 3
_MOST_STARTS = 6  # of one writer, while things go wrong
_DIES = 0.3  # of each start
_SWEPT = 0.4  # of all crowds: somebody sweeps meanwhile
_SOON = 250  # calls
_MODES = (
    SaveMode.APPEND,
    SaveMode.APPEND,
    SaveMode.OVERWRITE_PARTITIONS,
    SaveMode.OVERWRITE_PARTITIONS,
    SaveMode.OVERWRITE,
)


@dataclass(slots=True)
class _Member:
    """One write of a crowd, and the process that is at it."""

    write: Write
    process: Overwriter
    dies_at: int  # call of the world; 0 for never
    slot: int  # the newest of the exclusive chain when the process began
    starts: int = 1


class Crowd:
    """The writers of one history that come together."""

    def __init__(self, stage: Stage, overwrites: Overwrites) -> None:
        self._stage = stage
        self._overwrites = overwrites
        self._members: list[_Member] = []
        self._swept_at = 0  # call of the world; 0 for never

    def come(self) -> None:
        """Start three, and see each through to its success, or until it has failed too often."""
        random = self._stage.random
        writes = [self._overwrites.new_write(random.choice(_MODES)) for _ in range(_WRITERS)]
        self._members = [self._start(write) for write in writes]
        sweeper = Random(f"sweeper {self._now()}")
        self._swept_at = self._now() + sweeper.randrange(_SOON) if sweeper.random() < _SWEPT else 0
        while self._members:
            self._stage.until(self._is_any_due)
            if self._is_to_sweep():
                self._swept_at = 0
                self._stage.operate("sweep")
            for member in self._members:
                if member.dies_at and self._now() >= member.dies_at:
                    self._stage.end_process(member.process)
            self._members = [next_ for one in self._members if (next_ := self._go_on(one)) is not None]

    def _is_any_due(self) -> bool:
        now = self._now()
        dead = (one.process.ended or (one.dies_at and now >= one.dies_at) for one in self._members)
        return self._is_to_sweep() or any(dead)

    def _is_to_sweep(self) -> bool:
        return 0 < self._swept_at <= self._now()

    def _go_on(self, member: _Member) -> _Member | None:
        if not member.process.ended:
            return member
        if member.process.outcome is not None or member.starts >= _MOST_STARTS:
            return None
        error = member.process.error
        if isinstance(error, ConcurrentDriverError) and error.code == "PARTITION_CONFLICT":
            self._check_conflict(member)
        elif isinstance(error, FilesinkError) and not self._may_fail(error):
            self._stage.world.fail(f"I7: nothing went wrong, and {member.write.txn_id} fails: {error}")
        again = self._start(member.write)
        again.starts = member.starts + 1
        return again

    def _may_fail(self, error: FilesinkError) -> bool:
        rightly = isinstance(error, ConcurrentDriverError | MetastoreConflictError)
        return rightly or bool(self._stage.world.fired)

    def _start(self, write: Write) -> _Member:
        random = self._stage.random
        dies_at = self._now() + random.randrange(_SOON) if random.random() < _DIES else 0
        return _Member(write, self._overwrites.run(write), dies_at, self._newest_slot())

    def _check_conflict(self, member: _Member) -> None:
        """Another write has decided about a partition of this one; and of this one nothing is seen (I18)."""
        world, observer = self._stage.world, self._stage.observer
        shown = [row for row in member.write.rows if row in observer.rows]
        if member.starts == 1 and shown:
            world.fail(f"I18: {member.write.txn_id} met another write, and row {shown[0]} of it is visible")
        chain = observer.chains[EXCLUSIVE]
        if chain.mark >= member.slot or member.write.mode is SaveMode.OVERWRITE:
            return
        buckets = {self._overwrites.source.buckets[row] for row in member.write.rows}
        others = [record for slot, record in chain.records.items() if slot > member.slot]
        if not any(buckets & _touched(record) for record in others):
            world.fail(f"I18: {member.write.txn_id} was told of a write in its partitions: there is none")

    def _newest_slot(self) -> int:
        chain = self._stage.observer.chains.get(EXCLUSIVE)
        return -1 if chain is None else chain.newest_slot()

    def _now(self) -> int:
        return self._stage.world.operations


def _touched(record: Record) -> set[str]:
    return {path.rpartition("/")[0] for path in (*record.pending, *record.replaced)}
