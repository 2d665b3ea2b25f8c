"""Where a history plays: one world, one sink, one query, and the means to let something happen there."""

from __future__ import annotations

from random import Random
from typing import Any, Protocol

from filesink.commit.replay import EpochOptions
from filesink.errors import FilesinkError
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.ledger.identity import OnNewQuery
from filesink.operations.maintenance import Lost, Maintenance
from filesink.operations.replacing.refresh import Refresh
from property_tests.simulation.observer.foreign import plant_foreign_files
from property_tests.simulation.observer.observer import Observer
from property_tests.simulation.observer.sim_metastore import BASE, Service
from property_tests.simulation.observer.uploads import UploadWatch
from property_tests.simulation.scenario import Scenario
from property_tests.simulation.spark.fake_spark import Checkpoint, Driver
from property_tests.simulation.spark.machine import Address, Machine
from property_tests.simulation.workload import Source, plan_of
from property_tests.simulation.world.bucket import Bucket
from property_tests.simulation.world.clock import SimClock, SimIds
from property_tests.simulation.world.world import Process, World

_DAY_MS = 24 * 3600 * 1000
_AGES_MS = 10**6 * _DAY_MS  # removal by age is for sinks that nobody uses any more
_ENOUGH = 20_000  # calls; a history that needs more is stuck


class HasProcess(Protocol):
    """Whoever acts in a process of its own: a driver, a batch job, an operator."""

    @property
    def process(self) -> Process:
        """Which may be killed."""


class Stage:
    """What all scenes of a history share. Whoever acts in one gets this, and never the history itself.

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
        self.clones: list[Checkpoint] = []

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
        refresh = Refresh(tiers=self.sink, base_path=BASE)
        driver = Driver(
            self.machine,
            self.sink if compacting is None else compacting.choose(self.sink, self.random),
            source=source or self.source,
            checkpoint=checkpoint or self.checkpoint,
            options=EpochOptions(
                keep_batches=self.scenario.shape.keep_batches, on_new_query=on_new_query, make_way=refresh
            ),
            number=len(self.drivers),
        )
        self.drivers.append(driver)
        self.observer.operations.begin(driver.process, refresh)
        driver.start()
        return driver

    def run_query(
        self,
        checkpoint: Checkpoint | None = None,
        *,
        source: Source | None = None,
        on_new_query: OnNewQuery = OnNewQuery.REFUSE,
    ) -> Exception | None:
        """A new driver process from its start to its end, and what it fails with."""
        driver = self.start(checkpoint, source=source, on_new_query=on_new_query)
        self.until(lambda: driver.ended)
        self.end_process(driver, workers=True)
        return driver.error

    def until(self, condition: Any) -> None:
        """Let everything go on until ``condition`` holds."""
        self.world.run_at_most(_ENOUGH, condition)

    def end_process(self, driver: HasProcess, *, workers: bool = False) -> None:
        """Kill a driver, and with it all of its workers or some."""
        if not driver.process.dead:
            self.world.kill(driver.process)
        for child in driver.process.children:
            if not child.dead and (workers or self.machine.chance(self.machine.trouble.workers_die)):
                self.world.kill(child)

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

    def clone(self) -> None:
        """A second driver on a copy of the checkpoint, side by side with the first."""
        self.clones.append(self.checkpoint.copy())
        self.start(self.clones[-1])

    def one_more_batch(self, name: str = "99") -> None:
        """Data that the next start will find."""
        self.source.add_batch(name, 2, self.random)
