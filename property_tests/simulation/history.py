"""One history: a workload, trouble, then peace, and the question whether all promises held."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from filesink.commit.replay import EpochOptions
from filesink.errors import FilesinkError, ReplayTooOldError
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.ledger.identity import OnNewQuery
from filesink.naming import parse_ours, upload_path
from filesink.operations.maintenance import Lost, Maintenance
from property_tests.simulation import epilogue, intruder
from property_tests.simulation.bucket import Bucket
from property_tests.simulation.clock import SimClock, SimIds
from property_tests.simulation.crowd import Crowd
from property_tests.simulation.disk import Cut
from property_tests.simulation.fake_spark import Checkpoint, Driver
from property_tests.simulation.forbidden import Forbidden
from property_tests.simulation.foreign import plant_foreign_files
from property_tests.simulation.machine import Address, Machine, Trouble
from property_tests.simulation.neighbours import Neighbour, Neighbours
from property_tests.simulation.observer import Observer
from property_tests.simulation.operating import Operating, Operator
from property_tests.simulation.overwriter import Overwriter, Overwrites
from property_tests.simulation.reading import all_files, is_hidden, tag_of
from property_tests.simulation.sim_metastore import BASE, Service
from property_tests.simulation.tidying import Tidier, Tidying
from property_tests.simulation.uploads import UploadWatch
from property_tests.simulation.workload import REAL_BOUNDS, Shape, Source, plan_of
from property_tests.simulation.world import Plan, Process, Violation, World

_LOG = logging.getLogger("filesink")
_MAX_RESTARTS = 8
_SPACE_IS_MADE = 0.3  # after each restart
_DAY_MS = 24 * 3600 * 1000
_AGES_MS = 10**6 * _DAY_MS  # removal by age is for sinks that nobody uses any more
_SWEPT_BY_ALL = ("_filesink/uid-", "_filesink/_layout/")  # by whoever writes there next
_ENOUGH = 20_000  # calls; a history that needs more is stuck


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a history is made of, besides its seed."""

    shape: Shape = field(default_factory=Shape)
    trouble: Trouble = field(default_factory=Trouble)
    plan: Plan = field(default_factory=Plan)
    pace: int = 0
    neighbour: Neighbour = Neighbour.NOBODY
    grace_ms: int = 0  # of its overwrites


@dataclass(slots=True)
class Result:
    """What became of a history."""

    operations: int
    fired: Counter[tuple[str, str, str]]
    drivers: int
    power_cuts: int
    violation: Violation | None


class History:
    """Runs one scenario.

    Args:
        seed: decides every choice.
        scenario: see there.
        trace: gets a line per call, if given.
    """

    def __init__(self, seed: int, scenario: Scenario, *, trace: Any = None) -> None:
        self.random = Random(seed)
        self.scenario = scenario
        self.world = World(self.random, scenario.plan, pace=scenario.pace)
        self.world.trace = trace
        self.source = Source.draw(scenario.shape, self.random)
        self.observer = Observer(self.world, [self.source])
        self.machine = Machine(self.world, self.observer, SimIds(), scenario.trouble)
        if scenario.shape.server is not None:
            clock = SimClock(self.world)
            bucket = Bucket(self.world.disk, clock.now_ms, scenario.shape.server)
            self.machine.bucket = bucket
            self.observer.uploads = UploadWatch(self.world, bucket, self.observer.chains)
            self.observer.uploads.is_void = self.observer.is_void
        self.metastore = Service(self.world, self.observer)
        self.sink = FileTiers(
            address=Address(self.machine),
            plan=plan_of(scenario.shape),
            uid="s",
            publishing=self._publishing(scenario.shape.announce_after_ms),
        )
        self.observer.graces.clock_is_sound = not scenario.trouble.clock_jumps
        self.checkpoint = Checkpoint("q")
        self.foreign = plant_foreign_files(self.observer)
        self.drivers: list[Driver] = []
        self.neighbours = Neighbours.of(self, scenario.neighbour)
        self.overwrites = Overwrites(self)
        self.tidying = Tidying(self)
        self.operating = Operating(self)
        self._days_passed = False
        self.clones: list[Checkpoint] = []
        self.calm_after = 0
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
                    epilogue.ask(self)
                    epilogue.ask_more(self)
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

    def clone(self) -> None:
        """A second driver on a copy of the checkpoint, side by side with the first."""
        self.clones.append(self.checkpoint.copy())
        self.start(self.clones[-1])

    def operate(
        self,
        what: str,
        *,
        sink: FileTiers | None = None,
        older_than_ms: int = _AGES_MS,
        ahead_ms: int = 2 * _AGES_MS,
    ) -> None:
        """Somebody sweeps by hand, on a host whose clock is wrong, or recovers and waits for it.

        ``sink`` is the one that is built for it, the query's if none is given.
        """
        process = Process(f"operator{len(self.drivers)}")

        def work() -> None:
            try:
                clock = SimClock(self.world, ahead_ms=ahead_ms if what == "sweep" else 0)
                maintenance = Maintenance(sink or self.sink, clock=clock, ids=self.machine.ids)
                if what == "sweep":
                    maintenance.sweep(older_than_ms)
                else:
                    maintenance.recover(Lost.RAISE, None)
            except FilesinkError:
                pass  # the operator reads it and tries again another day

        actor = self.world.spawn(process.name, process, work)
        if what == "recover":  # no query may be running meanwhile
            self.until(lambda: actor.done or process.dead)

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
        processes: list[Driver | Overwriter | Tidier | Operator] = [*self.drivers, *self.neighbours.drivers]
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

    def _publishing(self, delay_ms: int | None) -> Publishing | None:
        if delay_ms is None:
            return None
        self.observer.on_complete = self.metastore.check_complete
        self.observer.on_decided = self.metastore.check_decided
        return Publishing(commit=self.metastore.commit(delay_ms), base_path=BASE)

    def start(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        source: Source | None = None,
        on_new_query: OnNewQuery = OnNewQuery.REFUSE,
    ) -> Driver:
        """A new driver process that runs the query, or one of another ``source``."""
        compacting = self.scenario.shape.compacting
        driver = Driver(
            self.machine,
            self.sink if compacting is None else compacting.choose(self.sink, self.random),
            source=source or self.source,
            checkpoint=checkpoint or self.checkpoint,
            options=EpochOptions(keep_batches=self.scenario.shape.keep_batches, on_new_query=on_new_query),
            number=len(self.drivers),
        )
        self.drivers.append(driver)
        driver.start()
        return driver

    def until(self, condition: Any) -> None:
        """Let everything go on until ``condition`` holds."""
        self.world.run_at_most(_ENOUGH, condition)

    def end_process(self, driver: Driver | Overwriter | Tidier | Operator, *, workers: bool = False) -> None:
        """Kill a driver, and with it all of its workers or some."""
        if not driver.process.dead:
            self.world.kill(driver.process)
        for child in driver.process.children:
            if not child.dead and (workers or self.machine.chance(self.machine.trouble.workers_die)):
                self.world.kill(child)

    def one_more_batch(self, name: str = "99") -> None:
        """Data that the next start will find."""
        self.source.add_batch(name, 2, self.random)

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
        replaced = self.observer.replacements
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
