"""Queues of SQS and topics of SNS, as moto has them."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.config import Config

from filesink import DeliveryError, SnsNotification, SqsNotification
from filesink.exports.notifications.notification import Notification
from tests.exports.receivers import HurriedClock, Told, first_of_each
from tests.servers import S3Server


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> HurriedClock:
    """That of notifications."""
    made = HurriedClock(now=1_700_000_000_000)
    monkeypatch.setattr(Notification, "clock", made)
    return made


@pytest.fixture
def place() -> Told:
    """A path in memory, with epochs."""
    made = Told()
    made.epochs(9)
    return made


def client(server: S3Server, service: str) -> Any:
    """One of boto3, for a server of the test's own."""
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{server.port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )


def received(sqs: Any, url: str) -> list[dict[str, Any]]:
    """All messages of a queue, in the order in which it gives them."""
    found: list[dict[str, Any]] = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


@pytest.mark.parametrize("fifo", [True, False])
def test_a_queue(place: Told, moto_server: S3Server, *, fifo: bool) -> None:
    """Every version has its event; a fifo queue drops what is sent again, by its id."""
    sqs = client(moto_server, "sqs")
    attributes = {"FifoQueue": "true"} if fifo else {}
    url = sqs.create_queue(QueueName="epochs.fifo" if fifo else "epochs", Attributes=attributes)["QueueUrl"]
    place.tell(SqsNotification(url, client=sqs))
    place.tell(SqsNotification(url, client=sqs, name="again"))
    events = received(sqs, url)
    assert len(events) == (9 if fifo else 18)
    versions = [event["data"]["version"] for event in events]
    assert sorted(first_of_each(versions)) == list(range(1, 10))
    if fifo:
        assert versions == list(range(1, 10))
    assert len({event["id"] for event in events}) == 9


def test_a_topic(place: Told, moto_server: S3Server) -> None:
    """A queue that has subscribed gets the events."""
    sqs, sns = client(moto_server, "sqs"), client(moto_server, "sns")
    url = sqs.create_queue(QueueName="subscribed")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = sns.create_topic(Name="epochs")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    place.tell(SnsNotification(topic, client=sns))
    assert sorted(event["data"]["version"] for event in received(sqs, url)) == list(range(1, 10))


def test_a_queue_that_is_not_there(place: Told, moto_server: S3Server) -> None:
    """Trying again would not help; nothing counts as told."""
    sqs = client(moto_server, "sqs")
    notification = SqsNotification(f"http://127.0.0.1:{moto_server.port}/123456789012/nowhere", client=sqs)
    with pytest.raises(DeliveryError, match="NonExistentQueue") as caught:
        place.tell(notification)
    assert caught.value.code == "UNUSABLE"
    assert notification.version(place.directory()) == 0


def test_a_service_that_is_away(place: Told, moto_server: S3Server) -> None:
    """It is asked again for a while, and told later."""
    away = S3Server(name="away", port=1)
    sqs = client(moto_server, "sqs")
    url = sqs.create_queue(QueueName="later")["QueueUrl"]
    with pytest.raises(DeliveryError, match="EndpointConnectionError") as caught:
        place.tell(SqsNotification(url, client=client(away, "sqs")))
    assert caught.value.code == "RETRIES"
    place.tell(SqsNotification(url, client=sqs))
    assert len(received(sqs, url)) == 9
