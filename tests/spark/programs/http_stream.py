"""Streams a directory of flights to a service until nothing is left. Killed and restarted by tests.

    python -m tests.spark.programs.http_stream <url> <directory>

Says ``started`` when the query runs and ``done`` when everything is delivered.
"""

from __future__ import annotations

import sys
from pathlib import Path

from filesink import HttpService, HttpSink, Sending
from tests.spark import inputs, sessions


def main(url: str, directory: Path) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    service = HttpService(url, body="array", timeout="2 s")
    sink = HttpSink(
        service, ledger=directory / "ledger", sending=Sending(records=20, retries=100), uid="flights"
    )
    df = inputs.flights(spark, directory / "source")
    query = sink.start(df, checkpoint_location=directory / "checkpoint", available_now=True)
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
