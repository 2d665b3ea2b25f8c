"""Staged rows as records of a producer, in their order.

The client takes records one by one, so here is a loop over rows, which the interpreter runs by itself unless
rows have headers or times. (The client's ``produce_batch`` wants a dictionary for each, which takes longer,
and knows no headers.)

What is delivered takes memory and room in the queue until the client is polled. So it is polled after a few
rows: the next ones then get memory that is still in the processor's cache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import length_hint
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from filesink.sinks.kafka.placing import ANY, Placing

_NOW = 0  # no time of its own
_AT_ONCE = 8192  # rows
_PAUSE = 0.05  # seconds, for the queue to become shorter


class Records:
    """Hands rows to a producer; waits where too many are on their way.

    Args:
        producer: in a transaction.
        topic: of all rows; ``""`` if each names its own.
        in_time: called every few rows, and while it waits; raises to give up.
        placing: chooses partitions; without, the producer does.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        *,
        in_time: Callable[[], None],
        placing: Placing | None = None,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._in_time = in_time
        self._placing = placing

    def send(self, batch: pa.RecordBatch) -> None:
        """Send the rows of ``batch``; in each partition in their order. Raises ``KafkaException``."""
        if self._placing is not None and batch.num_rows:
            batch = self._placing.placed(batch)
        for start in range(0, batch.num_rows, _AT_ONCE):
            self._send_some(batch.slice(start, _AT_ONCE))
            self._poll(0)

    def send_one(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, **extra: Any
    ) -> None:
        """Send one record, as soon as there is room."""
        while True:
            try:
                self._producer.produce(topic, value, key, partition, **extra)
            except BufferError:
                self._poll(_PAUSE)
            else:
                return

    def _send_some(self, batch: pa.RecordBatch) -> None:
        topics = repeat(self._topic) if self._topic else _column(batch, "topic", None)
        values, keys = _column(batch, "value", None), _column(batch, "key", None)
        columns = [values, topics, keys, _column(batch, "partition", ANY)]
        if {"timestamp", "headers"} & set(batch.schema.names):
            for value, topic, key, partition, extra in zip(*columns, _extras(batch), strict=False):
                self.send_one(topic, value, key, partition, **extra)
        else:
            self._send_all(columns, batch.num_rows)

    def _send_all(self, columns: list[list[Any] | repeat[Any]], rows: int) -> None:
        """Send ``rows`` rows: of each its value, topic, key and partition."""
        produce, done = self._producer.produce, 0
        while True:
            value, *rest = (one if isinstance(one, repeat) else iter(one[done:]) for one in columns)
            topic, key, partition = rest
            try:
                deque(map(produce, topic, value, key, partition), maxlen=0)
            except BufferError:
                done = rows - length_hint(value) - 1  # the row that found no room is taken from the iterator
                self._poll(_PAUSE)
            else:
                return

    def _poll(self, seconds: float) -> None:
        """Forget what is delivered; wait up to ``seconds`` until something is."""
        self._in_time()
        self._producer.poll(seconds)


def _column(batch: pa.RecordBatch, name: str, otherwise: int | None) -> list[Any] | repeat[Any]:
    """The values of a column, with ``otherwise`` for nulls; the same for all rows if there is no column."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return repeat(otherwise)
    column: Any = batch.column(place)
    values: list[Any] = (column if otherwise is None else column.fill_null(otherwise)).to_pylist()
    return values


def _extras(batch: pa.RecordBatch) -> Iterable[dict[str, Any]]:
    """What few rows have."""
    times, headers = _column(batch, "timestamp", _NOW), _column(batch, "headers", None)
    return (
        {"timestamp": time, "headers": [tuple(pair.values()) for pair in pairs or ()]}
        for time, pairs in zip(times, headers, strict=False)
    )
