"""Offsets of time zones."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import ArrowWriterFactory, FormatError, ParquetWriterFactory
from formats.text.zones import parse_zone, utc_offsets, with_known_zone

ZONES = ["Europe/Berlin", "America/New_York", "Africa/Monrovia", "Australia/Lord_Howe", "Asia/Kathmandu"]
INSTANTS = st.integers(-(2**36), 253_370_764_800 - 1)


@pytest.mark.parametrize("name", ZONES)
@given(seconds=st.lists(INSTANTS.filter(lambda s: s > -62_135_510_400), min_size=1))
def test_offsets_are_those_of_the_database(name, seconds):
    """Every instant, before the first and after the last transition, has the offset ``zoneinfo`` gives."""
    found = utc_offsets(np.array(seconds), zone=parse_zone(name)).tolist()
    expected = [datetime.fromtimestamp(s, UTC).astimezone(ZoneInfo(name)).utcoffset() for s in seconds]
    assert [timedelta(seconds=offset) for offset in found] == expected


# UTC days on which a zone changed at no full quarter of an hour: 00:01 local time, or half a minute.
CHANGES = [
    ("America/St_Johns", "2010-03-14"),
    ("America/St_Johns", "2010-11-07"),
    ("America/Goose_Bay", "2005-04-03"),
    ("America/Moncton", "1993-04-04"),
    ("Asia/Gaza", "2011-03-31"),
    ("Antarctica/Casey", "2020-10-03"),
    ("Africa/Monrovia", "1972-01-07"),
]


@pytest.mark.parametrize(("name", "day"), CHANGES)
def test_every_minute_of_a_day_of_change_has_its_offset(name, day):
    """Offsets need not change at a full quarter of an hour; St. John's did so at 00:01 until 2011."""
    start = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    seconds = [start + 60 * minute + second for minute in range(2 * 1_440) for second in (0, 59)]
    expected = [datetime.fromtimestamp(s, ZoneInfo(name)).utcoffset() for s in seconds]
    assert len(set(expected)) == 2
    found = utc_offsets(np.array(seconds), zone=parse_zone(name)).tolist()
    assert [timedelta(seconds=offset) for offset in found] == expected


def test_years_beyond_9999_repeat_the_calendar():
    """Spark has years that Python has not; they follow the zone's last rule."""
    cycle = 146_097 * 86_400
    seconds = np.arange(253_370_764_800 - 86_400 * 366, 253_370_764_800, 3_600)
    berlin = parse_zone("Europe/Berlin")
    assert set(utc_offsets(seconds, zone=berlin).tolist()) == {3_600, 7_200}
    assert (utc_offsets(seconds + 7 * cycle, zone=berlin) == utc_offsets(seconds, zone=berlin)).all()


@pytest.mark.parametrize(
    ("name", "hours"),
    [("+02:00", 2), ("-08:00", -8), ("GMT+2", 2), ("UT-3", -3), ("+0530", 5.5), ("Z", 0), ("UTC", 0)],
)
def test_fixed_offsets_have_javas_spellings(name, hours):
    """What ``spark.sql.session.timeZone`` accepts besides regions."""
    assert utc_offsets(np.array([0]), zone=parse_zone(name)).tolist() == [hours * 3_600]


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "+25:00", "GMT+", "a\0b"])
def test_unknown_zones_are_refused_with_the_setting(name):
    """The message names the setting that makes them."""
    with pytest.raises(FormatError, match=r"spark\.sql\.session\.timeZone"):
        parse_zone(name)


def test_short_names_of_java_are_zones():
    """Spark takes them for a session; the time zone database does not have them."""
    seconds = np.array([1_700_000_000, 1_720_000_000])
    assert utc_offsets(seconds, zone=parse_zone("PST")).tolist() == [-28_800, -25_200]
    assert parse_zone("IST") == ZoneInfo("Asia/Kolkata")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("UTC", "UTC"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("+05:30", "+05:30"),
        ("Z", "UTC"),
        ("GMT+1", "+01:00"),
        ("UTC-00:30", "-00:30"),
        ("+5:30", "+05:30"),
        ("PST", "America/Los_Angeles"),
        ("+01:02:03", "UTC"),  # Arrow has no seconds there
        ("Mars/Olympus", "UTC"),
    ],
)
def test_files_name_zones_that_readers_know(name, known):
    """The instants are what they were, and pyarrow makes values of them."""
    kind = with_known_zone(pa.timestamp("us", name))
    assert kind == pa.timestamp("us", known)
    (instant,) = pa.array([0], pa.timestamp("us", name)).cast(kind).to_pylist()
    assert instant.timestamp() == 0


@pytest.mark.parametrize("factory", [ParquetWriterFactory(), ArrowWriterFactory()])
@pytest.mark.parametrize("name", ["Z", "GMT+1", "PST"])
def test_timestamps_of_a_session_in_a_zone_of_java_s_have_values(factory, name):
    """Readers in Python would raise an error at the first of them, nested ones too."""
    at = pa.timestamp("us", name)
    schema = pa.schema([("at", at), ("inside", pa.list_(pa.struct([("at", at)])))])
    one = pa.array([1_700_000_000_000_000], at)
    structs = pa.StructArray.from_arrays([one], fields=[pa.field("at", at)])
    file = io.BytesIO()
    writer = factory.create(file, schema)
    writer.write(pa.record_batch([one, pa.ListArray.from_arrays([0, 1], structs)], schema=schema))
    writer.finish()
    (row,) = factory.open_reader(file).read_all().to_pylist()
    assert row["at"] == row["inside"][0]["at"] == datetime.fromtimestamp(1_700_000_000, UTC)
