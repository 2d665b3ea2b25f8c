"""What topics of a cluster are like, and whether they take certain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from filesink.sinks.kafka.cluster.client import TIMEOUT
from filesink.sinks.kafka.loads import TopicLoad

_FOR_EVER = 2**63 - 1
_ABSENT = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic that is there.

    Attributes:
        id: what the cluster calls this very topic; another one of the same name has another.
        partitions: how many.
        may_write: whether the user may.
        largest: bytes of the largest batch of records.
        compacts, deletes: what becomes of old records; it may be both.
        takes_times: whether records have the times of their producer, not earlier than ``before_ms`` before
            and not later than ``after_ms`` after the broker's.
    """

    name: str
    id: str
    partitions: int
    may_write: bool
    largest: int
    compacts: bool
    deletes: bool
    takes_times: bool
    before_ms: int
    after_ms: int

    def refusal(self, load: TopicLoad, now_ms: int) -> str | None:
        """Why it would not take rows like these; ``None`` if it takes them."""
        if load.largest > self.largest:
            found = f"a row takes {load.largest:,} bytes, not compressed"
            return f"{found}, and max.message.bytes is {self.largest:,}"
        if load.partition >= self.partitions:
            return f"a row asks for partition {load.partition}, and there are {self.partitions}"
        if self.compacts and load.keyless:
            return f"{load.keyless:,} rows have no key, and a compacted topic takes none without"
        if self.takes_times and load.latest_ms > now_ms + self.after_ms:
            return "a row has a timestamp further ahead than message.timestamp.after.max.ms"
        if self.takes_times and 0 <= load.earliest_ms < now_ms - self.before_ms:
            return "a row has a timestamp further back than message.timestamp.before.max.ms"
        return None


def look(admin: AdminClient, names: Sequence[str]) -> dict[str, Topic]:
    """Those of ``names`` that are there. Creates none.

    Raises:
        KafkaException: the cluster did not answer, or may not be asked.
    """
    asked = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=TIMEOUT
    )
    found = {name: described for name, future in asked.items() if (described := _if_there(future))}
    if not found:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in found]
    settings = admin.describe_configs(resources, request_timeout=TIMEOUT)
    return {one.name: _topic(found[one.name], future.result()) for one, future in settings.items()}


def _if_there(future: Any) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].code() not in _ABSENT:
            raise
        return None  # a broker that does not tell whom it would let in says the same


def _topic(described: Any, settings: dict[str, Any]) -> Topic:
    def number(name: str, otherwise: int) -> int:
        entry = settings.get(name)
        return otherwise if entry is None or entry.value is None else int(entry.value)

    policy = settings["cleanup.policy"].value.split(",")
    operations = described.authorized_operations
    # Brokers before 3.6 have one limit for both directions.
    either = number("message.timestamp.difference.max.ms", _FOR_EVER)
    return Topic(
        name=described.name,
        id=str(described.topic_id),
        partitions=len(described.partitions),
        may_write=operations is None or AclOperation.WRITE in operations,
        largest=number("max.message.bytes", 1_048_588),
        compacts="compact" in policy,
        deletes="delete" in policy,
        takes_times=settings["message.timestamp.type"].value == "CreateTime",
        before_ms=number("message.timestamp.before.max.ms", either),
        after_ms=number("message.timestamp.after.max.ms", either),
    )
