"""Tells a topic of Kafka of each epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from filesink.errors import DependencyError
from filesink.exports.notifications.cloud_events import CONTENT_TYPE, event_bytes
from filesink.exports.notifications.notification import Notification
from filesink.sink_directory.feed import FeedEntry
from filesink.sinks.asynchronous import Again, Answer, Delivered, Unusable
from filesink.sinks.kafka.settings import KafkaCluster, check_topic

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_HEADERS: Final = [("content-type", CONTENT_TYPE.encode())]


@dataclass(frozen=True)
class KafkaNotification(Notification):
    """Sends an event of CloudEvents 1.0, as JSON, to a topic of Kafka; its key is the id of the inventory.

    So the events of one path are in one partition, in order. Readers drop what they have seen by ``id``.

    Args:
        cluster: ``"host:port"``, several with commas between; or a ``KafkaCluster``.
        topic: has to be there.
        name, after: see ``Notification``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    cluster: str | KafkaCluster = field()
    topic: str = field()

    def __post_init__(self) -> None:
        """Check what was given."""
        object.__setattr__(self, "cluster", KafkaCluster.at(self.cluster))
        check_topic(self.topic)
        super().__post_init__()

    def _receiver(self) -> tuple[str, str]:
        return "kafka", f"{KafkaCluster.at(self.cluster).bootstrap_servers} {self.topic}"

    def prepare(self) -> None:
        """See ``Notification.prepare``; the cluster is not asked."""
        self.open().close()

    def open(self) -> KafkaSender:
        """See ``Notification.open``."""
        try:
            import confluent_kafka
        except ImportError as error:
            raise DependencyError(
                f"Kafka needs confluent-kafka ({error.name} is missing); pip install 'filesink[kafka]'",
                code="DEPENDENCY",
            ) from error
        del confluent_kafka
        return KafkaSender(KafkaCluster.at(self.cluster), self.topic)


class KafkaSender:
    """See ``Sender``."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        from filesink.sinks.kafka.cluster.answers import Heard
        from filesink.sinks.kafka.cluster.client import ordered_producer

        self._topic = topic
        self._heard = Heard(cluster.bootstrap_servers)
        self._producer = ordered_producer(cluster, self._heard)

    def send(self, entry: FeedEntry) -> Answer:
        """See ``Sender.send``."""
        from confluent_kafka import KafkaException

        reports: list[KafkaError | None] = []
        key, value = entry.inventory_id.encode(), event_bytes(entry)
        try:
            self._producer.produce(
                self._topic,
                value,
                key,
                headers=_HEADERS,
                on_delivery=lambda error, _message: reports.append(error),
            )
            self._producer.flush()  # ends with the time that a record has
        except KafkaException as error:
            reports = [error.args[0]]
        except BufferError:
            return Again(why="the queue of the client is full")
        failed = next(iter(reports), None)
        return Delivered() if reports and failed is None else self._answer(failed)

    def _answer(self, error: KafkaError | None) -> Answer:
        from filesink.sinks.kafka.cluster.answers import meaning

        if error is None:
            return Again(why="Kafka did not say whether it has taken it")
        ours = meaning(error, "take a notification", self._heard)
        return Unusable(why=ours.message) if ours.is_permanent else Again(why=ours.message)

    def close(self) -> None:
        """See ``Sender.close``; nothing is on its way."""
