"""Connections to a cluster, as confluent-kafka makes them, and the options that this sink decides itself.

Rules: whoever asks something gets an answer or an error in ``TIMEOUT`` seconds; a driver that waits longer
does so by asking again. What the client has to log goes to ``filesink.kafka``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from filesink.errors import ConfigError, FilesinkError
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.sinks.kafka.cluster.answers import Heard, meaning
from filesink.sinks.kafka.settings import KafkaCluster

R = TypeVar("R")

TIMEOUT = 15.0  # seconds
_CONNECTED_WITHIN = 1.0  # seconds; later, only the half second is lost that this is about
_QUEUED_KIB = 256 << 10  # of rows that are on their way, in the driver's memory
_QUEUED_ROWS = 1_000_000
_LARGEST_ROW = 1_000_000_000  # bytes; what a topic takes is looked at before

log = logging.getLogger("filesink.kafka")


class Connection:
    """Questions to the cluster about its topics. Made on the driver.

    Args:
        cluster: whom to ask.
        clock: waits between tries.
    """

    def __init__(self, cluster: KafkaCluster, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.heard = Heard(cluster.bootstrap_servers)
        self._admin: AdminClient | None = None

    def ask(self, doing: str, question: Callable[[AdminClient], R]) -> R:
        """What ``question`` returns; asked again where that may help.

        Args:
            doing: what is tried, for messages.
            question: may be called several times.

        Raises:
            FilesinkError: what the last try has met.
        """
        patience = Backoff(self.clock)
        while True:
            admin = self._connected(doing)
            try:
                return question(admin)
            except KafkaException as error:
                self.heard.listen(admin)
                ours: FilesinkError = meaning(error.args[0], doing, self.heard)
            if ours.is_permanent or not patience.wait():
                raise ours

    def _connected(self, doing: str) -> AdminClient:
        if self._admin is None:
            self._admin = _made(AdminClient, _options(self.cluster, self.heard), doing)
        return self._admin


def transactional_producer(cluster: KafkaCluster, name: str, *, batch_bytes: int, heard: Heard) -> Producer:
    """A producer for the transactions of ``name``; ``begin_transactions`` comes first.

    Args:
        cluster: where to.
        name: the transactional id.
        batch_bytes: the largest batch of records that the topics take.
        heard: what else it has to say.
    """
    timeout = cluster.timeout_ms()
    options = {
        "queue.buffering.max.kbytes": _QUEUED_KIB,
        "queue.buffering.max.messages": _QUEUED_ROWS,
        "partitioner": "murmur2_random",  # that of Java's client, so that keys meet
        **_options(cluster, heard),
        "transactional.id": name,
        "transaction.timeout.ms": timeout,
        "message.timeout.ms": timeout,
        "socket.timeout.ms": min(60_000, max(timeout - 100, 10)),
        "message.max.bytes": _LARGEST_ROW,
        "batch.size": batch_bytes,
        "delivery.report.only.error": True,  # the transaction tells that of all rows
    }
    return _made(Producer, options, "open a producer")


def begin_transactions(producer: Producer, topic: str) -> None:
    """Have ``producer`` end what others have left open under its name, and fence them off.

    Args:
        producer: a transactional one.
        topic: any that is there. The client connects to hear of it; without a connection, half a second
            passes before it tries again to begin.

    Raises:
        KafkaException: the cluster did not answer, or lets nobody in.
    """
    with suppress(KafkaException):  # whose reason init_transactions meets as well
        for _ in range(2):  # at an address that was given, and then at the one that the broker itself names
            producer.list_topics(topic, _CONNECTED_WITHIN)
    producer.init_transactions(2 * TIMEOUT)


def ordered_producer(cluster: KafkaCluster, heard: Heard) -> Producer:
    """A producer without transactions that keeps the order of what it sends, and repeats nothing.

    A record is given up after ``TIMEOUT``; ``heard`` as for ``transactional_producer``.
    """
    options = {
        "partitioner": "murmur2_random",  # that of Java's client, so that keys meet
        **_options(cluster, heard),
        "enable.idempotence": True,
        "linger.ms": 0,  # each is waited for
        "message.timeout.ms": int(1000 * TIMEOUT),
    }
    return _made(Producer, options, "open a producer")


def committed_reader(cluster: KafkaCluster, heard: Heard) -> Consumer:
    """A consumer of what is committed, in no group; ``heard`` as for ``transactional_producer``."""
    options = {
        **_options(cluster, heard),
        "group.id": "filesink",  # has to be given, and is not used
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,  # the end is what is waited for
        "auto.offset.reset": "earliest",
    }
    return _made(Consumer, options, "open a consumer")


def _options(cluster: KafkaCluster, heard: Heard) -> dict[str, Any]:
    return {
        "client.id": "filesink",
        "log_level": 3,  # errors; others tell which options a client of this kind does not need
        **cluster.options(),
        "bootstrap.servers": cluster.bootstrap_servers,
        "error_cb": heard,
    }


def _made(kind: Callable[..., R], options: dict[str, Any], doing: str) -> R:
    try:
        return kind(options, logger=log)
    except KafkaException as error:
        ours, text = meaning(error.args[0], doing), str(error.args[0])
    if ours.code == "KAFKA_OPTION":  # whose text may hold the value
        named = [name for name in options if f'"{name}"' in text] or _refused_alone(kind, options) or options
        ours = ConfigError(
            f"client option {' or '.join(sorted(map(repr, named)))} is none of librdkafka's, or cannot have "
            "its value, or not beside the others. Correct it",
            code="KAFKA_OPTION",
        )
    raise ours


def _refused_alone(kind: Callable[..., object], options: dict[str, Any]) -> list[str]:
    """Options that are wrong whatever the others are. The client may call one by another of its names."""
    refused = []
    for name, value in options.items():
        try:
            kind({"group.id": "", "log_level": 0, name: value})
        except KafkaException:
            refused.append(name)
    return refused
