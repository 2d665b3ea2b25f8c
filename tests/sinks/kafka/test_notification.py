"""A topic that is told of each epoch of a path."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer, TopicPartition

from filesink import DeliveryError, KafkaCluster, KafkaNotification
from filesink.exports.notifications.notification import Notification
from tests.exports.receivers import HurriedClock, Told, first_of_each
from tests.sinks.kafka.site import Site


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Told:
    """A path in memory, with epochs."""
    monkeypatch.setattr(Notification, "clock", HurriedClock(now=1_700_000_000_000))
    made = Told()
    made.epochs(9)
    return made


def test_a_topic_has_each_epoch_in_order(place: Told, site: Site) -> None:
    """In one partition, by its key; what comes twice has the same id."""
    cluster = KafkaCluster(site.broker.servers)
    place.tell(KafkaNotification(cluster, site.name))
    place.tell(KafkaNotification(cluster, site.name, name="again"))
    consumer = Consumer(
        {"bootstrap.servers": site.broker.servers, "group.id": "test", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(site.name, partition, 0) for partition in range(2)])
    messages = []
    while len(messages) < 18:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        messages.append(message)
    consumer.close()
    events = [json.loads(message.value()) for message in messages]
    assert {message.partition() for message in messages} in ({0}, {1})
    assert {message.key() for message in messages} == {place.directory().inventory_id.encode()}
    assert dict(messages[0].headers()) == {"content-type": b"application/cloudevents+json"}
    assert first_of_each([event["id"] for event in events]) == [
        entry.id for entry in place.directory().follow()
    ]


def test_a_topic_that_is_not_there(place: Told, site: Site) -> None:
    """Nothing counts as told."""
    notification = KafkaNotification(site.broker.servers, f"{site.name}-nowhere")
    with pytest.raises(DeliveryError) as caught:
        place.tell(notification)
    assert caught.value.code in {"UNUSABLE", "RETRIES"}
    assert notification.version(place.directory()) == 0
