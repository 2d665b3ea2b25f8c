"""What is looked at on the driver before anything is written, and created if it may be."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from filesink.errors import ConfigError
from filesink.ports import Clock
from filesink.sinks.kafka.cluster.answers import Heard, answering
from filesink.sinks.kafka.cluster.client import (
    TIMEOUT,
    Connection,
    begin_transactions,
    transactional_producer,
)
from filesink.sinks.kafka.cluster.topics import Topic, look_for
from filesink.sinks.kafka.markers import PARTITIONS
from filesink.sinks.kafka.settings import KafkaCluster

_PROBE = "filesink-probe"
#: Small segments: what is not compacted yet is read at each start.
_MARKER_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


def prepare(cluster: KafkaCluster, topic: str, *, clock: Clock) -> None:
    """Check everything that can be known to be wrong before data is read.

    Args:
        cluster: where the topics are.
        topic: of the sink; ``""`` if each row names its own.
        clock: waits between tries.

    Raises:
        ConfigError: ``KAFKA_TOPIC``, ``KAFKA_RIGHTS``, ``KAFKA_MARKERS``, ``KAFKA_TIMEOUT``,
            ``KAFKA_OPTION``.
        StorageError: the cluster does not answer, or lets nobody in.
    """
    connection = Connection(cluster, clock)
    found = look_for(connection, [topic] if topic else [], [cluster.marker_topic])
    if topic and topic not in found:
        raise ConfigError(
            f"there is no topic '{topic}', or its user may not see it: create it, or grant DESCRIBE",
            code="KAFKA_TOPIC",
        )
    if topic and not found[topic].may_write:
        raise ConfigError(f"the user may not write to topic '{topic}': grant WRITE", code="KAFKA_RIGHTS")
    markers = found.get(cluster.marker_topic) or _created_markers(connection, cluster.marker_topic)
    check_markers(markers, cluster.marker_topic)
    _try_transactions(cluster)


def check_markers(topic: Topic | None, name: str) -> Topic:
    """The topic of markers, if it is one that keeps them.

    Raises:
        ConfigError: ``KAFKA_MARKERS``, ``KAFKA_RIGHTS``.
    """
    if topic is None:
        raise ConfigError(
            f"the topic of markers '{name}' is not there: create it with "
            f"{PARTITIONS} partitions and cleanup.policy=compact",
            code="KAFKA_MARKERS",
        )
    if topic.deletes or not topic.compacts:
        raise ConfigError(
            f"the topic of markers '{name}' forgets what it is told, and rows would come twice: set its "
            "cleanup.policy to 'compact' alone, or give another marker_topic",
            code="KAFKA_MARKERS",
        )
    if topic.partitions < PARTITIONS:
        raise ConfigError(
            f"the topic of markers '{name}' has {topic.partitions} partitions: give it {PARTITIONS} or more, "
            "or give another marker_topic",
            code="KAFKA_MARKERS",
        )
    if not topic.may_write:
        raise ConfigError(
            f"the user may not write to the topic of markers '{name}': grant WRITE", code="KAFKA_RIGHTS"
        )
    return topic


def _created_markers(connection: Connection, name: str) -> Topic | None:
    """The topic of markers as it is when it was made."""

    def create(admin: AdminClient) -> None:
        topic = NewTopic(name, num_partitions=PARTITIONS, replication_factor=-1, config=_MARKER_CONFIG)
        asked = admin.create_topics([topic], request_timeout=TIMEOUT, operation_timeout=TIMEOUT)
        try:
            asked[name].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another driver was faster
                raise

    connection.ask(f"create the topic of markers '{name}'", create)
    return look_for(connection, [name]).get(name)


def _try_transactions(cluster: KafkaCluster) -> None:
    """Whether the user may, and for that long. Under a name of no sink: it would be fenced off."""
    heard = Heard(cluster.bootstrap_servers)
    producer = transactional_producer(cluster, _PROBE, batch_bytes=1_000_000, heard=heard)
    with answering("begin transactions", heard, producer):
        begin_transactions(producer, cluster.marker_topic)
