"""``CollectSink``: what a client has kept, which dies as well."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from filesink import CollectSink
from filesink.api import Sink
from filesink.sinks.collect.marks import Run
from property_tests.torture.destination import Delivery, Destination, Place

_AT_A_TIME = 4  # rows that the client keeps with its position


class Collected(Destination):
    """A path, and beside it the client's own database."""

    has_client = True

    def place(self, kind: str, directory: Path, server: Any) -> Place:
        """See ``Destination.place``."""
        del kind, server
        with _kept(directory) as database:
            database.execute("CREATE TABLE taken (id, name)")
            database.execute("CREATE TABLE place (text)")
        return {}

    def arrived(self, place: Place) -> list[Delivery]:
        """See ``Destination.arrived``: what the client has kept; batches come in their order."""
        with _kept(place["directory"]) as database:
            found = database.execute("SELECT id, name FROM taken ORDER BY rowid").fetchall()
        rows = [row if name == f"n{row}" else -1 for row, name in found]
        batches = [row // self.rows_in_batch for row in rows]
        return [Delivery(row) for row in rows] if batches == sorted(batches) else [Delivery(-1)]

    def left(self, place: Place) -> list[str]:
        """See ``Destination.left``: all was acknowledged before the last epoch but its own rows."""
        last = self.batches * self.rows_in_batch
        files = Path(place["directory"], "collected").glob("*.arrow")
        return [
            path.name for path in files if pc.min(pa.ipc.open_file(str(path)).read_all()["id"]).as_py() < last
        ]

    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """See ``Destination.sink``."""
        return _sink(place)._sink

    def batch(self, rows: Sequence[int]) -> pa.RecordBatch:
        """See ``Destination.batch``."""
        names = pa.array([f"n{row}" for row in rows], pa.string())
        return pa.RecordBatch.from_arrays([pa.array(rows, pa.int64()), names], ["id", "name"])

    @contextmanager
    def query(self, place: Place) -> Iterator[None]:
        """See ``Destination.query``: its begin and its end are on record."""
        marks = _sink(place)._marks()
        number = marks.begin("torture")
        yield
        marks.end(number, Run.ENDED, "torture")

    def take(self, place: Place) -> None:
        """See ``Destination.take``: a few rows at a time, in one transaction with their position."""
        if not Path(place["directory"], "collected", "_filesink").exists():
            return  # no driver has begun, which a client is told
        with _kept(place["directory"]) as database:
            while True:
                found = database.execute("SELECT text FROM place").fetchone()
                results = _sink(place).results(None if found is None else found[0], wait=False)
                some = [(row["id"], row["name"]) for row in islice(results, _AT_A_TIME)]
                if not some:
                    return
                with database:
                    database.executemany("INSERT INTO taken VALUES (?, ?)", some)
                    database.execute("DELETE FROM place")
                    database.execute("INSERT INTO place VALUES (?)", (str(results.position),))


def _sink(place: Place) -> CollectSink:
    return CollectSink(f"{place['directory']}/collected")


@contextmanager
def _kept(directory: str | Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{directory}/taken.db")) as database:
        yield database
