"""Java's DateTimeFormatter and Spark's zones are asked for what filesink formats itself."""

from __future__ import annotations

import numpy as np
import pytest

from filesink.buckets.date_patterns import DatePattern
from filesink.local_time import LocalTime, time_zone
from formats.text.zones import utc_offsets

pytestmark = pytest.mark.spark

TIMES = [  # seconds and nanoseconds of a wall clock
    (1_533_363_082, 11_000_000),
    (327_403_598_400, 0),  # the year 12345
    (-63_549_489_600, 999_999_999),  # 44 BC
    (-1, 0),
    (-62_135_596_801, 1),  # the year 0
    (1_709_164_800, 120_000_000),  # 2024-02-29
]
PATTERNS = [
    *("y", "yy", "yyy", "yyyy", "yyyyyy", "u", "uu", "uuu", "uuuu", "uuuuu", "y" * 19),
    *(
        "M",
        "MM",
        "MMM",
        "MMMM",
        "MMMMM",
        "L",
        "LL",
        "LLL",
        "LLLL",
        "LLLLL",
        "Q",
        "QQ",
        "QQQ",
        "QQQQ",
        "QQQQQ",
    ),
    *("d", "dd", "D", "DD", "DDD", "E", "EE", "EEE", "EEEE", "EEEEE", "a", "H", "HH", "h", "hh"),
    *("m", "mm", "s", "ss", "S", "SSS", "SSSSSS", "SSSSSSSSS"),
    *("yyyy-MM-dd--HH", "yyyy/MM/dd", "'dt='yyyy-MM-dd", "''", "yyyy''MM", "'a''b'", "'''a'", "h.mm a é|~"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(spark, pattern):
    """Every letter in every length, for common years and for odd ones."""
    java = spark._jvm.java
    formatter = java.time.format.DateTimeFormatter.ofPattern(pattern, java.util.Locale.US)
    for second, nano in TIMES:
        local = java.time.LocalDateTime.ofEpochSecond(second, nano, java.time.ZoneOffset.UTC)
        assert DatePattern(pattern=pattern).format(LocalTime.of(second, nano)) == local.format(formatter)


@pytest.mark.parametrize(
    "zone", ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]
)
def test_offsets(spark, zone):
    """Offsets of 400 instants from 1880 to the year 12000."""
    rules = spark._jvm.java.time.ZoneId.of(zone).getRules()
    seconds = np.linspace(-2_840_140_800, 316_515_600_000, 200, dtype=np.int64)
    seconds = np.concatenate([seconds, np.linspace(0, 2_524_608_000, 200, dtype=np.int64)])
    of_epoch = spark._jvm.java.time.Instant.ofEpochSecond
    theirs = [rules.getOffset(of_epoch(second)).getTotalSeconds() for second in seconds.tolist()]
    assert utc_offsets(seconds, time_zone(zone)).tolist() == theirs
