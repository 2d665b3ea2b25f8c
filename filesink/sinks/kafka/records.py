"""Staged rows as records of a producer, in their order.

The client takes records one by one, so here is a loop over rows; there is nothing else in it. (Its
``produce_batch`` wants a dictionary for each, which takes longer, and knows neither headers nor times.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

_ANY = -1  # the partitioner chooses
_NOW = 0  # no time of its own
_PAUSE = 0.05  # seconds, for the queue to become shorter


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
        produce = self._producer.produce
        topics = repeat(self._topic) if self._topic else _column(batch, "topic", None)
        values, keys = _column(batch, "value", None), _column(batch, "key", None)
        rows = zip(topics, values, keys, _column(batch, "partition", _ANY), _extras(batch), strict=False)
        for topic, value, key, partition, extra in rows:
            try:
                produce(topic, value, key, partition, **extra)
            except BufferError:
                self.send_one(topic, value, key, partition, **extra)

    def send_one(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, **extra: Any
    ) -> None:
        """Send one record, as soon as there is room."""
        while True:
            try:
                self._producer.produce(topic, value, key, partition, **extra)
            except BufferError:
                self._in_time()
                self._producer.poll(_PAUSE)
            else:
                return


def _column(batch: pa.RecordBatch, name: str, otherwise: int | None) -> Iterable[Any]:
    """The values of a column, with ``otherwise`` for nulls; the same for all rows if there is no column."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return repeat(otherwise)
    column: Any = batch.column(place)
    values: list[Any] = (column if otherwise is None else column.fill_null(otherwise)).to_pylist()
    return values


def _extras(batch: pa.RecordBatch) -> Iterable[dict[str, Any]]:
    """What few rows have."""
    if not {"timestamp", "headers"} & set(batch.schema.names):
        return repeat({})
    times, headers = _column(batch, "timestamp", _NOW), _column(batch, "headers", None)
    return (
        {"timestamp": time, "headers": [tuple(pair.values()) for pair in pairs or ()]}
        for time, pairs in zip(times, headers, strict=False)
    )
