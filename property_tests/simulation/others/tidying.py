"""Processes that merge visible files while others write: ``compaction.compact``, with any grace."""

from __future__ import annotations

from collections import Counter

from compaction.offline.finished import FinishedTiers
from compaction.offline.superseded import current
from filesink.errors import FilesinkError
from filesink.ports import Ports
from property_tests.simulation.others.one_call import OneCall
from property_tests.simulation.spark.machine import Address, Machine
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import plan_of
from property_tests.simulation.world.world import Process

_GRACES_MS = (0, 0, 300, 5000)
_MOST_ROUNDS = 5
_TARGETS = (30, 60, 1000)  # bytes


class Tidier(OneCall):
    """One process that calls ``compact`` once."""

    what = "offline compaction"

    def __init__(self, machine: Machine, tiers: FinishedTiers, *, number: int) -> None:
        self.found_work = False
        self._tiers = tiers
        super().__init__(machine, f"tidier-{number}")

    def call(self, ports: Ports) -> None:
        """See ``OneCall.call``."""
        self.found_work = self._tiers.compact(ports) is not None


class Reader:
    """One process that asks once which files to read: ``compaction.files`` (I17)."""

    def __init__(self, stage: Stage, *, number: int) -> None:
        self._stage = stage
        process = Process(f"reader-{number}")
        stage.world.spawn(process.name, process, self._main)

    def _main(self) -> None:
        observer = self._stage.observer
        before = set(observer.rows) - self._replaced()
        try:
            paths = current(Address(self._stage.machine)(), None)
        except FilesinkError:
            return  # asked again another day
        except Exception as error:
            self._stage.world.fail(f"I8: compaction.files raises {type(error).__name__}: {error}")
            raise
        read = Counter(row for path in paths for row in observer.shown.get(path, ()))
        doubled = [row for row, times in read.items() if times > 1]
        if doubled:
            self._stage.world.fail(f"I17: row {doubled[0]} is twice in what compaction.files names")
        missing = (before & observer.rows.keys()) - read.keys() - self._replaced()
        if missing:
            self._stage.world.fail(f"I17: row {min(missing)} is not in what compaction.files names")

    def _replaced(self) -> set[str]:
        """Rows that overwrites have replaced, and that who lists still sees."""
        observer = self._stage.observer
        return {row for path in observer.replaced.left for row in observer.shown.get(path, ())}


class Tidying:
    """All offline compactions of a history."""

    def __init__(self, stage: Stage) -> None:
        self.processes: list[Tidier] = []
        self._stage = stage

    def beside(self) -> None:
        """One or two at once, beside the query and whoever else writes; they may outlive it."""
        for _ in range(self._stage.random.choice((1, 1, 2))):
            self._start(self._stage.random.choice(_GRACES_MS))
            for number in range(self._stage.random.choice((0, 1, 3))):
                Reader(self._stage, number=number)
        if self._stage.machine.chance(self._stage.machine.trouble.overwrites_end):
            self._stage.until(lambda: all(process.ended for process in self.processes))

    def finish(self) -> None:
        """In peace it succeeds, and when the graces are over each row is in one file."""
        if not self.processes:
            return
        stage = self._stage
        self._to_its_end(stage.random.choice(_GRACES_MS))
        stage.world.now_ms += max(_GRACES_MS)
        self._to_its_end(0)
        # What was merged may be small enough to be merged again.
        if all(self._to_its_end(0).found_work for _ in range(_MOST_ROUNDS)):
            stage.world.fail("I17: offline compaction does not come to its end")
        stage.operate("sweep")  # what crashed calls have left, if the last one had nothing to do
        stage.until(lambda: not stage.world._actors)
        if not stage.scenario.trouble.clock_jumps:  # else a grace may end in a far future
            stage.observer.superseded.check_end()

    def _to_its_end(self, grace_ms: int) -> Tidier:
        process = self._start(grace_ms, target_size=1000)
        self._stage.until(lambda: process.ended)
        if process.error is not None:
            self._stage.world.fail(f"I7: without faults offline compaction fails: {process.error}")
        return process

    def _start(self, grace_ms: int, *, target_size: int | None = None) -> Tidier:
        stage = self._stage
        tiers = FinishedTiers(
            address=Address(stage.machine),
            plan=plan_of(stage.scenario.shape),
            bucket=None,
            target_size=target_size or stage.random.choice(_TARGETS),
            grace_ms=grace_ms,
        )
        self.processes.append(Tidier(stage.machine, tiers, number=len(self.processes)))
        return self.processes[-1]
