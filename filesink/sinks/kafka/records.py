"""Staged rows as records of a producer, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

_ANY = -1  # the partitioner chooses
_NOW = 0  # no timestamp of its own
_PAUSE = 0.1  # seconds, for the queue to become shorter


class Records:
    """Hands rows to a producer; waits where too many are on their way.

    Args:
        producer: in a transaction.
        topic: of all rows; ``""`` if each names its own.
        in_time: called while it waits; raises to give up.
    """

    def __init__(self, producer: Producer, topic: str, *, in_time: Callable[[], None]) -> None:
        self._producer = producer
        self._topic = topic
        self._in_time = in_time

    def send(self, batch: pa.RecordBatch) -> None:
        """Send the rows of ``batch``. Raises ``KafkaException``."""
        topics = repeat(self._topic) if self._topic else _column(batch, "topic", None)
        values, keys = _column(batch, "value", None), _column(batch, "key", None)
        partitions, times = _column(batch, "partition", _ANY), _column(batch, "timestamp", _NOW)
        rows = zip(topics, values, keys, partitions, times, _headers(batch), range(batch.num_rows))
        for topic, value, key, partition, time, headers, _ in rows:
            self._produce(topic, value, key, partition, time, headers)

    def _produce(self, topic: str, value: Any, key: Any, partition: int, time: int, headers: Any) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=time, headers=headers
                )
            except BufferError:
                self._in_time()
                self._producer.poll(_PAUSE)
            else:
                return


def _column(batch: pa.RecordBatch, name: str, otherwise: Any) -> Iterable[Any]:
    place = batch.schema.get_field_index(name)
    if place < 0:
        return repeat(otherwise)
    column: Any = batch.column(place)
    return (column.fill_null(otherwise) if column.null_count and otherwise is not None else column).to_pylist()


def _headers(batch: pa.RecordBatch) -> Iterable[list[tuple[str, bytes | None]]]:
    return ([tuple(pair.values()) for pair in pairs or ()] for pairs in _column(batch, "headers", None))
