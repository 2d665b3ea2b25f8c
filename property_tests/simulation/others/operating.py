"""Processes of an operator that drop what is old, erase rows or go back to a version, while others write."""

from __future__ import annotations

from filesink.file_sink.tiers import FileTiers
from filesink.operations.erasing.condition import parse
from filesink.operations.erasing.erase import Erase, Erasure
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.operations.replacing.rollback import Rollback
from filesink.ports import Ports
from property_tests.simulation.observer.operations import AnyOperation
from property_tests.simulation.observer.sim_metastore import BASE
from property_tests.simulation.others.one_call import OneCall
from property_tests.simulation.spark.machine import Machine
from property_tests.simulation.stage import Stage

_EVERYTHING = 10**6  # files
_VERSIONS_BACK = 4


class Operator(OneCall):
    """One process that calls one operation once."""

    what = "an operation"

    def __init__(self, machine: Machine, operation: AnyOperation, *, number: int) -> None:
        self._operation = operation
        super().__init__(machine, f"operation-{number}")

    def call(self, ports: Ports) -> None:
        """See ``OneCall.call``."""
        watch = self.machine.observer.operations
        watch.begin(self.process, self._operation)
        outcome = self._operation.run(ports)
        if isinstance(outcome, Erasure):
            watch.erased(self.process, outcome)


class Operating:
    """All operations of a history."""

    def __init__(self, stage: Stage) -> None:
        self.processes: list[Operator] = []
        self._stage = stage

    def beside(self) -> None:
        """One or two at once, beside the query and whoever else writes; they may outlive it."""
        for _ in range(self._stage.random.choice((1, 1, 2))):
            self._start(self._draw())
        if self._stage.machine.chance(self._stage.machine.trouble.overwrites_end):
            self._stage.until(lambda: all(process.ended for process in self.processes))

    def finish(self) -> None:
        """In peace one that has nothing to drop succeeds, and ends what others have left."""
        if not self.processes:
            return
        stage = self._stage
        last = self._start(Retain(tiers=self._sink(), retention=Retention(keep=_EVERYTHING), base_path=BASE))
        stage.until(lambda: last.ended)
        if last.error is not None:
            stage.world.fail(f"I7: without faults retention fails: {last.error}")
        stage.operate("sweep")
        stage.until(lambda: not stage.world._actors)

    def _draw(self) -> AnyOperation:
        stage = self._stage
        rows = [row for source in stage.observer.sources for row in source.buckets]
        if rows and stage.machine.chance(stage.scenario.trouble.erases):
            among = ", ".join(f"'{row}'" for row in sorted(stage.random.sample(rows, min(len(rows), 3))))
            return Erase(tiers=self._sink(), condition=parse(f"row IN ({among})"), base_path=BASE)
        random, newest = stage.random, max(stage.observer.inventory.versions.values(), default=0)
        # Readers that ask ``compaction.files`` would see copies beside what they are made of for a moment.
        if not stage.scenario.trouble.tidies and random.random() < 0.5:
            version = random.randrange(max(0, newest - _VERSIONS_BACK), newest + 1)
            return Rollback(tiers=self._sink(), version=version, base_path=BASE)
        retention = Retention(keep=random.choice((1, 2, 5)))
        return Retain(tiers=self._sink(), retention=retention, base_path=BASE)

    def _sink(self) -> FileTiers:
        return self._stage.sink

    def _start(self, operation: AnyOperation) -> Operator:
        self.processes.append(Operator(self._stage.machine, operation, number=len(self.processes)))
        return self.processes[-1]
