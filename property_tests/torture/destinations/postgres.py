"""``PostgresSink``: the rows of a table, of each of its ways to get there."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pyarrow as pa

from filesink import PostgresServer, PostgresTable, StoreLedger
from filesink.api import Sink
from filesink.sinks.postgres.committables import prefix_of
from filesink.sinks.postgres.tiers import PostgresTiers
from property_tests.torture.destination import Delivery, Destination, Place
from property_tests.torture.steps import Steps
from tests.sinks.postgres.server import TestServer, running

_PLAIN, _KEY = "id bigint, name text", "id bigint PRIMARY KEY, name text"
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "staged": (_PLAIN, {}),
    "guarded": (_PLAIN + ", CHECK (id >= 0)", {}),
    "prepared": (_PLAIN, {"commit": "prepared"}),
    "keys": (_KEY, {"keys": ["id"]}),
    "newest": (_KEY, {"keys": ["id"], "newest_by": "name"}),
}


class PostgresRows(Destination):
    """A table in a schema of its own. Its rows are asked for by a connection of our own."""

    kinds = tuple(_KINDS)
    deadly: ClassVar[signal.Signals] = signal.SIGQUIT  # all of its processes at once, as SIGKILL would not

    def serving(self) -> AbstractContextManager[TestServer]:
        """See ``Destination.serving``."""
        return running()

    def place(self, kind: str, directory: Path, server: TestServer) -> Place:
        """See ``Destination.place``."""
        del directory
        place = {"conninfo": server.conninfo, "schema": f"t_{uuid.uuid4().hex}"}
        _do(place, "CREATE SCHEMA {schema}")
        _do(place, f"CREATE TABLE {{schema}}.goods ({_KINDS[kind][0]})")
        return place

    def arrived(self, place: Place) -> list[Delivery]:
        """See ``Destination.arrived``."""
        rows = _do(place, "SELECT id, name FROM {schema}.goods")
        return [Delivery(row if name == f"n{row}" else -1) for row, name in rows]

    def left(self, place: Place) -> list[str]:
        """See ``Destination.left``: staged tables, and prepared transactions."""
        prefix = prefix_of(self._tiers(place).target).rstrip("b")
        tables = _do(place, "SELECT tablename FROM pg_tables WHERE schemaname = %s", place["schema"])
        in_doubt = _do(place, "SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, %s)", prefix)
        return [name for (name,) in (*tables, *in_doubt) if name not in {"goods", "filesink_epochs"}]

    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """See ``Destination.sink``."""
        return self._tiers(place)

    def batch(self, rows: Sequence[int]) -> pa.RecordBatch:
        """See ``Destination.batch``."""
        names = pa.array([f"n{row}" for row in rows], pa.string())
        return pa.RecordBatch.from_arrays([pa.array(rows, pa.int64()), names], ["id", "name"])

    def watch(self, steps: Steps) -> None:
        """See ``Destination.watch``."""
        super().watch(steps)
        steps.count(psycopg.Connection, "wait")

    def _tiers(self, place: Place) -> PostgresTiers:
        return PostgresTiers(
            server=PostgresServer(place["conninfo"]),
            table=PostgresTable(f"{place['schema']}.goods", **_KINDS[place["kind"]][1]),
            ledger=StoreLedger(f"{place['directory']}/ledger"),
            uid="u",
        )


def _do(place: Place, statement: str, *values: str) -> list[Any]:
    """What a statement of our own finds; ``{schema}`` is that of the place."""
    with psycopg.connect(place["conninfo"], autocommit=True) as connection:
        named = statement.replace("{schema}", place["schema"]).encode()
        found = connection.execute(named, values or None)
        return found.fetchall() if found.description else []
