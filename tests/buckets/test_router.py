"""Routing: which records wait for company, where, and in which order they go on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from filesink.buckets.contract import BucketContext
from filesink.buckets.router import Router
from filesink.storage.bucket_ids import Refusal
from formats import columns
from tests.fakes import ByColumn

NOW = BucketContext(processing_time_ms=0, time_zone="UTC")


def in_buckets(buckets, first=0):
    """A record for each of ``buckets``; their values count from ``first``."""
    values = [first + number for number in range(len(buckets))]
    return pa.RecordBatch.from_pydict({"bucket": [*buckets], "value": values})


def routing(memory, refuse=None):
    """A router of records that all have a bucket, unless ``refuse`` takes the others."""
    return Router(ByColumn(), memory, refuse or pytest.fail)


def by_bucket(pieces):
    """The values of each piece."""
    return [(bucket, piece.column(0).to_pylist()) for bucket, piece in pieces]


def many(count=300, first=0):
    """A record for each of many buckets."""
    return in_buckets([f"b{number}" for number in range(count)], first)


def test_records_of_a_few_buckets_wait_for_company():
    """Once buckets are seen to lie mixed, batches are gathered until each has a thousand records or so."""
    sut = routing(memory=1 << 30)
    assert by_bucket(sut.route(in_buckets("aba"), NOW)) == [("a", [0, 2]), ("b", [1])]
    assert by_bucket(sut.route(in_buckets("ab" * 500), NOW)) == []
    assert by_bucket(sut.route(in_buckets("ab" * 500, 1000), NOW)) == []
    pieces = by_bucket(sut.route(in_buckets("ab" * 500, 2000), NOW))
    assert pieces == [("a", [*range(0, 3000, 2)]), ("b", [*range(1, 3000, 2)])]
    assert sut.held == 0


def test_a_batch_of_one_bucket_waits_for_nothing():
    """Where nothing lies mixed any more, gathering ends."""
    sut = routing(memory=1 << 30)
    list(sut.route(in_buckets("ab"), NOW))
    assert by_bucket(sut.route(in_buckets("a" * 2048), NOW)) == [("a", [*range(2048)])]
    assert by_bucket(sut.route(in_buckets("a"), NOW)) == [("a", [0])]


def test_records_of_too_many_buckets_wait_in_groups():
    """Of 300 buckets a thousand records each do not fit into the memory: they wait, and are counted."""
    size = columns.size(many())
    sut = routing(memory=16 * size)
    for number in range(10):
        assert by_bucket(sut.route(many(first=1000 * number), NOW)) == []
        assert 0.5 < sut.held / (size * (number + 1)) < 2


def test_the_largest_group_is_released_first():
    """Its buckets come whole, in the order of their records, and count no longer."""
    sut = routing(memory=16 * columns.size(many()))
    list(sut.route(many(), NOW))
    list(sut.route(in_buckets([*(f"b{number}" for number in range(300)), *["b7"] * 200], 1000), NOW))
    before = sut.held
    pieces = dict(by_bucket(sut.release()))
    assert pieces.pop("b7") == [7, 1007, *range(1300, 1500)]
    assert 1 <= len(pieces) < 20
    assert all(values == [int(bucket[1:]), 1000 + int(bucket[1:])] for bucket, values in pieces.items())
    assert 0 < sut.held < before
    rest = dict(by_bucket(sut.drain(NOW)))
    assert sorted([*pieces, *rest, "b7"]) == sorted(f"b{number}" for number in range(300))
    assert sut.held == 0


def test_records_in_groups_go_before_later_ones():
    """A batch that is routed as it comes, or in larger pieces, does not overtake those that wait."""
    sut = routing(memory=1 << 20)
    list(sut.route(many(), NOW))
    assert sut.held
    pieces = by_bucket(sut.route(in_buckets(["b5"] * 100_000, 1000), NOW))
    assert [values[:2] for bucket, values in pieces if bucket == "b5"] == [[5], [1000, 1001]]
    assert sut.held == 0


def test_most_records_in_one_bucket_do_not_wait_in_its_group():
    """What makes a slice worth its price goes on, with its group, once that is a sixteenth of the memory."""
    sut = routing(memory=16 * columns.size(many()))
    pieces = []
    batch = in_buckets([*(f"b{row}" for row in range(300)), *["b7"] * 30])
    for _ in range(50):
        pieces += by_bucket(sut.route(batch, NOW))
        assert max(group.size for group in sut._groups.values()) <= columns.size(many())
    assert 2 < sum(bucket == "b7" for bucket, _ in pieces) < 25
    assert all(len(values) > 60 for bucket, values in pieces if bucket == "b7")
    assert {bucket for bucket, _ in pieces} < {f"b{row}" for row in range(300)}


def test_large_records_of_some_buckets_are_not_copied_into_groups():
    """Ten records of 10 kB each are a good slice, although they are few."""
    sut = routing(memory=128 << 20)
    rows = [f"b{row % 10}" for row in range(100)]
    batch = pa.RecordBatch.from_pydict({"bucket": rows, "value": ["x" * 10_000] * 100})
    assert len(list(sut.route(batch, NOW))) == 10
    assert list(sut.route(batch, NOW)) == []
    assert len(list(sut.drain(NOW))) == 10
    assert sut.held == 0


def test_small_records_of_many_buckets_are_gathered_only():
    """A thousand records of each of 600 buckets fit into what may be gathered, so nothing is grouped."""
    sut = routing(memory=128 << 20)
    assert len(list(sut.route(many(600), NOW))) == 600
    assert list(sut.route(many(600), NOW)) == []
    assert sut.held == 0


def test_what_is_gathered_is_bounded_by_its_bytes():
    """Two buckets of large records wait for company until a quarter of the memory is there."""
    sut = routing(memory=128 << 20)
    value = "x" * (40 << 10)
    batch = pa.RecordBatch.from_pydict({"bucket": [*"ab"] * 50, "value": [value] * 100})  # 4 MB
    list(sut.route(batch, NOW))
    gathered = 0
    while not (pieces := list(sut.route(batch, NOW))):
        gathered += columns.size(batch)
        assert gathered < 32 << 20
    assert [(bucket, piece.num_rows) for bucket, piece in pieces] == [("a", 450), ("b", 450)]


def test_records_without_a_bucket_are_handed_over():
    """Once for each reason, with the columns of the path; the others go on in their order."""
    refused = []
    sut = routing(1 << 30, lambda records, why: refused.append((why.code, records.to_pydict())))
    rows = ["a", None, "../x", "b", "a", "/y", "_z"]
    assert by_bucket(sut.route(in_buckets(rows), NOW)) == [("a", [0, 4]), ("b", [3])]
    assert sorted(refused, key=str) == [
        ("HIDDEN", {"bucket": ["_z"], "value": [6]}),
        ("NULL", {"bucket": [None], "value": [1]}),
        ("RELATIVE", {"bucket": ["../x", "/y"], "value": [2, 5]}),
    ]


def test_a_batch_may_have_no_bucket_at_all():
    """Nothing goes on, and what comes later does."""
    refused = []
    sut = routing(1, lambda records, _: refused.append(records.num_rows))
    assert list(sut.route(pa.RecordBatch.from_pydict({"bucket": ["_a"] * 3, "value": [0] * 3}), NOW)) == []
    assert by_bucket(sut.route(in_buckets("a"), NOW)) == [("a", [0])]
    assert refused == [3]


def test_a_store_may_refuse_what_would_be_a_path_elsewhere():
    """It is asked for each bucket."""
    refused, why = [], Refusal(code="ILLEGAL_CHAR", why="holds a colon")
    sut = Router(
        ByColumn(),
        1 << 30,
        lambda records, _: refused.append(records),
        lambda bucket: why if ":" in bucket else None,
    )
    assert by_bucket(sut.route(in_buckets(["a:b", "a"]), NOW)) == [("a", [1])]
    assert [records.num_rows for records in refused] == [1]
