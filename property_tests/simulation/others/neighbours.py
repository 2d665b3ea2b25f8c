"""Others who write below the same base path, beside the query of a history and with sinks of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import append_sink_id, batch_write
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from property_tests.simulation.observer.reading import Chain, Record
from property_tests.simulation.picture import picture
from property_tests.simulation.scenario import Neighbour
from property_tests.simulation.spark.data_source import DataSourceDriver
from property_tests.simulation.spark.fake_spark import Checkpoint, Driver
from property_tests.simulation.spark.jobs import SimJob
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import SCHEMA, Source, plan_of
from property_tests.simulation.world.clock import SimClock


class BatchDriver(Driver):
    """One process that writes the first batch of its source as one batch with a ``txn_id``."""

    def _query(self) -> None:
        machine, rows = self.machine, self.source.batches[0]
        self.sink.prepare(SCHEMA)
        sink_id, cause = batch_write(SaveMode.APPEND, self.sink.uid, "t", machine.ids)
        ports = Ports(clock=SimClock(machine.world), ids=machine.ids, runner=SerialRunner())
        loop = EpochLoop(self.sink, self.sink.open_ledger(sink_id), ports=ports, options=EpochOptions())
        outcome = loop.run(cause, SimJob(self, rows, run_id=""))
        machine.observer.check_success({"sink": sink_id, "slot": outcome.slot}, rows)


_DRIVERS: dict[Neighbour, type[Driver]] = {
    Neighbour.QUERY: Driver,
    Neighbour.BATCH: BatchDriver,
    Neighbour.DATA_SOURCE: DataSourceDriver,
}


@dataclass(slots=True)
class Neighbours:
    """The neighbour of one history; without one nothing here does anything."""

    stage: Stage
    kind: Neighbour
    source: Source
    sink: FileTiers
    checkpoint: Checkpoint
    drivers: Sequence[Driver] = ()

    @staticmethod
    def of(stage: Stage, kind: Neighbour) -> Neighbours:
        """A neighbour that has not begun yet; the observer knows its rows."""
        shape = stage.scenario.shape
        if shape.announce_after_ms is not None:
            kind = Neighbour.NOBODY  # every partition is to be announced, and a neighbour announces none
        if kind is Neighbour.DATA_SOURCE:
            shape = replace(shape, rolls=True)  # it closes every part at each epoch
        source = Source(shape)
        if kind is not Neighbour.NOBODY:
            for number in range(2):
                source.add_batch(f"n{number}", 3, Random(number))
            stage.observer.sources.append(source)
        if kind is Neighbour.BATCH:
            del source.batches[1:]
        sink = FileTiers(address=stage.sink.address, plan=plan_of(shape), uid="neighbour")
        return Neighbours(stage, kind, source, sink, Checkpoint("neighbour"))

    def go_on(self) -> None:
        """Begin, or begin again if the last process has failed or died."""
        if self.kind is Neighbour.NOBODY or any(driver.finished for driver in self.drivers):
            return
        if self.drivers and not self.drivers[-1].ended:
            if not self.stage.machine.chance(self.stage.machine.trouble.jvm_dies):
                return
            self.drivers[-1].jvm_alive = False  # its Python goes on beside the next one
        elif self.drivers:
            self.stage.end_process(self.drivers[-1])
        self._start()

    def finish(self) -> None:
        """In peace it comes to its end, and what was written once is not written again (I1, I7, I9)."""
        if self.kind is Neighbour.NOBODY:
            return
        self._run_to_its_end()
        self._recover_losers()
        self.stage.operate("sweep")  # a finished batch has no later epoch that does it
        self.stage.until(lambda: not self.stage.world._actors)
        before = picture(self.stage)
        self._run_to_its_end()
        if picture(self.stage) != before:
            self.stage.world.fail(f"I9: {self.kind.value} has done its work twice")

    def _recover_losers(self) -> None:
        """See to an append that had decided and died before it claimed the ``txn_id``: another one has it.

        Its record stands, so no sweep may take what that names; a repeat changes nothing; and to this chain
        no other append will come.
        """
        if self._losers():
            self.stage.operate("recover", sink=self.sink)
        if self._losers():
            self.stage.world.fail("I7: recover() leaves an append half done that has lost its txn_id")

    def _losers(self) -> list[Record]:
        observer = self.stage.observer
        chain = observer.chains.get(append_sink_id("neighbour"), Chain())
        return [record for record in chain.at_work() if observer.is_void(record)]

    def _run_to_its_end(self) -> None:
        driver = self._start()
        self.stage.until(lambda: driver.ended)
        if driver.error is not None:
            error = driver.error
            self.stage.world.fail(
                f"I7: without faults {self.kind.value} fails: {type(error).__name__}: {error}"
            )
        self.stage.end_process(driver, workers=True)

    def _start(self) -> Driver:
        driver = _DRIVERS[self.kind](
            self.stage.machine,
            self.sink,
            source=self.source,
            checkpoint=self.checkpoint,
            options=EpochOptions(),
            number=100 + len(self.drivers),
        )
        self.drivers = (*self.drivers, driver)
        driver.start()
        return driver
