"""Tells a queue of SQS, or a topic of SNS, of each epoch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from filesink.arguments import instance_of
from filesink.errors import ConfigError, DependencyError
from filesink.exports.notifications.cloud_events import CONTENT_TYPE, event_bytes
from filesink.exports.notifications.notification import Notification
from filesink.metastore.service_errors import sentence
from filesink.sink_directory.feed import FeedEntry
from filesink.sinks.asynchronous import Again, Answer, Delivered, Refused, Unusable
from formats.arguments import kind_of

_ATTRIBUTES: Final = {"content-type": {"DataType": "String", "StringValue": CONTENT_TYPE}}
_FIFO: Final = ".fifo"
#: What AWS says of a message, rather than of who sends it or where to.
_OF_MESSAGE: Final = frozenset({"InvalidMessageContents", "InvalidParameterValue", "InvalidParameter"})
_MAY_PASS: Final = frozenset(
    {
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
        "Throttled",
        "ThrottledException",
        "KMSThrottling",
    }
)


@dataclass(frozen=True)
class _AwsNotification(Notification):
    """What queues and topics share."""

    client: Any = field(default=None, repr=False, kw_only=True)

    def prepare(self) -> None:
        """See ``Notification.prepare``."""
        self.open()

    def open(self) -> AwsSender:
        """See ``Notification.open``."""
        return AwsSender(self._call())

    @abstractmethod
    def _call(self) -> Callable[..., object]:
        """Sends a message, whose arguments are the entry's text and, of a fifo, its place."""


@dataclass(frozen=True)
class SqsNotification(_AwsNotification):
    """Sends an event of CloudEvents 1.0, as JSON, to a queue of SQS.

    A queue whose name ends with ``.fifo`` keeps the order, and drops what is sent again within five minutes.
    Of any other queue the reader orders by ``sequence``, and drops what it has seen by ``id``.

    Args:
        queue_url: ``"https://sqs.<region>.amazonaws.com/<account>/<name>"``.
        client: ``boto3.client("sqs")``, made as you like; by default from the environment.
        name, after: see ``Notification``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    queue_url: str = field()

    def __post_init__(self) -> None:
        """Check what was given."""
        if not instance_of(self.queue_url, str, name="queue_url").startswith(("https://", "http://")):
            raise ConfigError("queue_url must be an address, 'https://sqs.…'", code="BAD_VALUE")
        _check_client(self.client, "send_message", "sqs")
        super().__post_init__()

    def _receiver(self) -> tuple[str, str]:
        return "sqs", self.queue_url

    @cached_property
    def _made(self) -> Any:
        return self.client or _client("sqs")

    def _call(self) -> Callable[..., object]:
        client = self._made
        return lambda text, **place: client.send_message(
            QueueUrl=self.queue_url,
            MessageBody=text,
            MessageAttributes=_ATTRIBUTES,
            **(place if self.queue_url.endswith(_FIFO) else {}),
        )


@dataclass(frozen=True)
class SnsNotification(_AwsNotification):
    """Publishes an event of CloudEvents 1.0, as JSON, to a topic of SNS. Order as for ``SqsNotification``.

    Args:
        topic_arn: ``"arn:aws:sns:<region>:<account>:<name>"``.
        client: ``boto3.client("sns")``, made as you like; by default from the environment.
        name, after: see ``Notification``.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    topic_arn: str = field()

    def __post_init__(self) -> None:
        """Check what was given."""
        if not instance_of(self.topic_arn, str, name="topic_arn").startswith("arn:"):
            raise ConfigError("topic_arn must be like 'arn:aws:sns:…'", code="BAD_VALUE")
        _check_client(self.client, "publish", "sns")
        super().__post_init__()

    def _receiver(self) -> tuple[str, str]:
        return "sns", self.topic_arn

    @cached_property
    def _made(self) -> Any:
        return self.client or _client("sns")

    def _call(self) -> Callable[..., object]:
        client = self._made
        return lambda text, **place: client.publish(
            TopicArn=self.topic_arn,
            Message=text,
            MessageAttributes=_ATTRIBUTES,
            **(place if self.topic_arn.endswith(_FIFO) else {}),
        )


class AwsSender:
    """See ``Sender``.

    Args:
        call: as ``_AwsNotification._call``.
    """

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def send(self, entry: FeedEntry) -> Answer:
        """See ``Sender.send``; what boto3 has repeated by itself counts as one."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._call(
                event_bytes(entry).decode(),
                MessageGroupId=entry.inventory_id,
                MessageDeduplicationId=entry.id,
            )
        except ClientError as error:
            return _answer(error.response)
        except BotoCoreError as error:
            return Again(why=type(error).__name__)
        return Delivered()

    def close(self) -> None:
        """See ``Sender.close``; clients are kept by boto3."""


def _answer(response: Any) -> Answer:
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _MAY_PASS or status >= 500 or status == 429:
        return Again(why=sentence(code))
    return Refused(why=code) if code in _OF_MESSAGE else Unusable(why=sentence(code))


def _check_client(client: Any, call: str, service: str) -> None:
    if client is not None and not callable(getattr(client, call, None)):
        raise ConfigError(
            f"client must be boto3.client('{service}'), got {kind_of(client)}", code="BAD_VALUE"
        )


def _client(service: str) -> Any:
    try:
        import boto3
    except ImportError as error:
        raise DependencyError(
            f"{service.upper()} needs boto3; pip install 'filesink[s3]'", code="DEPENDENCY"
        ) from error
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.client(service, config=Config(connect_timeout=5, read_timeout=20))
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"no client of {service.upper()} can be made ({type(error).__name__}): {sentence(str(error))}. "
            f"Set AWS_REGION, or give one: client=boto3.client('{service}', region_name='eu-central-1')",
            code="AWS_CLIENT",
        ) from error
