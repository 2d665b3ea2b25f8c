"""A topic of the tests, the sinks that write to it, and what an observer of their own reads."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from filesink import KafkaCluster, StoreLedger
from filesink.api import Metrics, WriterContext
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ledger.record import BatchWrite
from filesink.ports import Ports, SerialRunner, TaskRunner
from filesink.sinks.kafka.committables import Committable, EpochFiles
from filesink.sinks.kafka.tiers import KafkaTiers, nobody
from filesink.system import SystemClock, SystemIds
from tests.fakes import FakeJob, micro_batch
from tests.sinks.kafka.broker import Broker

_PATIENCE = 2_400  # looks of 0.05 s
SCHEMA = pa.schema([("key", pa.string()), ("value", pa.string())])


def rows(*ids: int, value: str = "v") -> pa.RecordBatch:
    """Rows with these ids as keys."""
    return pa.RecordBatch.from_pydict(
        {"key": [str(one) for one in ids], "value": [f"{value}{one}" for one in ids]}, SCHEMA
    )


@dataclass
class Site:
    """A topic of one test, and the topic of markers that all tests share, as sinks of a cluster do.

    Attributes:
        partitions: of the topic.
        config: of the topic.
        options: of ``KafkaCluster``.
        markers: the topic of markers.
        tasks: who sends several shares at once.
    """

    broker: Broker
    directory: Path
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:12]}")
    partitions: int = 2
    config: dict[str, str] = field(default_factory=dict)
    uid: str | None = "u"
    options: dict[str, Any] = field(default_factory=dict)
    markers: str = "filesink-markers"
    tasks: Callable[[], TaskRunner | None] = nobody

    def __post_init__(self) -> None:
        self.clock, self.ids = SystemClock(), SystemIds()
        self.admin = AdminClient({"bootstrap.servers": self.broker.servers, "log_level": 0})
        self.create(self.name, self.partitions, **self.config)

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        """A topic, with a configuration (``_`` for ``.``)."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        self.admin.create_topics([topic])[name].result()
        for _ in range(_PATIENCE):  # the broker hears of it a moment after the controller
            with contextlib.suppress(KafkaException):
                self.admin.describe_topics(TopicCollection([name]))[name].result()
                return
            time.sleep(0.05)

    def alter(self, name: str, **config: str) -> None:
        """Change the configuration of a topic."""
        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result()

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([name])[name].result()
        for _ in range(_PATIENCE):  # the broker hears of it a moment after the controller
            if name not in self.admin.list_topics(timeout=10).topics:
                return
            time.sleep(0.05)

    def read(self, name: str | None = None) -> list[Message]:
        """All records of a topic that are committed, by partitions; waits for transactions that are open."""
        found = self._committed(name or self.name)
        return sorted(found, key=lambda one: (one.partition() or 0, one.offset() or 0))

    def count(self) -> int:
        """How many records are committed."""
        return sum(1 for _ in self._committed(self.name))

    def _committed(self, topic: str) -> Iterator[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.servers,
                "group.id": "observer",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        with contextlib.closing(consumer):
            yield from _read(consumer, topic, self.ends(topic))

    def empty(self, partitions: int) -> None:
        """Make the topic anew."""
        self.delete(self.name)
        self.name = f"t-{uuid.uuid4().hex[:12]}"
        self.create(self.name, partitions)

    def ids_there(self) -> list[int]:
        """The ids of all committed rows, sorted; twice if they are there twice."""
        return sorted(int(message.key()) for message in self.read())

    def staged(self) -> list[str]:
        """Files that wait, or were left."""
        place = self.directory / "ledger" / "staged"
        return sorted(path.name for path in place.iterdir()) if place.is_dir() else []

    def ends(self, topic: str) -> dict[int, int]:
        """Where each partition that is not empty ends, open transactions included."""
        for _ in range(_PATIENCE):
            with contextlib.suppress(KafkaException):  # of a broker that has just been started again
                return self._ends(topic)
            time.sleep(0.05)
        return self._ends(topic)

    def _ends(self, topic: str) -> dict[int, int]:
        found = self.admin.list_topics(topic).topics[topic].partitions
        asked = {TopicPartition(topic, one): OffsetSpec.latest() for one in found}
        ends = self.admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        numbers = {place.partition: future.result().offset for place, future in ends.items()}
        return {place: end for place, end in numbers.items() if end}

    def cluster(self, **options: Any) -> KafkaCluster:
        """How sinks get in."""
        given = {"bootstrap_servers": self.broker.servers, "marker_topic": self.markers}
        return KafkaCluster(**(given | self.options | options))

    def tiers(self, *, topic: str | None = None, **options: Any) -> KafkaTiers:
        """The sink; ``topic=""`` for one whose rows name theirs."""
        return KafkaTiers(
            cluster=self.cluster(**options),
            topic=self.name if topic is None else topic,
            ledger=StoreLedger(self.directory / "ledger"),
            uid=self.uid,
            clock=self.clock,
            tasks=self.tasks,
        )

    def driver(self, sink_id: str | None = None, **options: Any) -> EpochLoop[None, Committable, None]:
        """A driver that has just started."""
        tiers = self.tiers(**options)
        ports = Ports(clock=self.clock, ids=self.ids, runner=SerialRunner())
        return EpochLoop(
            tiers, tiers.open_ledger(sink_id or f"uid-{self.uid}"), ports=ports, options=EpochOptions()
        )

    def job(self, *partitions: pa.RecordBatch | Iterable[pa.RecordBatch]) -> FakeJob:
        """A job with these partitions."""
        lists = [[one] if isinstance(one, pa.RecordBatch) else one for one in partitions]
        schema = next((one.schema for one in partitions if isinstance(one, pa.RecordBatch)), SCHEMA)
        return FakeJob(lists, self.clock, self.ids, schema=schema)  # type: ignore[arg-type]

    def run(self, batch_id: int, *partitions: pa.RecordBatch, **options: Any) -> None:
        """One micro-batch by a driver that has just started."""
        self.tiers(**options).prepare(partitions[0].schema if partitions else SCHEMA)
        self.driver(**options).run(micro_batch(batch_id), self.job(*partitions))

    def write(self, *partitions: pa.RecordBatch, **options: Any) -> None:
        """One batch write."""
        self.tiers(**options).prepare(partitions[0].schema)
        cause = BatchWrite(writer=f"batch-{self.ids.uuid()}")
        self.driver("appends-u", **options).run(cause, self.job(*partitions))

    def context(self, epoch: int = 0, subtask: int = 0) -> WriterContext:
        """The context of one attempt."""
        return WriterContext(
            sink_id=f"uid-{self.uid}", epoch=epoch, subtask_index=subtask, number_of_parallel_subtasks=None,
            attempt=0, time_zone="UTC", clock=self.clock, ids=self.ids, metrics=Metrics(),
        )  # fmt: skip

    def beside(self, **changes: Any) -> Site:
        """Another topic of the same broker."""
        return replace(self, name=f"t-{uuid.uuid4().hex[:12]}", **changes)


def decided(site: Site, *batches: pa.RecordBatch, **options: Any) -> Any:
    """An epoch that is decided, and whose driver died before it sent anything; ``options`` of the cluster."""

    class Died(BaseException):
        pass

    site.tiers(**options).prepare(SCHEMA)
    driver = site.driver(**options)

    def die(*_: Any) -> Any:
        raise Died

    driver._chain.publisher._committer.commit = die
    with contextlib.suppress(Died):
        driver.run(micro_batch(0), site.job(*batches))
    return site.driver()


def epoch_of(site: Site) -> EpochFiles:
    """What is decided, by one sender."""
    (epoch,) = shares_of(site)
    return epoch


def shares_of(site: Site) -> list[EpochFiles]:
    """What is decided for each sender."""
    ledger = site.tiers().open_ledger("uid-u")
    found = ledger.read(0).committables.decode(site.tiers().committable_codec)  # type: ignore[union-attr]
    assert all(isinstance(share, EpochFiles) for share in found)
    return [*found]


def _read(consumer: Consumer, topic: str, ends: dict[int, int]) -> Iterator[Message]:
    """What is before ``ends``."""
    consumer.assign([TopicPartition(topic, place, 0) for place in ends])
    silent = 0
    while ends:
        messages = consumer.consume(10_000, timeout=0.05)
        silent = 0 if messages else silent + 1
        assert silent < _PATIENCE, f"{sorted(ends)} of {topic} have a transaction that does not end"
        for message in messages:
            if message.error() is None:
                yield message
                continue
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            if message.offset() >= ends.get(message.partition(), 0):
                ends = {place: end for place, end in ends.items() if place != message.partition()}
