"""What rows ask of their topics, in numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink import DataError
from filesink.sinks.kafka import loads
from filesink.sinks.kafka.loads import TopicLoad, measure, merged
from tests.sinks.kafka.test_columns import HEADERS

SCHEMA = pa.schema(
    [
        ("value", pa.binary()), ("key", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()),
        ("headers", HEADERS), ("timestamp", pa.int64()),
    ]
)  # fmt: skip
BYTES = st.none() | st.binary(max_size=5)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "value": BYTES,
            "key": BYTES,
            "topic": st.sampled_from(["a", "b"]),
            "partition": st.none() | st.integers(0, 5),
            "headers": st.none() | st.lists(st.fixed_dictionaries({"key": st.text("xy"), "value": BYTES})),
            "timestamp": st.none() | st.integers(1, 9),
        }
    ),
    min_size=1,
)


def load_of(topic: str, rows: list[dict[str, object]]) -> TopicLoad:
    """The same, row by row."""

    def size(row: dict[str, object]) -> int:
        headers = [part for pair in row["headers"] or () for part in pair.values()]  # type: ignore[attr-defined]
        parts = [row["value"], row["key"], *headers]
        return 100 + 5 * len(headers) + sum(len(part or b"") for part in parts)  # type: ignore[arg-type]

    times = [row["timestamp"] for row in rows if row["timestamp"] is not None]
    return TopicLoad(
        topic=topic,
        rows=len(rows),
        largest=max(map(size, rows)),
        partition=max(-1 if row["partition"] is None else row["partition"] for row in rows),  # type: ignore[type-var]
        keyless=sum(row["key"] is None for row in rows),
        earliest_ms=min(times, default=-1),  # type: ignore[type-var]
        latest_ms=max(times, default=-1),  # type: ignore[type-var]
    )


@given(ROWS, st.integers(0, 5))
def test_loads_are_those_of_the_rows(rows: list[dict[str, object]], cut: int) -> None:
    """However they are divided into batches, and wherever a batch is a slice of another one."""
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    pieces = [piece for piece in (batch.slice(0, cut), batch.slice(cut)) if piece.num_rows]
    found = merged(load for piece in pieces for load in measure(piece))
    expected = {
        topic: load_of(topic, own)
        for topic in ("a", "b")
        if (own := [row for row in rows if row["topic"] == topic])
    }
    assert {load.topic: load for load in found} == expected


@pytest.mark.parametrize("topic", [None, "", "a/b", "ä", "x" * 250, ".."])
def test_a_topic_that_can_be_none(topic: str | None) -> None:
    """Also among others, and without being repeated."""
    batch = pa.RecordBatch.from_pydict({"value": [b"", b""], "topic": ["a", topic]})
    with pytest.raises(DataError) as error:
        measure(batch)
    assert error.value.code == "KAFKA_TOPIC"
    assert not topic or len(topic) < 2 or topic not in error.value.message


def test_a_column_of_keys_for_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told from one of topics by their number, while memory lasts."""
    monkeypatch.setattr(loads, "MOST_TOPICS", 2)
    batch = pa.RecordBatch.from_pydict({"value": [b""] * 3, "topic": ["a", "b", "c"]})
    with pytest.raises(DataError, match="right column"):
        merged(measure(batch))
