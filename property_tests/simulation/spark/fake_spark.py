"""Spark as a sink meets it: micro-batches with offset and commit logs, tasks with attempts.

Modelled after Spark 4.3: offsets before the batch and commits after it; four attempts of a task; twins
that run at the same time, of which the first result wins; no call to a task that is killed; zombies
that go on after their result is no longer wanted; the same rows in other partitions when a batch is
replayed; a driver whose JVM is gone and whose Python goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from filesink.api import Sink
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.errors import FilesinkError, SchemaError, StagedDataLost
from filesink.ledger.record import MicroBatch
from filesink.ports import Ports
from property_tests.simulation.spark.jobs import SimJob, SimRunner, SparkError, UnfitJob
from property_tests.simulation.spark.machine import Machine, SimLock
from property_tests.simulation.workload import SCHEMA, Source
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.world import Killed, Process


@dataclass(slots=True)
class Checkpoint:
    """What Spark keeps of a query: which rows a batch has, and which batches are done."""

    query_id: str
    offsets: dict[int, tuple[str, list[str]]] = field(default_factory=dict)  # fingerprint and rows
    commits: set[int] = field(default_factory=set)

    def copy(self) -> Checkpoint:
        """Another directory with the same content: a clone."""
        return Checkpoint(self.query_id, dict(self.offsets), set(self.commits))


class Driver:
    """One driver process that runs a query to the end of its source.

    Args:
        machine: where it runs.
        sink: what it writes to.
        source: what it reads; batches that the checkpoint knows are those of the checkpoint.
        checkpoint: its own.
        options: of the epochs.
    """

    def __init__(
        self,
        machine: Machine,
        sink: Sink[Any, Any, Any],
        *,
        source: Source,
        checkpoint: Checkpoint,
        options: EpochOptions,
        number: int,
    ) -> None:
        self.machine = machine
        self.sink = sink
        self.source = source
        self.checkpoint = checkpoint
        self.process = Process(f"driver{number}")
        self.error: Exception | None = None
        self.finished = False
        self.jvm_alive = True
        self._options = options
        self._runs = 0
        self._zombies = False  # whether an attempt has outlived its job
        self._loop: EpochLoop[Any, Any, Any] | None = None
        self._runner = SimRunner(self)

    def start(self) -> None:
        """Start the query; again after it has failed, in the same process and with the same sink."""
        self.error = None
        self._runs += 1
        self.machine.world.spawn(self.process.name, self.process, self._main)

    @property
    def ended(self) -> bool:
        """Whether this driver does nothing more by itself."""
        return self.process.dead or self.finished or self.error is not None

    def require_jvm(self) -> None:
        """Raise what py4j raises when the JVM is gone."""
        if not self.jvm_alive:
            raise SparkError("the JVM is gone")

    def loop(self) -> EpochLoop[Any, Any, Any]:
        """The sink's engine in this process."""
        if self._loop is None:
            machine = self.machine
            ports = Ports(clock=SimClock(machine.world), ids=machine.ids, runner=self._runner)
            name = f"uid-{self.sink.uid}" if self.sink.uid else f"query-{self.checkpoint.query_id}"
            self._loop = EpochLoop(self.sink, self.sink.open_ledger(name), ports=ports, options=self._options)
            self._loop._lock = SimLock(machine.world)  # type: ignore[assignment]
        return self._loop

    def _main(self) -> None:
        try:
            self._query()
            self.finished = True
        except (FilesinkError, SparkError) as error:
            self.error = error
            self._check_honest(error)
        except Exception as error:  # noqa: BLE001 - this is the check
            self.machine.world.fail(f"I8: the driver raises {type(error).__name__}: {error}")

    def _check_honest(self, error: Exception) -> None:
        """I8: nobody takes files away here, so nothing is lost, whatever cannot be looked at."""
        world = self.machine.world
        cut_copies = any(name == "copy" and mode == "c" for name, _, mode in world.fired)
        lost = isinstance(error, StagedDataLost) and error.code == "STAGED_DATA_LOST"
        noted = getattr(
            error, "__notes__", ()
        )  # that a rival may have been at work, but the ledger is unreadable
        if lost and not noted and not self.machine.spoiled and not cut_copies:
            world.fail(f"I8: nothing was lost and the driver says {error}")

    def _query(self) -> None:
        machine = self.machine
        run_id = f"{self.process.name}-run{self._runs}"
        self.sink.prepare(SCHEMA)
        loop = self.loop()
        next_batch = max(self.checkpoint.commits, default=-1) + 1
        for number in range(next_batch, len(self.source.batches)):
            self.require_jvm()
            known = self.checkpoint.offsets.setdefault(
                number, (f"{self.checkpoint.query_id}/{number}", self.source.batches[number])
            )
            self._maybe_upkeep(loop)
            cause = MicroBatch(query_id=self.checkpoint.query_id, batch_id=number, fingerprint=known[0])
            job = SimJob(self, known[1], run_id=run_id)
            outcome = self._offer_unfit(cause, known[1], run_id) or loop.run(cause, job)
            machine.observer.check_success(
                {"sink": loop.ledger.sink_id, "batch": number, "slot": outcome.slot}, known[1]
            )
            self._zombies |= not (job.quiet and self._runner.quiet)
            if not (self._zombies or outcome.replayed) and self._is_alone():
                machine.observer.check_no_garbage(self.process, outcome.slot)
            self.require_jvm()
            self.checkpoint.commits.add(number)
            machine.world.now_ms += machine.world.random.choice((0, 10, 1000))
            if machine.chance(machine.trouble.clock_jumps):
                machine.world.now_ms += machine.world.random.choice((-3_600_000, 3_600_000))
        self._end(loop)

    def _end(self, loop: EpochLoop[Any, Any, Any]) -> None:
        """The input has ended."""
        loop.finish()

    def _offer_unfit(self, cause: MicroBatch, rows: list[str], run_id: str) -> Outcome[Any] | None:
        """First with wrong columns, now and then; the outcome is that of a batch which is decided."""
        if self.source.shape.grows_at is None or cause.batch_id == 0:
            return None
        try:
            return self.loop().run(cause, UnfitJob(self, rows, run_id=run_id))
        except SchemaError:
            return None

    def _is_alone(self) -> bool:
        """Whether this is a driver that nothing has happened to, with no other beside it."""
        world = self.machine.world
        return not (
            self._runs > 1 or world.fired or self.process.name != "driver0" or world.has_others(self.process)
        )

    def _maybe_upkeep(self, loop: EpochLoop[Any, Any, Any]) -> None:
        if not self.machine.chance(self.machine.trouble.upkeep):
            return

        def tick() -> None:
            try:
                loop.upkeep()
            except Killed:
                raise
            except (FilesinkError, SparkError):
                pass  # the timer logs it and comes again
            except Exception as error:  # noqa: BLE001 - this is the check
                self.machine.world.fail(f"I8: upkeep raises {type(error).__name__}: {error}")

        self.machine.world.spawn(f"{self.process.name} timer", self.process, tick)
