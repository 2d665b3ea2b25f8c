"""Laws of splitting, escaping and times, for values that nobody thought of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext, assign_ids, split
from filesink.buckets.partition_paths import escape, fragment, partition_values, unescape
from filesink.buckets.router import Router
from filesink.errors import BucketError
from filesink.local_time import LocalTime, time_zone
from filesink.storage.bucket_ids import check_bucket_id, encode_ids
from formats.text.zones import utc_offsets

CONTEXT = BucketContext(processing_time_ms=0, time_zone="UTC")
ZONES = ("America/New_York", "Europe/Dublin", "Asia/Tehran", "Pacific/Apia", "Africa/Monrovia", "+05:45")
text = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)


@given(st.lists(st.sampled_from(["", "a", "b/c", "k=1", "é"]), max_size=40), st.booleans())
def test_split_is_a_stable_partition(ids: list[str], encoded: bool) -> None:  # noqa: FBT001
    """Each record comes out exactly once, under its own id, in its order; each id at most once."""
    batch = pa.record_batch({"n": pa.array(range(len(ids)), pa.int64())})
    array = pa.array(ids, pa.string())
    parts = split(batch, encode_ids(array.dictionary_encode() if encoded else array))
    assert {name: records.column(0).to_pylist() for name, records in parts} == {
        name: [n for n, other in enumerate(ids) if other == name] for name in ids
    }
    assert len(parts) == len(set(ids))


def _none(records: pa.RecordBatch, error: BucketError) -> None:
    raise AssertionError(f"{records.num_rows} records have no bucket") from error


class _ByColumn(BucketAssigner):
    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        del context
        return batch.column("bucket")

    def partition_columns(self) -> tuple[str, ...]:
        return ("bucket",)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=30), max_size=12),
    st.sampled_from([1, 100, 5_000, 50_000, 1 << 27]),
    st.integers(0, 400),
)
def test_routing_loses_and_reorders_nothing(batches: list[list[int]], memory: int, kept: int) -> None:
    """However records are gathered, grouped and released, each bucket gets its own, in their order."""
    router, rows = Router(_ByColumn(), memory, _none), 0
    found: dict[str, list[Any]] = {}
    expected: dict[str, list[int]] = {}

    def take(pieces: Iterable[tuple[str, pa.RecordBatch]]) -> None:
        for name, records in pieces:
            assert records.schema.names == ["n"]
            found.setdefault(name, []).extend(records.column(0).to_pylist())

    for buckets in batches:
        numbers = range(rows, rows := rows + len(buckets))
        for bucket, number in zip(buckets, numbers, strict=True):
            expected.setdefault(str(bucket), []).append(number)
        names = pa.array([str(bucket) for bucket in buckets])
        batch = pa.RecordBatch.from_arrays([names, pa.array(numbers)], ["bucket", "n"])
        take(router.route(batch, CONTEXT))
        while router.held > kept:
            take(router.release())
    take(router.drain(CONTEXT))
    assert found == expected
    assert router.held == 0


@given(st.text(st.sampled_from("ab/._\0\n\x7f\ud800é =%") | st.characters(), max_size=60))
def test_checked_ids_stay_below_the_base(bucket_id: str) -> None:
    """Exactly the plain relative paths of visible components pass, and they pass unchanged."""
    usable = all(
        re.fullmatch(
            r"(?!=|[^=]*=$)[^/._\\\x00-\x1f\x7f\ud800-\udfff][^/\\\x00-\x1f\x7f\ud800-\udfff]*", component
        )
        for component in (bucket_id.split("/") if bucket_id else [])
    )
    if usable:
        assert check_bucket_id(bucket_id) == bucket_id
    else:
        with pytest.raises(BucketError) as caught:
            check_bucket_id(bucket_id)
        assert str(caught.value).isprintable()


@given(text)
def test_escape_is_injective_and_safe(value: str) -> None:
    """Every value comes back, also by the standard library's percent decoding, and stays one component."""
    assert unescape(escape(value)) == value
    assert unquote(escape(value), errors="strict") == value
    assert "/" not in escape(value)
    assert check_bucket_id(fragment("k", value)).count("/") == 0


@given(st.lists(st.tuples(text, st.none() | text), min_size=1, max_size=4))
def test_partition_paths_are_read_back(pairs: list[tuple[str, str | None]]) -> None:
    """Names and values of a path are those it was made of; '' is read as null, as Hive does."""
    path = "/".join(fragment(name, value) for name, value in pairs)
    assert partition_values(path) == [(name, value or None) for name, value in pairs]


@given(
    st.lists(
        st.tuples(st.none() | st.sampled_from(["", "x", "y z"]), st.none() | st.integers(-2, 2)), max_size=30
    )
)
def test_partition_assigner_is_per_record(rows: list[tuple[str | None, int | None]]) -> None:
    """Combining codes of columns gives what each record alone would get."""
    columns: list[pa.Array[Any]] = [
        pa.array([a for a, _ in rows], pa.string()),
        pa.array([b for _, b in rows], pa.int32()),
    ]
    batch = pa.record_batch(columns, names=["a", "b"])
    ids = assign_ids(BucketAssigner.partition_bucket_assigner("a", "b"), batch, CONTEXT)
    assert ids.to_pylist() == [
        f"{fragment('a', a)}/{fragment('b', None if b is None else str(b))}" for a, b in rows
    ]


@given(
    st.lists(st.integers(-62_135_000_000, 253_402_000_000), min_size=1, max_size=8), st.sampled_from(ZONES)
)
def test_offsets_are_those_of_each_instant(seconds: list[int], name: str) -> None:
    """Searching one change per day finds the offset that Python finds for the instant itself."""
    zone = time_zone(name)
    found = utc_offsets(np.array(seconds, dtype=np.int64), zone)
    instants = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second) for second in seconds]
    assert found.tolist() == [
        int((instant.astimezone(zone).utcoffset() or timedelta()).total_seconds()) for instant in instants
    ]


@pytest.mark.parametrize("name", ["America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"])
@given(year=st.integers(1970, 2037), near=st.integers(0, 86_400))
def test_offsets_on_days_of_change(name: str, year: int, near: int) -> None:
    """On every day of a year on which the offset changes, at any second."""
    zone = ZoneInfo(name)
    noons = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(366)]
    changing = [
        a
        for a in noons
        if a.astimezone(zone).utcoffset() != (a + timedelta(days=1)).astimezone(zone).utcoffset()
    ]
    for day in changing:
        instant = day + timedelta(seconds=near)
        expected = int((instant.astimezone(zone).utcoffset() or timedelta()).total_seconds())
        assert utc_offsets(np.array([int(instant.timestamp())]), zone).tolist() == [expected]


@given(st.datetimes(min_value=datetime(1, 1, 2)))  # noqa: DTZ001 - a wall clock
def test_local_time_is_the_calendar(moment: datetime) -> None:
    """Fields are those of Python's calendar where it has one."""
    second, micro = divmod((moment - datetime(1970, 1, 1)) // timedelta(microseconds=1), 1_000_000)  # noqa: DTZ001
    time = LocalTime.of(second, micro * 1000)
    assert (time.year, time.month, time.day, time.hour, time.minute, time.second) == moment.timetuple()[:6]
    assert (time.weekday, time.day_of_year) == (moment.weekday(), moment.timetuple().tm_yday)
