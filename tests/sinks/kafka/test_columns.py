"""Columns of the input as those of a record: what fits, what is refused, and what becomes of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from filesink import DataError, SchemaError
from filesink.sinks.kafka.columns import Columns

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
UTC = timezone.utc  # noqa: UP017 - as in 3.11


def staged(topic: str = "t", /, **columns: Any) -> pa.RecordBatch:
    """A batch with these columns, as it is staged."""
    batch = pa.RecordBatch.from_pydict(columns)
    return Columns.of(batch.schema, topic).of_kafka(batch)


def test_all_that_a_record_has() -> None:
    """Text becomes UTF-8, times milliseconds; names may be in any case, in any order."""
    batch = staged(
        "",
        Topic=pa.array(["a"]),
        partition=pa.array([1], pa.int32()),
        KEY=pa.array(["ü"]),
        timestamp=pa.array([datetime(2024, 1, 1, 0, 0, 0, 1999, UTC)], pa.timestamp("us", "UTC")),
        headers=pa.array([[("h", b"v")]], HEADERS),
        value=pa.array([b"\0"]),
    )
    assert batch.to_pylist() == [
        {
            "value": b"\0",
            "key": "ü".encode(),
            "topic": "a",
            "partition": 1,
            "headers": [{"key": "h", "value": b"v"}],
            "timestamp": 1_704_067_200_001,
        }
    ]


def test_nulls_stay() -> None:
    """A tombstone, a row without a key, without a partition, headers or a time of its own."""
    columns = {
        "value": pa.array([None], pa.binary()),
        "key": pa.array([None], pa.string()),
        "partition": pa.array([None], pa.int32()),
        "headers": pa.array([None], HEADERS),
        "timestamp": pa.array([None], pa.timestamp("us")),
    }
    assert staged(**columns).to_pylist() == [
        dict.fromkeys(["value", "key", "partition", "headers", "timestamp"])
    ]


def test_the_topic_of_the_sink_is_stronger() -> None:
    """As with Spark's own: what a column says is not even staged."""
    assert staged("t", value=pa.array(["v"]), topic=pa.array(["other"])).schema.names == ["value"]


@pytest.mark.parametrize(
    ("topic", "columns", "code"),
    [
        ("t", {"key": pa.array(["k"])}, "MISSING_COLUMN"),
        ("", {"value": pa.array(["v"])}, "MISSING_COLUMN"),
        ("t", {"value": pa.array(["v"]), "offset": pa.array([1])}, "UNKNOWN_COLUMN"),
        ("t", {"value": pa.array(["v"]), "Value": pa.array(["v"])}, "UNKNOWN_COLUMN"),
        ("t", {"value": pa.array([1])}, "TYPE"),
        ("t", {"value": pa.array(["v"]), "key": pa.array([1])}, "TYPE"),
        ("", {"value": pa.array(["v"]), "topic": pa.array([b"t"])}, "TYPE"),
        ("t", {"value": pa.array(["v"]), "partition": pa.array(["1"])}, "TYPE"),
        ("t", {"value": pa.array(["v"]), "timestamp": pa.array([1])}, "TYPE"),
        ("t", {"value": pa.array(["v"]), "headers": pa.array([["h"]])}, "TYPE"),
    ],
)
def test_columns_that_no_record_has(topic: str, columns: dict[str, Any], code: str) -> None:
    """They are named, and refused before a task runs; nothing is left out in silence."""
    with pytest.raises(SchemaError) as error:
        staged(topic, **columns)
    assert error.value.code == code


@pytest.mark.parametrize(
    "columns",
    [
        {"partition": pa.array([-1])},
        {"partition": pa.array([987_654_321_987])},
        {"timestamp": pa.array([datetime(1969, 12, 31) + timedelta(hours=1)], pa.timestamp("us"))},  # noqa: DTZ001
        {"headers": pa.array([[(None, b"secret")]], HEADERS)},
        {"headers": pa.array([[None]], HEADERS)},
    ],
    ids=["negative", "too large", "before 1970", "header without key", "null header"],
)
def test_values_that_no_record_has(columns: dict[str, Any]) -> None:
    """They fail the task, and are in no message."""
    with pytest.raises(DataError) as error:
        staged(value=pa.array(["secret"]), **columns)
    assert error.value.code == "KAFKA_VALUE"
    assert "secret" not in str(error.value)
    assert "987" not in str(error.value)
