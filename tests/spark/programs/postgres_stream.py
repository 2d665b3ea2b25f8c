"""Streams a directory of flights into a table of PostgreSQL until nothing is left. Killed by tests.

    python -m tests.spark.programs.postgres_stream <staged|prepared|keys> <conninfo> <table> <directory>

Says ``started`` when the query runs and ``done`` when everything is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from filesink import PostgresSink, PostgresTable
from tests.spark import inputs, sessions

OPTIONS: dict[str, dict[str, Any]] = {
    "staged": {},
    "prepared": {"commit": "prepared"},
    "keys": {"keys": ["id"]},
}


def sink_of(kind: str, conninfo: str, table: str, directory: Path) -> PostgresSink:
    """The sink of the stream."""
    destination = PostgresTable(table, **OPTIONS[kind])
    return PostgresSink(conninfo, destination, ledger=directory / "ledger", uid="flights")


def main(kind: str, conninfo: str, table: str, directory: Path) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    df = inputs.flights(spark, directory / "source").repartition(2)
    query = sink_of(kind, conninfo, table, directory).start(
        df, checkpoint_location=directory / "checkpoint", available_now=True
    )
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
