"""Drivers of ``HttpSink`` that die at a chosen request; see ``tests.sinks.forks``."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from filesink import FilesinkError, HttpSink, Sending
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ports import Ports, SerialRunner
from filesink.sinks.http.client import HttpClient
from filesink.system import SystemClock, SystemIds
from tests.fakes import FakeJob, micro_batch
from tests.sinks.forks import serve

BATCHES, TASKS, IN_TASK = 3, 2, 7
SCHEMA = pa.schema([("id", pa.int64())])


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a driver does: a stream of ``BATCHES`` batches, and its end.

    Attributes:
        sending: options of ``Sending``.
        die_at: the request at which it dies; -1 for none.
        side: ``"before"`` or ``"after"`` it.
    """

    url: str
    directory: str
    sending: dict[str, Any] = field(default_factory=dict)
    die_at: int = -1
    side: str = "before"


def drive(run: Run) -> str:
    """One driver, from its start to its end; ``done`` with the number of its requests, or ``failed``."""
    numbers, exchange = count(), HttpClient._exchange

    def counted(client: HttpClient, *arguments: Any) -> Any:
        number = next(numbers)
        die(number, "before")
        answer = exchange(client, *arguments)
        die(number, "after")
        return answer

    def die(number: int, moment: str) -> None:
        if (number, moment) == (run.die_at, run.side):
            os.kill(os.getpid(), signal.SIGKILL)

    HttpClient._exchange = counted  # type: ignore[method-assign]
    try:
        run_stream(run)
    except FilesinkError as error:
        return f"failed {next(numbers)} {error}"
    return f"done {next(numbers)}"


def run_stream(run: Run) -> None:
    """Each batch in its turn, as a query that was started again does."""
    sending = Sending(records=3, in_flight=2, **run.sending)
    sink = HttpSink(run.url, ledger=Path(run.directory) / "ledger", sending=sending, uid="u")._sink
    sink.prepare(SCHEMA)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    driver = EpochLoop(sink, sink.open_ledger("uid-u"), ports=ports, options=EpochOptions())
    for batch in range(BATCHES):
        driver.run(micro_batch(batch), FakeJob(partitions(batch), ports.clock, ports.ids, schema=SCHEMA))  # type: ignore[arg-type]
    driver.finish()


def partitions(batch: int) -> list[list[pa.RecordBatch]]:
    """The same rows in the same order, whoever asks."""
    first = batch * TASKS * IN_TASK
    starts = range(first, first + TASKS * IN_TASK, IN_TASK)
    return [[pa.RecordBatch.from_pydict({"id": list(range(one, one + IN_TASK))}, SCHEMA)] for one in starts]


if __name__ == "__main__":
    serve(lambda order: drive(Run(**order)))
