"""Streams a directory of flights to clients until nothing is left. Killed and restarted by tests.

    python -m tests.spark.programs.collect_stream <directory>

Says ``started`` when the query runs and ``done`` when it has ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from filesink import CollectSink
from tests.spark import inputs, sessions


def main(directory: Path) -> None:
    """Run the stream once, to the end of its input. There is room for some batches."""
    spark = sessions.start()
    sink = CollectSink(directory / "collected", max_buffered_bytes="16KiB", client_timeout="5 min")
    df = inputs.flights(spark, directory / "source")
    query = sink.start(df, checkpoint_location=directory / "checkpoint", available_now=True)
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
