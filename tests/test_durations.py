"""Durations as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from filesink.durations import has_passed, parse_duration_ms
from filesink.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (60_000, 60_000),
        ("500 ms", 500),
        ("10 seconds", 10_000),
        ("10s", 10_000),
        ("15 min", 900_000),
        (" 1 H ", 3_600_000),
        ("2 days", 172_800_000),
        (timedelta(minutes=15), 900_000),
        (timedelta(milliseconds=1), 1),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_units(value, ms):
    """Every spelling of a duration means its milliseconds."""
    assert parse_duration_ms(value, name="age") == ms


@pytest.mark.parametrize(
    "value",
    [
        *(
            0,
            -1,
            "0 s",
            "-1 s",
            "abc",
            "",
            "15 parsecs",
            "5",
            "60000",
            "1.5 h",
            "1e3 s",
            "s",
            True,
            None,
            1.5,
            float("nan"),
        ),
        *(2**63, "9223372036854775807 days", "9" * 5000, "\u0661 s"),
        *(timedelta(0), timedelta(microseconds=1500)),
    ],
)
def test_refused(value):
    """What is no duration > 0 in whole milliseconds is refused by name, without flooding the message."""
    with pytest.raises(ConfigError, match=r"^\[BAD_VALUE\] age must be a .*, got ") as caught:
        parse_duration_ms(value, name="age")
    assert len(str(caught.value)) < 200
    assert repr(value)[:80] in str(caught.value)


@pytest.mark.parametrize(
    ("value", "least", "wanted"),
    [
        ("-1 days", 0, "a whole number with a unit, ms, s, min, h or d, such as '15 min'"),
        ("1.5 h", 1, "a whole number with a unit, ms, s, min, h or d, such as '15 min'"),
        ("5", 1, "a whole number with a unit, ms, s, min, h or d, such as '15 min'"),
        ("99999999999999 days", 1, "a duration of at most 292 million years"),
        ("0 s", 1, "a duration > 0"),
        (-1, 0, "a duration >= 0"),
        ("1 s", 2000, "a duration of 2,000 ms or more"),
        (1.5, 1, "a duration such as '15 min', or an int of milliseconds"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_this_one(value, least, wanted):
    """Whoever gives text, as on a command line, is offered text."""
    with pytest.raises(ConfigError) as caught:
        parse_duration_ms(value, name="age", least=least)
    assert caught.value.message == f"age must be {wanted}, got {value!r}"


DAY = 86_400_000


@pytest.mark.parametrize(
    ("now_ms", "is_over"), [(1009, False), (1010, True), (1000 - DAY, False), (999 - DAY, True), (0, False)]
)
def test_what_began_in_the_future_does_not_wait_for_it(now_ms, is_over):
    """A clock that was ahead by more than a day says nothing of an age; minutes are nothing unusual."""
    assert has_passed(1000, now_ms, 10) is is_over
