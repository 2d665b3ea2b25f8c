"""``KafkaSink``: what readers of committed records find in a topic."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from filesink import KafkaCluster, StoreLedger
from filesink.api import Sink
from filesink.sinks.kafka import checks
from filesink.sinks.kafka.cluster import client
from filesink.sinks.kafka.tiers import KafkaTiers
from property_tests.torture.destination import Delivery, Destination, Place
from property_tests.torture.steps import Steps
from tests.sinks.kafka.broker import Broker, running
from tests.sinks.kafka.site import Site

_OF_A_PRODUCER = ("init_transactions", "begin_transaction", "produce", "flush", "commit_transaction")
#: All files of an epoch go with one transaction, or each with its own; or each share under its own name.
_KINDS: dict[str, dict[str, Any]] = {
    "an epoch at once": {},
    "file by file": {"transaction_bytes": 1},
    "in two shares": {"senders": 2},
}
_PARTITIONS = 2
_LOOKS_EVERY = 0.05  # seconds
_PATIENCE = 1_200  # such looks


class KafkaTopic(Destination):
    """A topic of its own, and the topic of markers that all share, as sinks of a cluster do."""

    kinds = tuple(_KINDS)
    batches = 2

    def serving(self) -> AbstractContextManager[Broker]:
        """See ``Destination.serving``."""
        return running()

    def place(self, kind: str, directory: Path, server: Broker) -> Place:
        """See ``Destination.place``."""
        del kind
        site = Site(server, directory, name=f"t-{uuid.uuid4().hex[:12]}", partitions=_PARTITIONS)
        return {"servers": server.servers, "topic": site.name, "markers": site.markers}

    def arrived(self, place: Place) -> list[Delivery]:
        """See ``Destination.arrived``: up to the first transaction that is still open."""
        found = _committed(place["servers"], place["topic"])
        return [Delivery(int(key) if value == b"v" + key else -1) for key, value in found]

    def settle(self, place: Place) -> None:
        """See ``Destination.settle``: a transaction that is committed is shown a moment later."""
        admin = AdminClient({"bootstrap.servers": place["servers"], "log_level": 0})
        for _ in range(_PATIENCE):
            if len({_ends(admin, place["topic"], level) for level in IsolationLevel}) == 1:
                return
            time.sleep(_LOOKS_EVERY)

    def left(self, place: Place) -> list[str]:
        """See ``Destination.left``: staged files."""
        return sorted(path.name for path in Path(place["directory"], "ledger", "staged").glob("*"))

    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """See ``Destination.sink``."""
        return KafkaTiers(
            cluster=KafkaCluster(place["servers"], marker_topic=place["markers"], **_KINDS[place["kind"]]),
            topic=place["topic"],
            ledger=StoreLedger(f"{place['directory']}/ledger"),
            uid="u",
        )

    def batch(self, rows: Sequence[int]) -> pa.RecordBatch:
        """See ``Destination.batch``."""
        return pa.record_batch(
            {"key": pa.array([str(row) for row in rows]), "value": pa.array([f"v{row}" for row in rows])}
        )

    def watch(self, steps: Steps) -> None:
        """See ``Destination.watch``."""
        super().watch(steps)
        methods = {name: steps.counted(getattr(Producer, name)) for name in _OF_A_PRODUCER}
        checks._SHARE = 1  # bytes, so that the smallest epoch has several
        client.Producer = type("Counted", (Producer,), methods)  # type: ignore[attr-defined]


def _committed(servers: str, topic: str) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each record, of one partition after the other."""
    options = {
        "bootstrap.servers": servers, "group.id": "observer", "isolation.level": "read_committed",
        "enable.partition.eof": True, "fetch.wait.max.ms": 10, "enable.auto.commit": False, "log_level": 0,
    }  # fmt: skip
    with closing(Consumer(options)) as consumer:
        unread, silent = set(range(_PARTITIONS)), 0
        consumer.assign([TopicPartition(topic, place, 0) for place in unread])
        while unread:
            messages = consumer.consume(1_000, timeout=_LOOKS_EVERY)
            silent = 0 if messages else silent + 1
            assert silent < _PATIENCE, f"{sorted(unread)} of {topic} cannot be read to their ends"
            for message in messages:
                if message.error() is None:
                    yield message.key(), message.value()
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())


def _ends(admin: Any, topic: str, level: IsolationLevel) -> tuple[int, ...]:
    """Where each partition ends, for readers of a level."""
    asked = {TopicPartition(topic, place): OffsetSpec.latest() for place in range(_PARTITIONS)}
    found = admin.list_offsets(asked, isolation_level=level)
    return tuple(found[place].result().offset for place in asked)
