"""The compacted topic that says what has been sent: for each sink the newest epoch, and how much of it.

    key    the sink's transactional id
    value  {"v":1,"slot":7,"done":3,"files":3,"rows":41,"content":"…"}

Rules:
1. A marker is written in the transaction of the rows that it tells of, so there are both or none.
2. Compaction keeps the newest marker of each key, whatever its age. So nothing expires: neither a sink that
   was stopped for months nor an epoch that waited as long is forgotten. A topic that deletes is refused.
3. The partition of a key follows from the key alone, and never from how many there are.
4. Whoever reads has first fenced off all others that could write the same key (``session``), and reads up to
   where the partition ended after that. A transaction of another sink that is open before its end is waited
   for; there are several partitions so that this is rare.
5. The topic's id goes on record with the epoch. Another topic of the same name proves nothing.
"""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from filesink.errors import CommitConflictError, StateCorruptError
from filesink.framing import check_field, from_json, to_json
from filesink.sinks.kafka.cluster.answers import Heard
from filesink.sinks.kafka.cluster.client import TIMEOUT, Connection, committed_reader
from filesink.sinks.kafka.committables import EpochFiles

PARTITIONS = 16  # of the topic, at least; others stay empty
_VERSION = 1
_AT_ONCE = 10_000  # records
_PAUSE = 0.05  # seconds that one look waits
_PATIENCE = 600  # such looks without anything new
#: An end; and no rights in a group: the client asks for one, and this reader is in none.
_NO_FAILURES = frozenset({KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What has been sent for one sink: of epoch ``slot`` the first ``done`` of ``files`` files.

    ``content`` as ``EpochFiles.content``; ``rows`` of the whole epoch.
    """

    slot: int
    done: int
    files: int
    rows: int
    content: str

    def to_bytes(self) -> bytes:
        """The value of its record."""
        return to_json({"v": _VERSION, **asdict(self)})

    @staticmethod
    def from_bytes(data: bytes) -> Marker:
        """What ``to_bytes`` has made.

        Raises:
            StateCorruptError: it has not.
        """
        values = from_json(data, where="a marker in Kafka")
        try:
            if values.pop("v") != _VERSION:
                raise ValueError("v")  # noqa: TRY301 - one malformed field is as good as another
            check_field("content", values["content"], str)
            for name in ("slot", "done", "files", "rows"):
                check_field(name, values[name], int)
            return Marker(**values)
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise StateCorruptError(
                f"a marker in Kafka is malformed ({type(error).__name__}): somebody else has written into "
                "the topic of markers, or a newer release. Give the sink a topic of its own, or upgrade",
                code="KAFKA_MARKERS",
            ) from error


def marker_after(epoch: EpochFiles, done: int) -> Marker:
    """The marker of a transaction that ends before file ``done``."""
    return Marker(slot=epoch.slot, done=done, files=len(epoch.files), rows=epoch.rows, content=epoch.content)


def partition_of(name: str) -> int:
    """Where the markers of the sink ``name`` are."""
    return zlib.crc32(name.encode()) % PARTITIONS


def done_of(epoch: EpochFiles, marker: Marker | None) -> int:
    """How many files of ``epoch`` have been sent, by the newest marker of its sink.

    Raises:
        CommitConflictError: ``KAFKA_EPOCH``; another epoch of the same number was.
    """
    if marker is None or marker.slot < epoch.slot:
        return 0
    if marker.slot > epoch.slot:  # which began when this one was complete
        return len(epoch.files)
    if marker.content != epoch.content:
        raise CommitConflictError(
            f"Kafka has an epoch {epoch.slot} of '{epoch.sink_id}' already, and not this one: the ledger was "
            "begun anew, or two sinks have the same uid. Nothing was sent. Bring the ledger back, or choose "
            "another uid",
            code="KAFKA_EPOCH",
        )
    return marker.done


def newest(connection: Connection, topic: str, name: str) -> Marker | None:
    """The newest marker of the sink ``name``; ``None`` if there is none. Reads all of its partition.

    Raises:
        FilesinkError: the cluster did not answer.
    """
    found = connection.ask("read markers", lambda admin: _read(connection, admin, topic, name))
    return None if found is None else Marker.from_bytes(found)


def _read(connection: Connection, admin: AdminClient, topic: str, name: str) -> bytes | None:
    place = TopicPartition(topic, partition_of(name))
    asked = admin.list_offsets(
        {place: OffsetSpec.latest()},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=TIMEOUT,
    )
    end = asked[place].result().offset
    if not end:
        return None
    consumer = committed_reader(connection.cluster, connection.heard)
    try:
        consumer.assign([TopicPartition(topic, place.partition, 0)])  # else half a second is lost
        return _newest_until(consumer, connection.heard, name.encode(), end)
    finally:
        consumer.close()


def _newest_until(consumer: Consumer, heard: Heard, key: bytes, end: int) -> bytes | None:
    """The newest value of ``key`` among what is committed before offset ``end``."""
    found: bytes | None = None
    silent = 0
    while silent < _PATIENCE:
        messages = consumer.consume(_AT_ONCE, _PAUSE)
        silent = 0 if messages else silent + 1
        if heard.refusal is not None:  # which no message tells
            raise KafkaException(heard.refusal)
        for message in messages:
            error = message.error()
            if error is None and message.key() == key:
                found = message.value()
            elif error is not None and error.code() not in _NO_FAILURES:
                raise KafkaException(error)
            # The offset of an end is that of the next record, behind marks of transactions, too.
            elif error is not None and error.code() == KafkaError._PARTITION_EOF and message.offset() >= end:
                return found
    reason = "a transaction of another sink is open in the topic of markers"
    raise KafkaException(KafkaError(KafkaError.CONCURRENT_TRANSACTIONS, reason))
