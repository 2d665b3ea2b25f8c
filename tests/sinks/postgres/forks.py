"""Drivers that die, or whose server does, at a chosen exchange with the server; each a fork of one process.

    python -m tests.sinks.postgres.forks

Reads one ``Run`` as JSON from each line of standard input, forks, and says how the fork has ended: ``done``,
``failed`` or ``killed``, and how many exchanges it had.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
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


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        run = Run(**json.loads(line))
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.close(reader)
            os.write(writer, drive(run).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            said = answer.read()
        os.waitpid(child, 0)
        print(said or "killed", flush=True)  # noqa: T201 - how it answers


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


@contextlib.contextmanager
def drivers() -> Iterator[Any]:
    """A function that runs a ``Run`` and says how it ended."""
    command = [sys.executable, "-m", "tests.sinks.postgres.forks"]
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(  # noqa: S603 - ours
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def driver(run: Run) -> str:
            print(json.dumps(asdict(run)), file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        yield driver
        process.stdin.close()


if __name__ == "__main__":
    main()
