"""The sink of 40 lines that the documentation shows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from filesink import StoreLedger
from filesink.api import Sink
from property_tests.torture.destination import Delivery, Destination, Place
from property_tests.torture.steps import Steps
from tests.examples.toy_sink import IdSink

_OF_A_DATABASE = ("execute", "executemany", "commit")


class ToyTable(Destination):
    """Its table, read by a statement of our own."""

    def place(self, kind: str, directory: Path, server: Any) -> Place:
        """See ``Destination.place``: the sink makes its table."""
        del kind, directory, server
        return {}

    def arrived(self, place: Place) -> list[Delivery]:
        """See ``Destination.arrived``."""
        with closing(sqlite3.connect(f"{place['directory']}/ids.db")) as database:
            known = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            return [Delivery(row) for (row,) in database.execute("SELECT id FROM ids")] if known else []

    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """See ``Destination.sink``."""
        return IdSink(ledger=StoreLedger(place["directory"]), uid="ids")

    def watch(self, steps: Steps) -> None:
        """See ``Destination.watch``."""
        super().watch(steps)
        watch_databases(steps)


def watch_databases(steps: Steps) -> None:
    """Count the statements of this process."""
    methods = {name: steps.counted(getattr(sqlite3.Connection, name)) for name in _OF_A_DATABASE}
    counted = type("Counted", (sqlite3.Connection,), methods)
    sqlite3.connect = partial(sqlite3.connect, factory=counted)  # type: ignore[assignment]
