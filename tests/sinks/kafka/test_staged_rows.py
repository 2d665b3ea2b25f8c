"""Rows that a task has staged, on their way to a producer: also those that an earlier release has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from filesink.sinks.kafka.columns import Columns
from filesink.sinks.kafka.records import Records
from filesink.sinks.kafka.writer import FORMAT

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-staged-1.arrow"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
GIVEN = pa.RecordBatch.from_pydict(
    {
        "value": pa.array(["one", None, "three"]),
        "key": pa.array(["ü", "k", None]),
        "topic": pa.array(["a", "b", "a"]),
        "partition": pa.array([1, None, 0], pa.int32()),
        "headers": pa.array([[("h", b"\0"), ("n", None)], [], None], HEADERS),
        "timestamp": pa.array([1_700_000_000_000_000, None, 1_999], pa.timestamp("us", "UTC")),
    }
)
#: Of each call its topic, value, key, partition, timestamp and headers.
CALLS = [
    ("a", b"one", "ü".encode(), 1, 1_700_000_000_000, [("h", b"\0"), ("n", None)]),
    ("b", None, b"k", -1, 0, []),
    ("a", b"three", None, 0, 1, []),
]


class Noting:
    """A producer that notes what it is asked to send, and of how many rows it knew at once."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.most = self._known = 0

    def produce(self, *values: Any, timestamp: int = 0, headers: Any = ()) -> None:
        self.calls.append((*values, timestamp, headers))
        self._known += 1
        self.most = max(self.most, self._known)

    def poll(self, timeout: float) -> None:
        del timeout
        self._known = 0


def sent(path: Path) -> list[tuple[Any, ...]]:
    """What is sent of a staged file."""
    producer = Noting()
    records = Records(producer, "", in_time=lambda: None)  # type: ignore[arg-type]
    with path.open("rb") as file:
        for batch in FORMAT.open_reader(file):
            records.send(batch)
    return producer.calls


def stage(path: Path) -> None:
    """Stage ``GIVEN`` there."""
    staged = Columns.of(GIVEN.schema, "").of_kafka(GIVEN)
    with path.open("wb") as file:
        writer = FORMAT.create(file, staged.schema)
        writer.write(staged)
        writer.flush()
        writer.finish()


def test_rows_that_the_first_release_has_staged() -> None:
    """A decided epoch is sent by whichever release comes next."""
    assert sent(GOLDEN) == CALLS


def test_rows_that_are_staged_now(tmp_path: Path) -> None:
    """The same records."""
    stage(tmp_path / "rows")
    assert sent(tmp_path / "rows") == CALLS


def test_what_is_delivered_is_forgotten_on_the_way() -> None:
    """The memory of a client does not grow with the batch, and all rows are sent in their order."""
    values = [str(number).encode() for number in range(30_000)]
    producer = Noting()
    records = Records(producer, "t", in_time=lambda: None)  # type: ignore[arg-type]
    records.send(pa.RecordBatch.from_pydict({"value": values}))
    assert [call[1] for call in producer.calls] == values
    assert producer.most < 10_000
