"""Which partitions rows go to, and in which order."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from filesink.sinks.kafka.placing import Placing, murmur2
from tests.sinks.kafka.site import Site

#: From the tests of Apache Kafka's own client.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def by_hand(key: bytes) -> int:
    """Murmur2 as it is published, byte by byte."""
    mix, mask = 0x5BD1E995, 0xFFFFFFFF
    found = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for place in range(0, whole, 4):
        word = int.from_bytes(key[place : place + 4], "little") * mix & mask
        word = (word ^ word >> 24) * mix & mask
        found = (found * mix & mask) ^ word
    if key[whole:]:
        found = (found ^ int.from_bytes(key[whole:], "little")) * mix & mask
    found = (found ^ found >> 13) * mix & mask
    return found ^ found >> 15


def test_known_hashes() -> None:
    """Those of Java's client."""
    assert murmur2(pa.array(KNOWN, pa.binary())).astype("int32").tolist() == list(KNOWN.values())


@given(
    keys=st.lists(st.binary(max_size=70) | st.none(), max_size=40),
    first=st.integers(0, 5),
    large=st.booleans(),
)
def test_hashes_of_any_keys(keys: list[bytes | None], first: int, large: bool) -> None:  # noqa: FBT001
    """Of every length, in every place of an array, nulls between them."""
    array = pa.array(keys, pa.large_binary() if large else pa.binary())[first:]
    found = murmur2(array).tolist()
    assert [one for one, key in zip(found, keys[first:], strict=True) if key is not None] == [
        by_hand(key) for key in keys[first:] if key is not None
    ]


def test_rows_stay_in_order() -> None:
    """In each partition; one that a row asks for is its own, and rows without a key stay together."""
    rows = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"a", None, b"b", b"a", None, b"b", b"a"]),
            "value": pa.array([b"0", b"1", b"2", b"3", b"4", b"5", b"6"]),
            "partition": pa.array([None, None, None, None, None, 7, 7], pa.int32()),
        }
    )
    placed = Placing(3).placed(rows).to_pylist()
    assert [row["partition"] for row in placed] == sorted(row["partition"] for row in placed)
    by_key = {
        key: [row for row in placed if row["key"] == key and row["partition"] < 7]
        for key in (b"a", b"b", None)
    }
    assert {key: [row["value"] for row in found] for key, found in by_key.items()} == {
        b"a": [b"0", b"3"],
        b"b": [b"2"],
        None: [b"1", b"4"],
    }
    assert all(len({row["partition"] for row in found}) == 1 for found in by_key.values())
    assert [row["value"] for row in placed[-2:]] == [b"5", b"6"]


def test_rows_without_keys_are_spread() -> None:
    """Batch by batch."""
    placing = Placing(4)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"v", b"w"])})
    found = Counter(row["partition"] for _ in range(8) for row in placing.placed(batch).to_pylist())
    assert found == dict.fromkeys(range(4), 4)


def test_keys_that_are_very_long() -> None:
    """Are left to the client."""
    batch = pa.RecordBatch.from_pydict({"key": pa.array([b"k" * 5000]), "value": pa.array([b"v"])})
    assert Placing(4).placed(batch).schema.names == ["key", "value"]


@pytest.mark.slow
def test_small_epochs_take_turns(site: Site) -> None:
    """With rows that have no key."""
    for number in range(2):
        site.run(number, pa.RecordBatch.from_pydict({"value": ["a", "b"]}))
    assert sorted(message.partition() or 0 for message in site.read()) == [0, 0, 1, 1]


@pytest.mark.slow
def test_keys_meet_those_of_other_clients(site: Site) -> None:
    """A key goes where another client of Kafka has put it."""
    site = site.beside(partitions=7)
    keys = [str(number) for number in range(200)]
    theirs = Producer({"bootstrap.servers": site.broker.servers, "partitioner": "murmur2_random"})
    for key in keys:
        theirs.produce(site.name, b"theirs", key)
    theirs.flush()
    site.run(0, pa.RecordBatch.from_pydict({"key": keys, "value": ["ours"] * len(keys)}))
    places: dict[bytes, set[int]] = {}
    for message in site.read():
        places.setdefault(message.key(), set()).add(message.partition())
    assert len(places) == len(keys)
    assert {len(found) for found in places.values()} == {1}
    assert len(set.union(*places.values())) == 7
