"""Hive partition paths. That Spark agrees is shown in tests/spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from filesink.buckets.partition_paths import (
    DEFAULT_PARTITION,
    check_type,
    escape,
    fragment,
    partition_values,
    texts,
    unescape,
)
from filesink.errors import BucketError, SchemaError


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("/etc", "%2Fetc"),
        ("a/b", "a%2Fb"),
        (":x", "%3Ax"),
        ("=y", "%3Dy"),
        ("a%2Fb", "a%252Fb"),
        ("\n", "%0A"),
        ("..", ".."),
        ("a b é", "a b é"),
        ("[00:00]", "%5B00%3A00%5D"),
        ("{partName}", "%7BpartName}"),
        ("}~|<>&", "}~|<>&"),
    ],
)
def test_escape(text, escaped):
    """Escaped as Spark does (Flink also escapes a closing brace), and back."""
    assert escape(text) == escaped
    assert unescape(escaped) == text


@pytest.mark.parametrize("text", ["%", "%4", "%zz", "%+1"])
def test_unescape_leaves_a_lone_percent_sign(text):
    """What is no escape is itself, as in Spark."""
    assert unescape(text) == text


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_escape_refuses(text):
    """NUL and lone surrogates fit no file name; the value is not shown."""
    with pytest.raises(BucketError, match="ILLEGAL_CHAR"):
        escape(text)


def test_fragment():
    """Null and the empty string are the default partition; its literal name is refused."""
    assert fragment("d/t", "x=1") == "d%2Ft=x%3D1"
    assert fragment("k", None) == fragment("k", "") == f"k={DEFAULT_PARTITION}"
    with pytest.raises(BucketError, match="RESERVED"):
        fragment("k", DEFAULT_PARTITION)


def test_partition_values():
    """A path gives back what it was made of; components without '=' are not partitions."""
    path = "/".join([fragment("a=b", "x/y"), "plain", fragment("c", None)])
    assert partition_values(path) == [("a=b", "x/y"), ("c", None)]
    assert partition_values("") == []


NOON = datetime(2024, 7, 1, 12, 0, 0, 120_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["a", "ü"], pa.large_string()), ["a", "ü"]),
        (pa.array([-1, 2**63 - 1]), ["-1", "9223372036854775807"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([date(2024, 2, 29), date(1, 1, 1)]), ["2024-02-29", "0001-01-01"]),
        (pa.array([date(1969, 12, 31)], pa.date64()), ["1969-12-31"]),
        (pa.array([Decimal("1E-7"), Decimal("-1.5")], pa.decimal128(20, 8)), ["0.00000010", "-1.50000000"]),
        (pa.array([NOON], pa.timestamp("us", "UTC")), ["2024-07-01 14:00:00.12"]),
        (pa.array([NOON], pa.timestamp("ns")), ["2024-07-01 12:00:00.12"]),
        (pa.array([-1], pa.timestamp("us")), ["1969-12-31 23:59:59.999999"]),
        (
            pa.array([1e7, 1e-3, 9.5e-4, -0.0, 0.1, 5e-324]),
            ["1.0E7", "0.001", "9.5E-4", "-0.0", "0.1", "4.9E-324"],
        ),
        (pa.array([float("inf"), float("-inf")]), ["Infinity", "-Infinity"]),
        (pa.array([0.1, 16777216.0], pa.float32()), ["0.1", "1.6777216E7"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_texts(values, expected):
    """Values become the text of Spark's cast; only timestamps with a zone depend on the session."""
    assert texts(values, "Europe/Berlin") == expected


def test_nan_has_no_text():
    """NaN equals nothing, so no partition could be found again."""
    assert texts(pa.array([float("nan"), 1.0]), "UTC") == [None, "1.0"]


def test_what_is_no_text_has_no_directory():
    """Bytes that are no UTF-8 spoil no value beside them."""
    broken = pa.array([b"a", b"\xff"]).view(pa.string())
    good, bad = texts(broken, "UTC")
    assert good == "a"
    with pytest.raises(BucketError, match="ILLEGAL_CHAR"):
        fragment("k", bad)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.binary(), pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.map_(pa.int8(), pa.int8())),
        *(pa.null(), pa.duration("us"), pa.time64("ns"), pa.float16(), pa.dictionary(pa.int8(), pa.binary())),
    ],
    ids=str,
)
def test_types_refused(kind):
    """Types without an unambiguous text are refused before anything is written."""
    with pytest.raises(SchemaError, match=r"BUCKET_TYPE.*'k'"):
        check_type(pa.field("k", kind))


def test_types_accepted():
    """Dictionary-encoded text is text."""
    check_type(pa.field("k", pa.dictionary(pa.int8(), pa.string())))
