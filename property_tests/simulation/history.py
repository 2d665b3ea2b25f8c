"""One history: a workload, trouble, then peace, and the question whether all promises held."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from filesink.errors import ReplayTooOldError
from filesink.naming import parse_ours, upload_path
from property_tests.simulation.endings import epilogue
from property_tests.simulation.observer.reading import tag_of
from property_tests.simulation.others import intruder
from property_tests.simulation.others.crowd import Crowd
from property_tests.simulation.others.forbidden import Forbidden
from property_tests.simulation.others.neighbours import Neighbours
from property_tests.simulation.others.operating import Operating
from property_tests.simulation.others.overwriter import Overwrites
from property_tests.simulation.others.tidying import Tidying
from property_tests.simulation.scenario import Scenario
from property_tests.simulation.spark.fake_spark import Driver
from property_tests.simulation.spark.machine import Trouble
from property_tests.simulation.stage import HasProcess, Stage
from property_tests.simulation.workload import REAL_BOUNDS
from property_tests.simulation.world.disk import Cut
from property_tests.simulation.world.listing import all_files, is_hidden
from property_tests.simulation.world.world import Violation

_LOG = logging.getLogger("filesink")
_MAX_RESTARTS = 8
_SPACE_IS_MADE = 0.3  # after each restart
_DAY_MS = 24 * 3600 * 1000
_SWEPT_BY_ALL = ("_filesink/uid-", "_filesink/_layout/")  # by whoever writes there next


@dataclass(slots=True)
class Result:
    """What became of a history."""

    operations: int
    fired: Counter[tuple[str, str, str]]
    drivers: int
    power_cuts: int
    violation: Violation | None


class History(Stage):
    """Runs one scenario; its arguments are those of its stage."""

    def __init__(self, seed: int, scenario: Scenario, *, trace: Any = None) -> None:
        super().__init__(seed, scenario, trace=trace)
        self.neighbours = Neighbours.of(self, scenario.neighbour)
        self.overwrites = Overwrites(self)
        self.tidying = Tidying(self)
        self.operating = Operating(self)
        self.calm_after = 0
        self._days_passed = False
        self._incarnations = 0
        scenario.shape.bounds.apply()  # until ``_end``
        _LOG.disabled = True

    def run(self) -> Result:
        """The whole history; a violation is in the result, not raised."""
        try:
            with _writers_forgotten():
                self._trouble()
        except Violation as violation:
            self.world.violation = violation
        except BaseException:  # a defect of the simulation, or Ctrl-C
            self._end()
            raise
        self.conclude()
        world = self.world
        return Result(world.operations, world.fired, self._incarnations, world.power_cuts, world.violation)

    def conclude(self) -> None:
        """Peace, the last questions, and the end of every process. A violation is in the world."""
        self._incarnations = len(self.drivers)
        with _writers_forgotten():
            try:
                if self.world.violation is None:
                    self._peace()
                    intruder.comes(self)
                    epilogue.ask(self, self.overwrites)
                    epilogue.ask_more(self, self.overwrites)
            except Violation as violation:
                self.world.violation = violation
            finally:
                self._end()

    def _end(self) -> None:
        """No process any more, and the product as it was before."""
        self.world.watch = lambda _process, _operation, _path: None
        try:
            self.world.end()
        finally:
            REAL_BOUNDS.apply()
            _LOG.disabled = False

    # --- the parts of a history

    def _trouble(self) -> None:
        """Drivers come and go while things go wrong."""
        driver = self.start()
        for _ in range(_MAX_RESTARTS):
            self.neighbours.go_on()
            self._go_on(driver)
            if driver.finished:
                return
            if driver.error is not None and self.random.random() < 0.5:
                driver.start()  # the same process starts the query again
                continue
            self.end_process(driver)
            if self.random.random() < _SPACE_IS_MADE:
                self.scenario.plan.make_room()
            if self.machine.chance(self.machine.trouble.operator):
                self.operate("recover")
            driver = self.start()

    def _go_on(self, driver: Driver) -> None:
        """Until the driver ends. Meanwhile a second one may come, or an operator, or the JVM may die."""
        trouble = self.machine.trouble
        for event, probability in (
            (lambda _: Forbidden.for_a_while(self), trouble.forbids),
            (self._orphan, trouble.jvm_dies),
            (lambda _: self.clone(), trouble.second_driver),
            (lambda _: self.operate("sweep"), trouble.operator),
            (lambda _: self.overwrites.beside(), trouble.overwrites),
            (lambda _: self.tidying.beside(), trouble.tidies),
            (lambda _: self.operating.beside(), trouble.operations),
            (lambda _: Crowd(self, self.overwrites).come(), trouble.crowds),
        ):
            if self.machine.chance(probability):
                moment = self.world.operations + self.random.randrange(300)
                self.until(lambda: driver.ended or self.world.operations >= moment)  # noqa: B023
                event(driver)
        self.until(lambda: driver.ended)

    def _orphan(self, driver: Driver) -> None:
        """The JVM dies: no jobs any more, but Python goes on; a restart comes at once."""
        driver.jvm_alive = False
        if not driver.ended:
            other = self.start()
            self.until(lambda: other.ended)

    def _peace(self) -> None:
        """No more faults: the query must come to its end, and leave nothing behind (I1, I2, I6, I7)."""
        world = self.world
        self.calm_after = world.operations
        world.plan = None
        self.metastore.mend(sys.maxsize)
        for late in world.late.due(sys.maxsize):
            world.carry_out(late)
        self.machine.trouble = Trouble(upkeep=0.0)
        if self.random.random() < 0.5:
            self.until(lambda: not world._actors)  # zombies end by themselves
        processes: list[HasProcess] = [*self.drivers, *self.neighbours.drivers]
        for process in (
            *processes,
            *self.overwrites.processes,
            *self.tidying.processes,
            *self.operating.processes,
        ):
            self.end_process(process, workers=True)
        world.run(lambda: True)
        if self.random.random() < 0.2:
            world.cut_power(self.random.choice((Cut.ORDERED, Cut.WEAK)))
            world.run(lambda: True)
        self.one_more_batch()
        if self.random.random() < 0.3:
            world.now_ms += 3 * _DAY_MS
            self._days_passed = True
        self.neighbours.finish()
        driver = self.start()
        self.until(lambda: driver.ended)
        if isinstance(driver.error, ReplayTooOldError) and self.clones:
            driver = self._newer_checkpoint(driver)
        if driver.error is not None:
            error = driver.error
            self.world.fail(f"I7: without faults the query fails: {type(error).__name__}: {error}")
        self.until(lambda: not world._actors)
        self.overwrites.repeat_all()
        self.operating.finish()
        self.tidying.finish()
        self._sweep_by_age()
        self._check_end()

    # --- pieces

    def _newer_checkpoint(self, driver: Driver) -> Driver:
        """A clone went on by more batches than the ledger keeps: take its checkpoint, as the error says."""
        self.end_process(driver, workers=True)
        for clone in self.clones:
            self.checkpoint.offsets |= clone.offsets
            self.checkpoint.commits |= clone.commits
        driver = self.start()
        self.until(lambda: driver.ended)
        return driver

    def _sweep_by_age(self) -> None:
        """What an undecided batch write has left bears a tag that nobody else has: only age tells."""
        uploads = {} if self.machine.bucket is None else self.machine.bucket.uploads
        started = (upload_path(one.key, "1") for one in uploads.values() if one.owner is not None)
        names = (*all_files(self.world.disk.root), *started)
        if any(_is_of_batch_writes(self, name) for name in names):
            self.world.now_ms += 400 * _DAY_MS
            self.operate("sweep", older_than_ms=7 * _DAY_MS)
            self.until(lambda: not self.world._actors)

    def _check_end(self) -> None:
        self.observer.look_at_all()
        expected = {row for source in self.observer.sources for batch in source.batches for row in batch}
        replaced = self.observer.replaced
        missing = expected - self.observer.rows.keys() - replaced.rows
        if missing:
            self.world.fail(f"I1: {len(missing)} rows are missing at the end, such as {min(missing)}")
        if set(self.observer.rows) - expected:
            self.world.fail("I2: there are rows that nobody wrote")
        for name in all_files(self.world.disk.root):
            left = name.rpartition("/")[2]
            grace = left.startswith(".probe.") and not self._days_passed
            ours = name not in self.foreign and not (name.startswith("_filesink/") and left[0] != ".")
            if is_hidden(name) and ours and not grace:
                self.world.fail(f"I6: {name} is left at the end")
        for name in self.foreign:
            if self.world.disk.find(name) is None and name not in replaced.files:
                self.world.fail(f"I5: {name}, which is not ours, is gone")
        if self.observer.uploads is not None:
            self.observer.uploads.check_end(days_passed=self._days_passed)
        self._check_folded()
        self.observer.inventory.check_end()
        if self.sink.publishing is not None:
            self.metastore.check_end()
        if self.world.disk.handles:
            self.world.fail(f"I6: {len(self.world.disk.handles)} descriptors are left open")

    def _check_folded(self) -> None:
        """The ledger does not grow for ever. Only where folding comes with every epoch, to be exact."""
        shape = self.scenario.shape
        for chain in self.observer.chains.values():
            valid = [record for slot, record in chain.records.items() if slot > chain.mark]
            batches = sum(record.cause["kind"] == "micro-batch" for record in valid)
            if shape.bounds.fold_every == 1 and batches > shape.keep_batches + 3:
                self.world.fail(
                    f"I6: the ledger keeps {batches} micro-batches, {shape.keep_batches} were asked for"
                )


def _is_of_batch_writes(history: History, name: str) -> bool:
    """Whether a hidden file is none of a stream's: then no epoch of its own will come and find it."""
    if name in history.foreign:
        return False
    if name.startswith("_filesink/"):
        return ".put." in name and not name.startswith(_SWEPT_BY_ALL)
    found = parse_ours(name.rpartition("/")[2])
    streams = {tag_of(sink) for sink in history.observer.chains if sink.startswith("uid-")}
    return found is not None and found.tag not in streams


@contextmanager
def _writers_forgotten() -> Iterator[None]:
    """Parquet writers of dead tasks try to end their files when they are collected, and cannot."""
    hook = sys.unraisablehook

    def ignore(unraisable: Any) -> None:
        if "Parquet" not in getattr(unraisable.object, "__qualname__", ""):
            hook(unraisable)

    sys.unraisablehook = ignore
    try:
        yield
    finally:
        sys.unraisablehook = hook
