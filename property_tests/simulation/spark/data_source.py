"""A query through ``format("filesink")``: Spark runs the tasks, and a process of its own commits.

Modelled after Spark 4.3: tasks read the slot themselves; commit runs in a process that has seen no
task and may go on when its JVM has died; after it has failed, or died, abort is called with the same
messages in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa

from filesink.commit.external_epochs import CollectedEpochs, counted, slot_for
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions, OnGap
from filesink.commit.task import WriteTask
from filesink.errors import FilesinkError
from filesink.ledger.record import MicroBatch
from filesink.ports import Ports, SerialRunner
from property_tests.simulation.spark.fake_spark import Driver
from property_tests.simulation.spark.jobs import Attempt, SimJob, SparkError
from property_tests.simulation.workload import SCHEMA
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.world import Process

Message = tuple[int | None, bytes]  # slot and result of a task
_OPTIONS = EpochOptions(on_gap=OnGap.REFUSE)


class CollectingJob(SimJob):
    """A batch whose tasks write for the slot that each of them has read."""

    def collect(self, driver: Driver, cause: MicroBatch) -> list[Message]:
        """Run the tasks; one message of each."""

        def body(attempt: Attempt, batches: Iterator[pa.RecordBatch]) -> bytes:
            ledger = driver.sink.open_ledger(_sink_id(driver))
            slot = slot_for(cause, ledger, sink=driver.sink, schema=self.schema, options=_OPTIONS)
            if slot is None:
                rows = sum(batch.num_rows for batch in batches)
                return b"\n" + counted(driver.sink, rows, subtask=attempt.subtask, attempt=attempt.number)
            clock = SimClock(self._machine.world)
            task = WriteTask(
                sink=driver.sink,
                sink_id=_sink_id(driver),
                slot=slot,
                driver_ms=clock.now_ms(),
                time_zone=self.time_zone,
            )
            result = task.run_with(
                attempt.subtask, attempt.number, batches, clock=clock, ids=self._machine.ids
            )
            return b"%d\n" % slot + result

        return [_message(data) for data in self._run(body)]


class DataSourceDriver(Driver):
    """One driver process of such a query."""

    def _query(self) -> None:
        run_id = f"{self.process.name}-run{self._runs}"
        self.sink.prepare(SCHEMA)
        next_batch = max(self.checkpoint.commits, default=-1) + 1
        for number in range(next_batch, len(self.source.batches)):
            self.require_jvm()
            rows = self.checkpoint.offsets.setdefault(number, ("", self.source.batches[number]))[1]
            cause = MicroBatch(query_id=self.checkpoint.query_id, batch_id=number, fingerprint="")
            job = CollectingJob(self, rows, run_id=run_id)
            messages = job.collect(self, cause)
            if not messages:
                messages = job.collect(self, cause)
            outcome = self._commit(cause, messages, job.schema)
            self.machine.observer.check_success({"sink": _sink_id(self), "slot": outcome.slot}, rows)
            self.checkpoint.commits.add(number)

    def _commit(self, cause: MicroBatch, messages: list[Message], schema: pa.Schema) -> Outcome[object]:
        slots = {slot for slot, _ in messages}
        slot = slots.pop() if len(slots) == 1 else None
        outcomes: list[Outcome[object]] = []

        def commit() -> None:
            results = [result for _, result in messages]
            outcomes.append(self._epochs().commit(cause, results, slot=slot, schema=schema))

        error = self._in_a_process("commit", commit)
        if outcomes:
            return outcomes[0]
        with suppress(FilesinkError, SparkError):  # Spark logs it and raises what commit has raised
            self._in_a_process("abort", lambda: self._abort(messages))
        raise error or SparkError("the process that commits has died")

    def _abort(self, messages: list[Message]) -> None:
        self._epochs().abort([result for _, result in messages], files_of=_sink_id(self))

    def _epochs(self) -> CollectedEpochs[object, object, object]:
        machine = self.machine
        ports = Ports(clock=SimClock(machine.world), ids=machine.ids, runner=SerialRunner())
        return CollectedEpochs(
            self.sink, self.sink.open_ledger(_sink_id(self)), ports=ports, options=_OPTIONS
        )

    def _in_a_process(self, name: str, work: Callable[[], None]) -> FilesinkError | None:
        """Wait until ``work`` has ended in a process of its own; what it has raised, if it has."""
        errors: list[FilesinkError] = []

        def body() -> None:
            try:
                work()
            except FilesinkError as error:
                errors.append(error)
            except Exception as error:  # noqa: BLE001 - this is the check
                self.machine.world.fail(f"I8: {name} raises {type(error).__name__}: {error}")

        process = Process(f"{self.process.name}/{name}", lineage=self.process)
        self.process.children.append(process)
        actor = self.machine.world.spawn(process.name, process, body)
        self.machine.world.wait(lambda: actor.done or process.dead)
        return errors[0] if errors else None


def _sink_id(driver: Driver) -> str:
    return f"uid-{driver.sink.uid}"


def _message(data: bytes) -> Message:
    slot, _, result = data.partition(b"\n")
    return (int(slot) if slot else None), result
