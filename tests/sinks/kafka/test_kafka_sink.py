"""What arrives, what is refused before it is decided, and what becomes of a decided epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from filesink import (
    ConfigError,
    DataError,
)
from filesink.sinks.kafka import writer
from tests.sinks.kafka.site import Site, epoch_of, rows
from tests.sinks.kafka.test_columns import HEADERS

pytestmark = pytest.mark.slow


def of_value(*values: bytes | None, **columns: Any) -> pa.RecordBatch:
    """Rows with these values, and other columns."""
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary()), **columns})


def test_all_that_a_record_has(site: Site) -> None:
    """Key, value, partition, headers in their order and twice the same, a time of its own; nulls."""
    when = datetime.now(UTC).replace(microsecond=123_000) - timedelta(days=1)
    batch = of_value(
        b"\0\xff",
        None,
        b"",
        key=pa.array(["k", "", None]),
        partition=pa.array([1, 1, 1], pa.int32()),
        headers=pa.array([[("h", b"1"), ("a", None), ("h", b"2")], [], None], HEADERS),
        timestamp=pa.array([when, None, None], pa.timestamp("us", "UTC")),
    )
    site.run(0, batch)
    first, second, third = site.read()
    assert [(one.key(), one.value(), one.partition()) for one in (first, second, third)] == [
        (b"k", b"\0\xff", 1),
        (b"", None, 1),
        (None, b"", 1),
    ]
    assert first.headers() == [("h", b"1"), ("a", None), ("h", b"2")]
    assert not second.headers()
    assert first.timestamp()[1] == int(when.timestamp() * 1000)
    assert second.timestamp()[1] > first.timestamp()[1]


def test_rows_that_name_their_topics(site: Site) -> None:
    """All in one transaction."""
    other = site.beside()
    topics = [site.name, other.name, site.name]
    site.run(0, of_value(b"0", b"1", b"2", topic=topics), topic="")
    assert sorted(message.value() for message in site.read()) == [b"0", b"2"]
    assert [message.value() for message in other.read()] == [b"1"]


def murmur2(data: bytes) -> int:
    """The hash of Java's client, from its specification."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    found = (0x9747B28C ^ len(data)) & mask
    whole = len(data) - len(data) % 4
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * mix & mask
        found = (found * mix & mask) ^ ((word ^ word >> 24) * mix & mask)
    if data[whole:]:
        found = (found ^ int.from_bytes(data[whole:], "little")) * mix & mask
    found = (found ^ found >> 13) * mix & mask
    return (found ^ found >> 15) & 0x7FFFFFFF


def test_keys_go_where_java_puts_them(site: Site) -> None:
    """A topic that others write to with the same keys can be joined with them."""
    own = site.beside(partitions=7)
    own.run(0, rows(*range(100)))
    assert {message.key(): message.partition() for message in own.read()} == {
        str(one).encode(): murmur2(str(one).encode()) % 7 for one in range(100)
    }


def test_rows_of_a_partition_keep_their_order(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one task, over files and transactions; tasks follow each other."""
    monkeypatch.setattr(writer, "_FILE_BYTES", 1)
    own = site.beside(partitions=1, options={"transaction_bytes": 200})
    own.run(0, *(rows(*range(first, first + 50)) for first in range(0, 500, 50)))
    assert [int(message.key()) for message in own.read()] == list(range(500))
    assert len(own.read(own.markers)) > 1


@pytest.mark.parametrize(
    ("topic", "batch", "why"),
    [
        ({"max_message_bytes": "2000"}, of_value(b"secret" * 330), "max.message.bytes"),
        ({}, of_value(b"secret", partition=pa.array([2])), "partition 2"),
        ({"cleanup_policy": "compact"}, of_value(b"secret"), "no key"),
        (
            {"message_timestamp_after_max_ms": "60000"},
            of_value(b"secret", timestamp=pa.array([datetime.now(UTC) + timedelta(hours=2)])),
            "after.max.ms",
        ),
        (
            {"message_timestamp_before_max_ms": "60000"},
            of_value(b"secret", timestamp=pa.array([datetime.now(UTC) - timedelta(hours=2)])),
            "before.max.ms",
        ),
    ],
    ids=["large", "partition", "keyless", "future", "past"],
)
def test_rows_that_a_topic_does_not_take(
    site: Site, topic: dict[str, str], batch: pa.RecordBatch, why: str
) -> None:
    """Nothing is decided, nothing is sent, nothing is left, and the value is in no message."""
    own = site.beside(config=topic)
    with pytest.raises(DataError, match=why) as error:
        own.run(0, batch, rows(1).select(["value"]))
    assert error.value.code == "KAFKA_VALUE"
    assert "secret" not in str(error.value)
    assert own.read() == []
    assert own.staged() == []
    own.run(0, rows(1))
    assert own.ids_there() == [1]


def test_what_is_not_refused_goes_in(site: Site) -> None:
    """A row of the largest size that passes is taken by the topic, and many that fill a batch as well."""
    own = site.beside(config={"max_message_bytes": "5000"}, partitions=1)
    own.run(0, of_value(b"x" * 4900, *[b"y" * 100] * 1000))
    assert len(own.read()) == 1001


def test_a_topic_that_is_not_there(site: Site) -> None:
    """Of a column, only the rows tell; what they name is not repeated."""
    with pytest.raises(ConfigError, match="2 rows are for it") as error:
        site.run(0, of_value(b"0", b"1", b"2", topic=["secret", site.name, "secret"]), topic="")
    assert error.value.code == "KAFKA_TOPIC"
    assert "secret" not in str(error.value)
    assert site.read() == []
    assert "secret" not in site.admin.list_topics().topics


def test_what_dead_attempts_have_left(site: Site) -> None:
    """A stream removes it at its next start; of batch writes it goes by hand, when it is old."""
    tiers = site.tiers()
    tiers.ledger.prepare()
    for context in (site.context(), site.context()):
        attempt = tiers.create_writer(context)
        attempt.write(rows(9), context)
        attempt.prepare_commit(0)
    assert len(site.staged()) == 2
    site.run(0, rows(1))
    assert site.staged() == []
    assert site.ids_there() == [1]


def test_a_file_is_no_larger_than_a_transaction_can_be(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that has many rows stages them in several."""
    monkeypatch.setattr(writer, "_FILE_BYTES", 100)
    site.run(0, *[rows(*range(first, first + 10)) for first in range(0, 50, 10)])
    assert len(epoch_of(site).files) == 5
    assert site.ids_there() == list(range(50))


@pytest.mark.parametrize("times", [0, 5000], ids=["plain", "times"])
def test_more_rows_than_may_be_on_their_way(site: Site, times: int) -> None:
    """They wait for room, in their order, and none is left out or sent twice."""
    own = site.beside(partitions=1)
    keys = [str(one) for one in range(5000)]
    extra = {"timestamp": pa.array([datetime.now(UTC)] * times)} if times else {}
    batch = of_value(*(one.encode() for one in keys), key=pa.array(keys), **extra)
    own.run(0, batch, client={"queue.buffering.max.messages": 100})
    assert [(message.key(), message.value()) for message in own.read()] == [
        (one.encode(), one.encode()) for one in keys
    ]
