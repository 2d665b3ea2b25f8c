"""Dates and timestamps as text."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import Encoder, FormatError
from formats.text.temporal import date_text, iso_timestamp_text, wall_clock_text

DAY = 86_400_000_000
CYCLE = 146_097  # days of 400 years
# What java.time.LocalDate.ofEpochDay(n).toString() gives.
JAVA = {
    -(2**31): "-5877641-06-23",
    -719_529: "-0001-12-31",
    -719_528: "0000-01-01",
    2_932_897: "+10000-01-01",
    11_248_737: "+32767-12-31",
    11_248_738: "+32768-01-01",
    2**31 - 1: "+5881580-07-11",
}


def test_every_day_that_spark_has_is_written_as_java_does():
    """Arrow alone has text for the years from -32767 to 32767 only; null stays null."""
    column = pa.array([*JAVA, None], pa.int32()).cast(pa.date32())
    assert date_text(column).to_pylist() == [*JAVA.values(), None]
    assert date_text(column.slice(5)).to_pylist() == [*list(JAVA.values())[5:], None]


@given(
    days=st.lists(st.dates(), min_size=1),
    cycles=st.integers(25, 700),  # all of the years are beyond 9999
)
def test_the_calendar_repeats(days, cycles):
    """Month, day and time are those of 400 years earlier, and the year is greater by 400."""
    ticks = np.array([(day - date(1970, 1, 1)).days + cycles * CYCLE for day in days])
    expected = [f"+{day.year + 400 * cycles}{day.isoformat()[4:]}" for day in days]
    assert date_text(pa.array(ticks, pa.int32()).cast(pa.date32())).to_pylist() == expected
    text, _ = wall_clock_text(pa.array(ticks * DAY + 1, pa.int64()).cast(pa.timestamp("us")))
    assert text.to_pylist() == [f"{day} 00:00:00.000001" for day in expected]


def test_no_format_writes_arrows_error_for_a_value():
    """Ends of the range of Spark's timestamps among others, and null, in JSON, CSV and text."""
    micros = pa.array([2**63 - 1, 0, None, -(2**63)], pa.int64())
    batch = pa.record_batch({"at": micros.cast(pa.timestamp("us", "UTC"))})
    ends = [
        "+294247-01-10T04:00:54.775807Z",
        "1970-01-01T00:00:00.000000Z",
        None,
        "-290308-12-21T19:59:05.224192Z",
    ]
    lines = bytes(Encoder.json_lines().encode(batch)).splitlines()
    assert [json.loads(line).get("at") for line in lines] == ends
    assert bytes(Encoder.csv().encode(batch)).decode().split() == [end or '""' for end in ends]
    cast = bytes(Encoder.simple_string_encoder().encode(batch)).decode().split("\n")
    assert cast[0] == "+294247-01-10 04:00:54.775807"
    assert cast[3] == "-290308-12-21 19:59:05.224192"


def test_a_time_that_64_bits_do_not_hold_is_an_error():
    """An hour later than the last microsecond is not one at the other end of time."""
    column = pa.array([None, 2**63 - 1], pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
    with pytest.raises(FormatError, match="UTC") as error:
        iso_timestamp_text(column)
    assert error.value.kind == "value"


def test_offsets_of_before_there_were_zones_have_seconds():
    """Local mean time, as Java writes it."""
    instant = pa.array([-2_840_140_800_000_000], pa.timestamp("us", "America/New_York"))
    assert iso_timestamp_text(instant).to_pylist() == ["1879-12-31T19:03:58.000000-04:56:02"]


@pytest.mark.parametrize(
    ("zone", "second", "text"),
    [
        ("Europe/London", 0, "1970-01-01T01:00:00.000000+01:00"),
        ("Europe/London", 1_704_067_200, "2024-01-01T00:00:00.000000Z"),
        ("+00:00", 0, "1970-01-01T00:00:00.000000Z"),
        ("America/St_Johns", 0, "1969-12-31T20:30:00.000000-03:30"),
    ],
)
def test_offsets_are_written_as_java_does(zone, second, text):
    """That of a zone may be none at times, which is a Z and not +00:00."""
    assert iso_timestamp_text(pa.array([second * 10**6], pa.timestamp("us", zone))).to_pylist() == [text]


def test_what_is_finer_than_microseconds_is_cut_off():
    """Nanoseconds are no error where text has microseconds; before 1970, too, the earlier one is written."""
    at = pa.array([1_700_000_000_123_456_789, -1, None, -(2**63)], pa.timestamp("ns"))
    assert iso_timestamp_text(at).to_pylist() == [
        "2023-11-14T22:13:20.123456",
        "1969-12-31T23:59:59.999999",
        None,
        "1677-09-21T00:12:43.145224",
    ]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_time_beyond_microseconds_is_refused(unit):
    """It would be written as another one."""
    with pytest.raises(FormatError) as error:
        iso_timestamp_text(pa.array([2**62], pa.timestamp(unit)))
    assert error.value.kind == "value"


def test_the_longest_intervals_are_written():
    """Of the smallest number of 64 bits there is no positive one, and its text is whole all the same."""
    spans = pa.array([-(2**63), 2**63 - 1, None, -1], pa.int64()).cast(pa.duration("us"))
    batch = pa.record_batch({"for": spans})
    ends = ["-106751991 04:00:54.775808", "106751991 04:00:54.775807", None, "-0 00:00:00.000001"]
    texts = [end and f"INTERVAL '{end}' DAY TO SECOND" for end in ends]
    lines = bytes(Encoder.json_lines().encode(batch)).splitlines()
    assert [json.loads(line).get("for") for line in lines] == texts
    assert bytes(Encoder.csv().encode(batch)).decode().splitlines() == [text or '""' for text in texts]
