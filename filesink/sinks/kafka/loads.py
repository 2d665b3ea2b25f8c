"""What the rows of an epoch ask of each topic, measured while they are staged: a few numbers. Pure.

Whether a topic takes rows like these is then asked once on the driver, before the epoch is decided, and no
task has to connect to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from filesink.errors import DataError
from filesink.sinks.kafka.settings import is_topic

NONE = -1  # no partition was asked for
MOST_TOPICS = 10_000  # of an epoch
#: Bytes of a record's own besides key, value and headers, and of the batch around it, at most.
_AROUND = 100
_AROUND_HEADER = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """What rows for one topic ask of it.

    Attributes:
        topic: its name; ``""`` for that of the sink.
        rows: how many there are.
        largest: bytes of the largest row, in a batch of its own and not compressed.
        partition: the last partition that a row asks for, or ``NONE``.
        keyless: rows without a key.
        earliest_ms, latest_ms: of the timestamps of rows, in milliseconds since 1970; ``NONE`` for none.
    """

    topic: str
    rows: int
    largest: int
    partition: int = NONE
    keyless: int = 0
    earliest_ms: int = NONE
    latest_ms: int = NONE


def measure(batch: pa.RecordBatch) -> list[TopicLoad]:
    """The loads of a staged batch; see ``columns``.

    Raises:
        DataError: ``KAFKA_TOPIC``; a row has no topic, or one that can be none.
    """
    columns = {
        "largest": _sizes(batch),
        "partition": _numbers(batch, "partition"),
        "keyless": _keyless(batch),
        "ms": _numbers(batch, "timestamp"),
    }
    topics = _column(batch, "topic")
    if topics is None:
        return [_load_of_all(columns)] if batch.num_rows else []
    asked: list[Any] = [("largest", "max"), ("largest", "count"), ("partition", "max")]
    asked += [("keyless", "sum"), ("ms", "min"), ("ms", "max")]
    found = pa.table({"topic": topics, **columns}).group_by("topic").aggregate(asked)
    _check_names(found.column("topic").to_pylist())
    return [_load(row) for row in found.to_pylist()]


def merged(loads: Iterable[TopicLoad]) -> list[TopicLoad]:
    """One load for each topic.

    Raises:
        DataError: ``KAFKA_TOPIC``; too many topics.
    """
    found: dict[str, TopicLoad] = {}
    for load in loads:
        earlier = found.get(load.topic)
        found[load.topic] = load if earlier is None else _sum(earlier, load)
    if len(found) > MOST_TOPICS:
        raise DataError(
            f"the rows of one epoch name more than {MOST_TOPICS:,} topics. Nothing was sent. Is 'topic' the "
            "right column?",
            code="KAFKA_TOPIC",
        )
    return list(found.values())


def _sum(one: TopicLoad, other: TopicLoad) -> TopicLoad:
    earliest = [load.earliest_ms for load in (one, other) if load.earliest_ms != NONE]
    return TopicLoad(
        topic=one.topic,
        rows=one.rows + other.rows,
        largest=max(one.largest, other.largest),
        partition=max(one.partition, other.partition),
        keyless=one.keyless + other.keyless,
        earliest_ms=min(earliest, default=NONE),
        latest_ms=max(one.latest_ms, other.latest_ms),
    )


def _load_of_all(columns: dict[str, Any]) -> TopicLoad:
    """That of rows for the sink's topic: without a group, which takes longer than all else here."""
    return _load(
        {
            "topic": "",
            "largest_max": pc.max(columns["largest"]).as_py(),
            "largest_count": len(columns["largest"]),
            "partition_max": pc.max(columns["partition"]).as_py(),
            "keyless_sum": pc.sum(columns["keyless"]).as_py(),
            "ms_min": pc.min(columns["ms"]).as_py(),
            "ms_max": pc.max(columns["ms"]).as_py(),
        }
    )


def _load(row: dict[str, Any]) -> TopicLoad:
    return TopicLoad(
        topic=row["topic"],
        rows=row["largest_count"],
        largest=row["largest_max"],
        partition=_or_none(row["partition_max"]),
        keyless=row["keyless_sum"],
        earliest_ms=_or_none(row["ms_min"]),
        latest_ms=_or_none(row["ms_max"]),
    )


def _or_none(value: int | None) -> int:
    return NONE if value is None else value


def _check_names(names: list[str | None]) -> None:
    if None in names:
        raise DataError(
            "a row has no topic: column 'topic' is null. Nothing was sent. Correct the data, or give the "
            "sink a topic",
            code="KAFKA_TOPIC",
        )
    if not all(is_topic(str(name)) for name in names):
        raise DataError(
            "a row has a topic that can be none: 1 to 249 letters, digits, '.', '_' or '-'. Nothing was "
            "sent. Correct the data",
            code="KAFKA_TOPIC",
        )


def _column(batch: pa.RecordBatch, name: str) -> Any:
    place = batch.schema.get_field_index(name)
    return None if place < 0 else batch.column(place)


def _numbers(batch: pa.RecordBatch, name: str) -> Any:
    column = _column(batch, name)
    return pa.nulls(batch.num_rows, pa.int64()) if column is None else column.cast(pa.int64())


def _keyless(batch: pa.RecordBatch) -> Any:
    column = _column(batch, "key")
    missing = pa.repeat(True, batch.num_rows) if column is None else column.is_null()  # noqa: FBT003 - of Arrow
    return missing.cast(pa.int64())


def _sizes(batch: pa.RecordBatch) -> Any:
    """Bytes of each row as a record, at most."""
    sizes = np.full(batch.num_rows, _AROUND, np.int64)
    for name in ("key", "value"):
        if (column := _column(batch, name)) is not None:
            sizes += _lengths(column)
    if (headers := _column(batch, "headers")) is not None:
        sizes += _header_sizes(headers)
    return pa.array(sizes)


def _header_sizes(headers: Any) -> Any:
    pairs = headers.flatten()
    of_pairs = _lengths(pairs.field(0)) + _lengths(pairs.field(1)) + _AROUND_HEADER
    ends = np.cumsum(_filled(pc.list_value_length(headers)))
    sums = np.concatenate(([0], np.cumsum(of_pairs)))
    return sums[ends] - sums[np.concatenate(([0], ends[:-1]))]


def _lengths(column: Any) -> Any:
    return _filled(pc.binary_length(column))


def _filled(numbers: Any) -> Any:
    return pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.int64)
