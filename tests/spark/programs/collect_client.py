"""Takes what is collected, and keeps rows and position together. Killed and restarted by tests.

    python -m tests.spark.programs.collect_client <directory>

Says ``started`` before it looks for the first row, and ``done`` when the query has ended and all is taken.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path

from filesink import CollectSink
from tests.spark import sessions

AT_A_TIME = 70  # rows in a transaction


def main(directory: Path) -> None:
    """Run to the end of the query."""
    sessions.say("started")
    with closing(sqlite3.connect(directory / "taken.db")) as database:
        database.execute("CREATE TABLE IF NOT EXISTS taken (id)")
        database.execute("CREATE TABLE IF NOT EXISTS place (text)")
        is_complete = False
        while not is_complete:
            found = database.execute("SELECT text FROM place").fetchone()
            results = CollectSink(directory / "collected").results(None if found is None else found[0])
            ids = [(row["id"],) for row in islice(results, AT_A_TIME)]
            is_complete = results.is_complete
            with database:
                database.executemany("INSERT INTO taken VALUES (?)", ids)
                database.execute("DELETE FROM place")
                database.execute("INSERT INTO place VALUES (?)", (str(results.position),))
    sessions.say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
