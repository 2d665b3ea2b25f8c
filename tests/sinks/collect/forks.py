"""Drivers and clients of ``CollectSink`` that die at a call of their store; see ``tests.sinks.forks``."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from filesink import CollectSink, FilesinkError
from filesink.sinks.collect.marks import Run as Query
from filesink.storage import address
from filesink.storage.faulty import Fault, FaultyStore
from tests.fakes import micro_batch
from tests.sinks.collect.site import Site, rows
from tests.sinks.forks import serve

BATCHES, TASKS, IN_TASK = 4, 2, 3


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one process does.

    Attributes:
        role: ``"driver"``: the first ``batches`` of a stream, and its end. ``"client"``: takes all that is
            there, and keeps rows and position together, as a program does that wants each row once.
        die_at: the call of its store at which it dies; -1 for none.
        side: ``"before"`` or ``"after"`` it.
    """

    directory: str
    role: str
    batches: int = BATCHES
    die_at: int = -1
    side: str = "before"


def drive(run: Run) -> str:
    """One process; ``done`` with the number of its calls, or ``failed``."""
    numbers, opened = count(), address.open_store

    def die(_operation: str, _path: str) -> Fault | None:
        number = next(numbers)
        if number == run.die_at and run.side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == run.die_at + 1 and run.side == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    address.open_store = lambda *place: FaultyStore(opened(*place), die)
    try:
        {"driver": query, "client": client}[run.role](run)
    except FilesinkError as error:
        return f"failed {next(numbers)} {error}"
    finally:
        address.open_store = opened
    return f"done {next(numbers)}"


def query(run: Run) -> None:
    """Each batch in its turn, as a query that was started again does."""
    site = Site(Path(run.directory) / "collected")
    marks = site.sink()._marks()
    loop, number = site.loop(), marks.begin()
    for batch in range(run.batches):
        loop.run(micro_batch(batch), site.job(partitions(batch)))
    loop.finish()
    marks.end(number, Query.ENDED)


def partitions(batch: int) -> list[Any]:
    """The same rows in the same order, whoever asks."""
    first = batch * TASKS * IN_TASK
    return [[rows(*range(one, one + IN_TASK))] for one in range(first, first + TASKS * IN_TASK, IN_TASK)]


def client(run: Run) -> None:
    """Every few rows in one transaction with their position."""
    with closing(sqlite3.connect(Path(run.directory) / "taken.db")) as database:
        database.execute("CREATE TABLE IF NOT EXISTS taken (id)")
        database.execute("CREATE TABLE IF NOT EXISTS place (text)")
        while True:
            found = database.execute("SELECT text FROM place").fetchone()
            sink = CollectSink(Path(run.directory) / "collected")
            results = sink.results(None if found is None else found[0], wait=False)
            some = [row["id"] for row in islice(results, 4)]
            if not some:
                return
            with database:
                database.executemany("INSERT INTO taken VALUES (?)", [(one,) for one in some])
                database.execute("DELETE FROM place")
                database.execute("INSERT INTO place VALUES (?)", (str(results.position),))


if __name__ == "__main__":
    serve(lambda order: drive(Run(**order)))
