"""Streams a directory of flights into a topic of Kafka until nothing is left. Killed by tests.

    python -m tests.spark.programs.kafka_stream <servers> <topic> <markers> <directory> <senders>

Says ``started`` when the query runs and ``done`` when everything is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from filesink import KafkaCluster, KafkaSink
from filesink.sinks.kafka import checks
from tests.spark import inputs, sessions


def sink_of(servers: str, topic: str, markers: str, directory: Path, senders: int) -> KafkaSink:
    """The sink of the stream; with several senders the smallest epoch has as many shares."""
    checks._SHARE = 1  # bytes
    cluster = KafkaCluster(servers, marker_topic=markers, senders=senders)
    return KafkaSink(cluster, topic, ledger=directory / "ledger", uid="flights")


def main(servers: str, topic: str, markers: str, directory: Path, senders: int) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    df = inputs.flights(spark, directory / "source").repartition(2)
    query = sink_of(servers, topic, markers, directory, senders).start(
        df.selectExpr("cast(id AS string) AS key", "carrier AS value"),
        checkpoint_location=directory / "checkpoint",
        available_now=True,
    )
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
