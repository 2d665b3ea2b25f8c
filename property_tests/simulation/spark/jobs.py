"""Spark's jobs: partitions, attempts, twins, zombies. See ``fake_spark`` for what they are modelled after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from filesink.errors import FilesinkError
from filesink.ports import Losers
from property_tests.simulation.spark.machine import Machine
from property_tests.simulation.workload import UNFIT, Source
from property_tests.simulation.world.clock import SimClock
from property_tests.simulation.world.world import Process

_MAX_ATTEMPTS = 4  # spark.task.maxFailures
Body = Callable[["Attempt", Iterator[pa.RecordBatch]], bytes]


class SparkError(RuntimeError):
    """What a job raises when a task has failed too often, or when the JVM is gone."""


class Owner(Protocol):
    """The driver of a job."""

    machine: Machine
    source: Source
    process: Process

    def require_jvm(self) -> None:
        """Raise what py4j raises when the JVM is gone."""
        ...


@dataclass(slots=True, eq=False)
class Attempt:
    """One try of one task."""

    subtask: int
    number: int
    process: Process
    result: bytes | None = None
    failed: bool = False

    @property
    def ended(self) -> bool:
        """Whether Spark has heard of its end: a dead worker is noticed too."""
        return self.failed or self.result is not None or self.process.dead


def _has_news(attempts: list[Attempt], known: int) -> bool:
    """Whether an attempt has ended since ``known`` were running."""
    return not known or len([one for one in attempts if not one.ended]) < known


class SimJob:
    """One batch DataFrame; implements ``filesink.ports.WriteJob``.

    Args:
        driver: whose job it is.
        rows: of the batch.
        run_id: of the query's run.
    """

    time_zone = "UTC"
    offsets = ""

    def __init__(self, driver: Owner, rows: list[str], *, run_id: str) -> None:
        self._driver = driver
        self._machine = driver.machine
        self._rows = rows
        self.run_id = run_id
        self._started: list[Attempt] = []
        self.quiet = True  # whether no attempt has gone on behind the back of the job when it ended

    @property
    def schema(self) -> pa.Schema:
        """See ``WriteJob.schema``."""
        return self._driver.source.schema(self._rows)

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        """See ``WriteJob.write``."""
        work: Any = task.__self__  # type: ignore[attr-defined]
        clock = SimClock(self._machine.world)

        def run(attempt: Attempt, batches: Iterator[pa.RecordBatch]) -> bytes:
            result = work.run_with(
                attempt.subtask, attempt.number, batches, clock=clock, ids=self._machine.ids
            )
            return bytes(result)

        return self._run(run)

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``."""
        counts = self._run(lambda _, batches: str(sum(batch.num_rows for batch in batches)).encode())
        return sum(int(count) for count in counts)

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``; a cluster with speculation says so whether or not a twin ran."""
        return Losers.POSSIBLE if self._machine.trouble.twin else Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True

    def _run(self, body: Body) -> list[bytes]:
        self._driver.require_jvm()
        pieces = self._partitions()
        attempts = [self._start(body, subtask, 0, piece) for subtask, piece in enumerate(pieces)]
        results: dict[int, bytes] = {}
        while len(results) < len(pieces):
            running = [attempt for attempt in attempts if not attempt.ended]
            known = len(running)
            self._machine.world.wait(partial(_has_news, attempts, known))
            for attempt in [attempt for attempt in attempts if attempt.ended]:
                attempts.remove(attempt)
                self._hear(attempt, attempts, results, pieces, body)
        self.quiet = self.quiet and all(attempt.ended for attempt in self._started)
        return [results[subtask] for subtask in sorted(results)]

    def _hear(self, attempt, attempts, results, pieces, body) -> None:  # type: ignore[no-untyped-def]
        """What Spark does when an attempt has ended."""
        subtask = attempt.subtask
        if subtask in results:
            return
        if attempt.result is not None and not self._machine.chance(self._machine.trouble.result_lost):
            results[subtask] = attempt.result
            return
        if any(other.subtask == subtask for other in attempts):
            return  # its twin is still running
        if attempt.number + 1 >= _MAX_ATTEMPTS:
            raise SparkError(f"task {subtask} failed {_MAX_ATTEMPTS} times")
        attempts.append(self._start(body, subtask, attempt.number + 1, pieces[subtask]))
        if self._machine.chance(self._machine.trouble.twin):
            attempts.append(self._start(body, subtask, attempt.number + 2, pieces[subtask]))

    def _partitions(self) -> list[list[str]]:
        """The rows, cut anew each time: a replay may come with other partitions (or none)."""
        random, count = self._machine.world.random, self._driver.source.shape.partitions
        if not self._rows and random.random() < 0.5:
            return []
        count = max(1, count if random.random() < 0.7 else random.randint(1, 3))
        pieces: list[list[str]] = [[] for _ in range(count)]
        for row in self._rows:
            pieces[random.randrange(count)].append(row)
        return pieces

    def _start(
        self,
        body: Body,
        subtask: int,
        number: int,
        rows: list[str],
    ) -> Attempt:
        driver = self._driver
        process = Process(f"{driver.process.name}/t{subtask}.{number}", lineage=driver.process)
        driver.process.children.append(process)
        attempt = Attempt(subtask, number, process)
        self._started.append(attempt)

        def work() -> None:
            try:
                attempt.result = body(attempt, self._batches(rows))
            except (FilesinkError, SparkError):
                attempt.failed = True  # Spark hears that it failed, no more
            except Exception as error:  # noqa: BLE001 - this is the check
                self._machine.world.fail(f"I8: a task raises {type(error).__name__}: {error}")

        self._machine.world.spawn(process.name, process, work)
        if number == 0 and self._machine.chance(self._machine.trouble.twin):
            twin = Process(f"{process.name}twin", lineage=driver.process)
            driver.process.children.append(twin)
            self._twin(body, subtask, rows, twin)
        return attempt

    def _twin(self, body, subtask, rows, process) -> None:  # type: ignore[no-untyped-def]
        """A copy of a task whose result nobody takes; it may go on for long."""
        attempt = Attempt(subtask, 1, process)
        self._started.append(attempt)

        def work() -> None:
            try:
                body(attempt, self._batches(rows))
            except (FilesinkError, SparkError):
                pass  # nobody listens
            except Exception as error:  # noqa: BLE001 - this is the check
                self._machine.world.fail(f"I8: a late task raises {type(error).__name__}: {error}")
            attempt.failed = True  # as far as Spark is concerned

        self._machine.world.spawn(process.name, process, work)

    def _batches(self, rows: list[str]) -> Iterator[pa.RecordBatch]:
        random = self._machine.world.random
        whole = self._driver.source.arrow(rows) if rows else None
        start = 0
        while whole is not None and start < len(rows):
            if self._machine.chance(self._machine.trouble.task_fails):
                raise SparkError("the task was asked to fail")
            end = start + random.randint(1, len(rows))
            yield whole.slice(start, end - start)
            start = end
        if self._machine.chance(self._machine.trouble.task_fails):
            raise SparkError("the task was asked to fail at its end")


class UnfitJob(SimJob):
    """The same batch, offered with columns that cannot follow those of the batches before."""

    schema = UNFIT

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        """See ``WriteJob.write``; it must not come to that."""
        del task
        self._machine.world.fail("I16: tasks run although their columns cannot follow")
        return []


class _ItemsJob(SimJob):
    """One task for each item of other work than writing: retried, with twins, and of any result."""

    def run(self, function: Callable[[Any], Any]) -> list[Any]:
        """The results, in the order of the items."""
        return self._run(lambda _, items: function(next(items)))

    def _partitions(self) -> list[list[Any]]:
        return [[item] for item in self._rows]

    def _batches(self, rows: list[Any]) -> Iterator[Any]:
        if self._machine.chance(self._machine.trouble.task_fails):
            raise SparkError("the task was asked to fail")
        yield rows[0]


class SimRunner:
    """Runs items as tasks of a job; implements ``filesink.ports.TaskRunner``."""

    def __init__(self, driver: Owner) -> None:
        self._driver = driver
        self.quiet = True  # whether no attempt has outlived its job

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """See ``TaskRunner.run``."""
        job = _ItemsJob(self._driver, list(items), run_id="")
        results = job.run(function)
        self.quiet = self.quiet and job.quiet
        return results
