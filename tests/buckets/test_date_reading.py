"""Times are read from the text that a pattern writes, and from no other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.buckets.date_patterns import DatePattern
from filesink.buckets.date_reading import DateReader
from filesink.errors import ConfigError
from filesink.local_time import LocalTime


def at(year: int) -> int:
    """The first second of a year."""
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


PATTERNS = [
    "yyyyMMdd",
    "MM-dd-yyyy HH:mm:ss",
    "yyyy-MM-dd'T'HH",
    "yyyyMMddHHmmss",
    "d/M/u h:mm a",
    "dd MMM yyyy",
    "MMMM d, y",
    "yyyyDDD",
    "uuuu-DDD HH",
    "yy.MM.dd",
    "yyyy-MM",
    "yyyy",
    "yyyy-LL-dd HH:mm:ss.SSS",
    "dd.MM.yyyy'/'yyyy",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(seconds=st.integers(at(2000), at(2100) - 1))
def test_what_a_pattern_has_written_is_read(pattern: str, seconds: int) -> None:
    """Down to what the pattern tells apart: writing what was read gives the same text."""
    written = DatePattern(pattern=pattern)
    text = written.format(LocalTime.of(seconds))
    found = DateReader(pattern=pattern).read(text)
    assert found is not None
    read = int(found.replace(tzinfo=UTC).timestamp())
    assert read <= seconds
    assert written.format(LocalTime.of(read)) == text


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyyMMdd", "20260921", "2026-09-21T00:00:00"),
        ("MM-dd-yyyy HH:mm:ss", "05-03-2020 14:05:00", "2020-05-03T14:05:00"),
        ("h a d.M.y", "12 AM 1.2.2020", "2020-02-01T00:00:00"),
        ("h a d.M.y", "12 PM 1.2.2020", "2020-02-01T12:00:00"),
        ("yyyyDDD", "2024366", "2024-12-31T00:00:00"),
        ("yyyyDDD", "2023366", None),
        ("yyyyMMdd", "20260230", None),
        ("yyyyMMdd", "2026-09-21", None),
        ("yyyyMMdd", "20260921x", None),
        ("yyyyMMdd", "٢٠٢٦٠٩٢١", None),
        ("yyyyMMdd HH", "20260921 24", None),
        ("yyyy'/'yyyy", "2024/2025", None),
        ("h a d.M.y", "13 AM 1.2.2020", None),
        ("yyyy-MM-dd DDD", "2024-02-01 033", None),
        ("yyyy", "0000", None),
    ],
)
def test_texts(pattern: str, text: str, expected: str | None) -> None:
    """The whole text, and a day and hour that there are."""
    found = DateReader(pattern=pattern).read(text)
    assert (found and found.isoformat()) == expected


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("yyyy-mm-dd", "MM"),
        ("MM-dd", "yyyy"),
        ("yyyy-dd", "DDD"),
        ("yyyy-MM-dd hh", "HH"),
        ("yyyy-MM-dd HH a", "HH"),
        ("yyyy-QQ", "Q"),
        ("yyyy-MMMMM", "M"),
        ("EEE yyyy-MM-dd", "E"),
        ("YYYY", "Y"),
        ("", "yyyy"),
    ],
)
def test_patterns_that_say_too_little(pattern: str, word: str) -> None:
    """Refused with what is missing."""
    with pytest.raises(ConfigError, match=word):
        DateReader(pattern=pattern)
