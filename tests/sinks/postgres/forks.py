"""Drivers that die, or whose server does, at a chosen exchange with the server; see ``tests.sinks.forks``."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from filesink import FilesinkError, PostgresServer, PostgresTable, StoreLedger
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ports import Ports, SerialRunner
from filesink.sinks.postgres.tiers import PostgresTiers
from filesink.system import SystemClock, SystemIds
from tests.fakes import FakeJob, micro_batch
from tests.sinks.forks import serve
from tests.sinks.postgres.site import rows

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
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    driver = EpochLoop(sink, sink.open_ledger("uid-u"), ports=ports, options=EpochOptions())
    for batch in range(run.batches):
        ids = range(batch * IN_BATCH, (batch + 1) * IN_BATCH)
        given = changes(batch, ids) if "row_kind" in run.options else rows(*ids)
        tasks = [[given.take(list(range(task, given.num_rows, run.tasks)))] for task in range(run.tasks)]
        sink.prepare(given.schema)
        driver.run(micro_batch(batch), FakeJob(tasks, ports.clock, ports.ids, schema=given.schema))


def changes(batch: int, ids: Iterable[int]) -> pa.RecordBatch:
    """Changes that leave the same rows as ``rows(*ids)``; from the second batch on with a further column.

    The first batch also brings a row that all later ones take away.
    """
    found = [("+I", one, f"first{one}", 0) for one in ids]
    found += [("+U", one, f"n{one}", 2) for one in ids] + [("-U", one, f"first{one}", 2) for one in ids]
    found.append(("+I", -1, "goes", 1) if batch == 0 else ("-D", -1, None, 1))
    kinds, keys, names, orders = (list(column) for column in zip(*found, strict=True))
    columns: dict[str, Any] = {"kind": kinds, "id": keys, "name": names, "at": orders}
    if batch:
        columns["more"] = keys
    return pa.RecordBatch.from_pydict(columns)


if __name__ == "__main__":
    serve(lambda order: drive(Run(**order)))
