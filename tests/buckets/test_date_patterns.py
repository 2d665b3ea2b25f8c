"""Date patterns and zones. That Java agrees is shown in tests/spark."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from filesink.buckets.date_patterns import DatePattern, Unit
from filesink.errors import ConfigError
from filesink.local_time import LocalTime, time_zone
from formats.text.zones import utc_offsets

FLINK_NOW = 1_533_363_082
#: What is refused: one letter more than Java takes.
ONE_TOO_MANY = {
    "y": 20,
    "u": 20,
    **dict.fromkeys("QMLE", 6),
    "D": 4,
    **dict.fromkeys("dHhms", 3),
    "S": 10,
    "a": 2,
}


def shown(second: int, pattern: str, zone: str = "UTC", nano: int = 0) -> str:
    """An instant as the pattern shows it in a zone."""
    offset = int(utc_offsets(np.array([second]), time_zone(zone))[0])
    return DatePattern(pattern=pattern).format(LocalTime.of(second + offset, nano))


def at(*fields: int) -> int:
    """Seconds since 1970 of a time in UTC."""
    return int(datetime(*fields, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("pattern", "zone", "text"),
    [
        ("yyyy-MM-dd--HH", "America/Los_Angeles", "2018-08-03--23"),
        ("yyyy-MM-dd--HH", "UTC", "2018-08-04--06"),
        ("yyyy-MM-dd-HH", "America/Los_Angeles", "2018-08-03-23"),
        ("'dt='yyyy''MM/h.mm.ss a", "+05:30", "dt=2018'08/11.41.22 AM"),
    ],
)
def test_flink_cases(pattern, zone, text):
    """Flink's cases 13 and 14, and literals."""
    assert shown(FLINK_NOW, pattern, zone) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ((2024, 3, 10, 9, 59), "01"),
        ((2024, 3, 10, 10, 0), "03"),
        ((2024, 11, 3, 8, 59), "01"),
        ((2024, 11, 3, 9, 0), "01"),
        ((2050, 7, 1, 12, 0), "05"),
        ((2050, 1, 1, 12, 0), "04"),
    ],
)
def test_summer_time(fields, text):
    """Hours around both changes, and long after the last one that zone files list."""
    assert shown(at(*fields), "HH", "America/Los_Angeles") == text


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (-1, "1969-12-31 23:59:59"),
        (253_402_300_800, "+10000-01-01 00:00:00"),
        (-62_167_219_201, "-0001-12-31 23:59:59"),
        (9_223_372_036_854, "+294247-01-10 04:00:54"),
        (-9_223_372_036_855, "-290308-12-21 19:59:05"),
    ],
)
def test_distant_years(second, text):
    """Dates before 1970, after 9999 and at both ends of Spark's range."""
    assert shown(second, "uuuu-MM-dd HH:mm:ss") == text


def test_before_the_first_year():
    """A zone's oldest offset, its local mean time, holds for all time before."""
    assert shown(-62_167_219_201, "uuuu-MM-dd HH:mm:ss", "Europe/Berlin") == "0000-01-01 00:53:27"


@pytest.mark.parametrize(("hour", "text"), [(0, "12 AM"), (1, "1 AM"), (12, "12 PM"), (23, "11 PM")])
def test_half_days(hour, text):
    """Midnight and noon are twelve."""
    assert shown(hour * 3600, "h a") == text


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe"])
def test_years_after_9999_keep_summer_time(zone):
    """The calendar repeats after 400 years, and so do the offsets of a zone."""
    seconds = np.arange(at(9590, 1, 1), at(9591, 1, 1), 86_400 * 5)
    later = seconds + 146_097 * 86_400 * 20
    assert utc_offsets(seconds, time_zone(zone)).tolist() == utc_offsets(later, time_zone(zone)).tolist()


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("+05:30", 19_800),
        ("-5:00", -18_000),
        ("+01", 3_600),
        ("UTC+1", 3_600),
        ("GMT-03:30", -12_600),
        ("+01:02:03", 3_723),
        ("+0530", 19_800),
        ("UT-1", -3_600),
        ("UT", 0),
        ("+18:00", 64_800),
        ("-18:00", -64_800),
        ("Z", 0),
        ("Asia/Kathmandu", 20_700),
    ],
)
def test_zone_names(name, seconds):
    """Every way in which Spark lets a zone be written."""
    assert utc_offsets(np.array([FLINK_NOW]), time_zone(name)).tolist() == [seconds]


@pytest.mark.parametrize(
    "name",
    ["Mars/Base", "", "../etc/passwd", "+18:01", "+05:60", "+05:00:60", "/etc/localtime", "A\0", "Europe"],
)
def test_unknown_zones(name):
    """A zone that nobody knows is refused by name."""
    with pytest.raises(ConfigError, match="TIME_ZONE"):
        time_zone(name)


@pytest.mark.parametrize(
    ("pattern", "position", "character"),
    [
        ("YYYY-MM-dd", 1, "Y"),
        ("yyyy-ww", 6, "w"),
        ("yyyy-MM-ddTHH", 11, "T"),
        ("yyyy-MM-dd'", 11, "'"),
        ("[yyyy]", 1, "["),
        *((f"yyyy{reserved}", 5, reserved) for reserved in "[]{}#"),
        *((letter * count, 1, letter) for letter, count in ONE_TOO_MANY.items()),
        ("HH:mmm", 4, "m"),
        ("é-xx", 3, "x"),
    ],
)
def test_refused_patterns(pattern, position, character):
    """What cannot be formatted is refused when the pattern is made, with letter and position."""
    with pytest.raises(ConfigError) as caught:
        DatePattern(pattern=pattern)
    assert caught.value.code == "BAD_VALUE"
    assert f"{character!r} at position {position} " in caught.value.message


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        ("yyyy", Unit.MONTH),
        ("yyyy-MM-dd", Unit.DAY),
        ("'HH'", Unit.MONTH),
        ("yyyy-MM-dd a", Unit.HALF_DAY),
        ("yyyy-MM-dd--HH", Unit.HOUR),
        ("h a", Unit.HOUR),
        ("HH:mm", Unit.MINUTE),
        ("ss", Unit.SECOND),
        ("yyyy.SSS", Unit.FRACTION),
    ],
)
def test_finest_unit(pattern, unit):
    """Text in quotes is no field."""
    assert DatePattern(pattern=pattern).finest_unit is unit


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("yyyy-mm-dd", "'MM'"),
        ("uuuu/mm/dd", "'MM'"),
        ("yyyy-mm-dd--HH", "'MM'"),
        ("yyyy-mm", "'MM'"),
        ("yyyyMMddmm", "is 'HH' missing"),
        ("mm/dd", "'MM'"),
        ("yyyy-MM-dd--HH-MM", "'mm'"),
        ("yyyy-MM-dd h.MM a", "'mm'"),
        ("yyyy-MM-DD", "'dd'"),
        ("yyyy-DD", "'dd'"),
        ("'day='D", "'dd'"),
        ("yyyy-MM-dd--hh", "'HH'"),
        ("hh.mm", "'HH'"),
        ("yyyy-MM-dd--HH.mm.SS", "'ss'"),
        ("YYYY-MM-dd", "'y'"),
    ],
)
def test_letters_that_were_meant_to_be_others(pattern, meant):
    """Minutes for months and the other way, days of years, hours of half a day, fractions, years of weeks."""
    with pytest.raises(ConfigError, match="did you mean") as caught:
        DatePattern(pattern=pattern).check_meant()
    assert caught.value.code == "BAD_VALUE"
    assert repr(pattern) in caught.value.message
    assert meant in caught.value.message


@pytest.mark.parametrize("pattern", ["day=yyyy-MM-dd", "yyyy/day=MM", "'a/'d'=x'", "dd=dd"])
def test_a_name_of_a_column_without_quotes(pattern):
    """``day`` is a day, am or pm and a year: each day would be another column, and Spark reads none."""
    with pytest.raises(ConfigError, match="in quotes") as caught:
        DatePattern(pattern=pattern).check_meant()
    assert caught.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "yyyy-MM-dd--HH",
            "yyyy/MM/dd/HH/mm",
            "yyyyMMddHHmmss",
            "uuuu-DDD",
            "uuuu-DDD-HH-mm",
            "yyyy-QQ",
            "HH",
        ),
        *("dd.MM.yyyy", "HH-mm dd-MM", "mm", "ss.SSS", "h-a", "yyyy-MM-dd a h.mm", "'mm'yyyy", "EEE", "LLLL"),
        *("HH.mm.ss.SSSSSS", "yyyy", "'D'dd", "MMM-dd", "HH.ss"),
        *("'day='yyyy-MM-dd", "'year='yyyy/'month='MM", "yyyy/'day='dd", "'a=b'"),
    ],
)
def test_patterns_that_are_meant(pattern):
    """Whatever the order, and whatever stands in quotes."""
    DatePattern(pattern=pattern).check_meant()
