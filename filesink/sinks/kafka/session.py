"""A sink's transactions, for as long as nobody else begins some under its name.

Rules:
1. ``init_transactions`` comes first: it ends what an earlier driver has left open, waits for what was about
   to be committed, and fences that driver off for good. What the marker says after that stays true until we
   change it.
2. Whether a transaction was committed whose answer was lost is not guessed. The session is over; the next one
   asks the cluster.
3. A transaction holds whole files, their rows in order, and at its end the marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa
from confluent_kafka import KafkaException

from filesink.errors import ConcurrentDriverError, StateError, StorageError
from filesink.ports import Clock
from filesink.sinks.kafka import markers
from filesink.sinks.kafka.cluster.answers import Heard, answering
from filesink.sinks.kafka.cluster.client import (
    TIMEOUT,
    Connection,
    begin_transactions,
    transactional_producer,
)
from filesink.sinks.kafka.cluster.topics import look_for
from filesink.sinks.kafka.committables import EpochFiles
from filesink.sinks.kafka.placing import Placing
from filesink.sinks.kafka.records import Records
from filesink.sinks.kafka.settings import KafkaCluster

_ABORT_WITHIN = 5.0  # seconds; the cluster ends it by itself, later


class Session:
    """Transactions of one sink.

    Args:
        cluster: where to.
        epoch: the first that is sent.
        clock: tells how long a transaction takes.

    Raises:
        StateError: ``KAFKA_MARKERS``; the topic of markers is another one now.
        FilesinkError: the cluster did not answer, or lets nobody in.
    """

    def __init__(self, cluster: KafkaCluster, epoch: EpochFiles, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._heard = Heard(cluster.bootstrap_servers)
        self.name = epoch.name
        self.batch_bytes = epoch.batch_bytes
        connection = Connection(cluster, clock)
        _check_topics(connection, epoch)
        self._producer = transactional_producer(
            cluster, epoch.name, batch_bytes=epoch.batch_bytes, heard=self._heard
        )
        with answering("begin transactions", self._heard, self._producer):
            begin_transactions(self._producer, epoch.markers)
        self._marker = markers.newest(connection, epoch.markers, epoch.name)

    def done_of(self, epoch: EpochFiles) -> int:
        """How many files of ``epoch`` are sent; see ``markers.done_of``."""
        return markers.done_of(epoch, self._marker)

    def send(self, epoch: EpochFiles, done: int, batches: Iterable[pa.RecordBatch]) -> None:
        """One transaction.

        Args:
            epoch: that rows are sent of.
            done: of its files are sent with it.
            batches: the rows.

        Raises:
            ConcurrentDriverError: ``KAFKA_FENCED``; another driver has begun a session.
            StorageError: it is not known whether they are sent. The session is over in any case.
        """
        marker = markers.marker_after(epoch, done)
        try:
            with self._in_time(epoch), answering(f"send {epoch}", self._heard, self._producer):
                self._producer.begin_transaction()
                placing = self._placing(epoch)
                records = Records(self._producer, epoch.topic, in_time=self._check_time, placing=placing)
                for batch in batches:
                    records.send(batch)
                place = markers.partition_of(epoch.name)
                records.send_one(epoch.markers, marker.to_bytes(), epoch.name.encode(), place)
                self._commit()
        except BaseException:
            self._abandon()
            raise
        self._marker = marker

    @contextmanager
    def _in_time(self, epoch: EpochFiles) -> Iterator[None]:
        """The cluster ends what takes too long, and then says that we were fenced."""
        begun = self._clock.now_ms()
        self._until_ms = begun + self._cluster.timeout_ms()
        try:
            yield
        except ConcurrentDriverError:
            if self._clock.now_ms() < self._until_ms:
                raise
            raise _too_slow(epoch) from None
        except _Late:
            raise _too_slow(epoch) from None

    def _placing(self, epoch: EpochFiles) -> Placing | None:
        """How rows are placed; ``None`` if each names its topic, or users have a way of their own."""
        topic, partitions = epoch.topic, 0
        if topic and "partitioner" not in self._cluster.client:
            partitions = len(self._producer.list_topics(topic, TIMEOUT).topics[topic].partitions)
        first = epoch.slot + markers.partition_of(epoch.name)  # small epochs take turns, and so do shares
        return Placing(partitions, first=first) if partitions else None

    def _check_time(self) -> None:
        if self._clock.now_ms() >= self._until_ms:
            raise _Late

    def _commit(self) -> None:
        while self._producer.flush(1.0):
            self._check_time()
        self._producer.commit_transaction(max(1.0, (self._until_ms - self._clock.now_ms()) / 1000))

    def _abandon(self) -> None:
        """Readers wait for the end of a transaction, so it is not left to the cluster if possible."""
        with suppress(KafkaException):  # it was not open, or the next session ends it
            self._producer.abort_transaction(_ABORT_WITHIN)
        with suppress(KafkaException):
            self._producer.purge()


class _Late(Exception):  # noqa: N818 - ends a block, nobody else sees it
    """The transaction has taken too long."""


def _too_slow(epoch: EpochFiles) -> StorageError:
    return StorageError(
        f"a transaction of {epoch} took longer than transaction_timeout, and the cluster ended it; nothing "
        "was lost, and it is tried again. If that goes on, give less transaction_bytes, or more time",
        code="KAFKA_SLOW",
    )


def _check_topics(connection: Connection, epoch: EpochFiles) -> None:
    """Of a topic that has gone the client would only learn when its patience is over."""
    found = look_for(connection, [name for name in (epoch.markers, epoch.topic) if name])
    markers_now = found.get(epoch.markers)
    if markers_now is None or markers_now.id != epoch.markers_id:
        raise StateError(
            f"the topic of markers '{epoch.markers}' is {'another one' if markers_now else 'not there'} "
            f"since {epoch} was decided, so nobody knows whether its rows are in Kafka. Nothing was sent. "
            "Bring the topic back; or see which rows are there, and begin anew with another uid",
            code="KAFKA_MARKERS",
        )
    if epoch.topic and epoch.topic not in found:
        raise StorageError(
            f"topic '{epoch.topic}' has gone since {epoch} was decided, or its user may not see it any more. "
            "Create it, then start again or call recover(); nothing was lost",
            code="KAFKA_TOPIC",
        )
