"""Drivers that die, or whose server does, at a chosen exchange with the server; see ``tests.sinks.forks``."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from filesink import FilesinkError, PostgresServer, PostgresTable, StoreLedger
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ports import Ports, SerialRunner
from filesink.sinks.postgres.tiers import PostgresTiers
from filesink.system import SystemClock, SystemIds
from tests.fakes import FakeJob, micro_batch
from tests.sinks.forks import serve
from tests.sinks.postgres.site import SCHEMA, rows

BATCHES = 2
IN_BATCH = 6


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a driver does: the first ``batches`` of a stream, each in ``tasks`` tasks.

    Attributes:
        die_at: the exchange with the server at which somebody dies; -1 for none.
        side: ``"before"`` or ``"after"`` it.
        postmaster: process of the server if that is who dies; 0 for the driver.
    """

    conninfo: str
    table: str
    directory: str
    options: dict[str, Any] = field(default_factory=dict)
    batches: int = BATCHES
    tasks: int = 2
    die_at: int = -1
    side: str = "before"
    postmaster: int = 0


@dataclass
class Exchanges:
    """Counts exchanges with the server, over all connections."""

    run: Run
    count: int = 0

    def pass_by(self, side: str) -> None:
        """Die, or kill, if it is time."""
        if self.count == self.run.die_at and side == self.run.side:
            if not self.run.postmaster:
                os.kill(os.getpid(), signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.run.postmaster, signal.SIGQUIT)
        if side == "after":
            self.count += 1


def counted(exchanges: Exchanges) -> type[psycopg.Connection[Any]]:
    """Connections that count."""

    class Counted(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            exchanges.pass_by("before")
            try:
                return super().wait(gen, *args, **kwargs)
            finally:
                exchanges.pass_by("after")

    return Counted


def drive(run: Run) -> str:
    """One driver, from its start to its end."""
    exchanges = Exchanges(run)
    psycopg.connect = counted(exchanges).connect  # type: ignore[assignment]
    try:
        run_stream(run)
    except FilesinkError as error:
        return f"failed {exchanges.count} {error}"
    return f"done {exchanges.count}"


def run_stream(run: Run) -> None:
    """Each batch in its turn, as a query that was started again does."""
    sink = PostgresTiers(
        server=PostgresServer(run.conninfo),
        table=PostgresTable(run.table, **run.options),
        ledger=StoreLedger(Path(run.directory) / "ledger"),
        uid="u",
    )
    sink.prepare(SCHEMA)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    driver = EpochLoop(sink, sink.open_ledger("uid-u"), ports=ports, options=EpochOptions())
    for batch in range(run.batches):
        ids = range(batch * IN_BATCH, (batch + 1) * IN_BATCH)
        tasks = [[rows(*ids[task :: run.tasks])] for task in range(run.tasks)]
        driver.run(micro_batch(batch), FakeJob(tasks, ports.clock, ports.ids, schema=SCHEMA))


if __name__ == "__main__":
    serve(lambda order: drive(Run(**order)))
