"""Sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.sizes import MAX_SIZE, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (134217728, 134217728),
        ("1b", 1),
        ("128MiB", 128 << 20),
        ("128 mb", 128 << 20),
        (" 1.5g ", 3 << 29),
        ("64k", 64 << 10),
        ("2 TiB", 2 << 40),
        ("1p", 1 << 50),
        ("10B", 10),
        ("1.9B", 1),
        (MAX_SIZE, MAX_SIZE),
    ],
)
def test_sizes_are_powers_of_1024(text, size):
    """Every spelling of a unit that Spark's and Flink's users know means the same."""
    assert parse_size(text, name="s") == size


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, True, False, 1.5, float("nan"), float("inf"), None, b"1", 10**400, MAX_SIZE + 1),
        *(
            "",
            "0",
            "0 kb",
            "5",
            " 134217728 ",
            "128 MiBs",
            "-1",
            "0.1B",
            "1e400",
            "nan",
            "MiB",
            "1 parsec",
            "1 MiB 2",
            "1,5g",
            "9" * 400,
            "8EiB",
            "\u0661",
        ),
    ],
)
def test_what_is_no_size_is_refused(value):
    """Zero, negatives, floats, booleans, unknown units and none: one typed error names option and value."""
    with pytest.raises(FormatError, match="row_group_size") as error:
        parse_size(value, name="row_group_size")
    assert error.value.kind == "option"
    assert repr(value)[:80] in error.value.message
    assert len(error.value.message) < 200


@given(st.integers(min_value=1, max_value=MAX_SIZE))
def test_bytes_are_themselves(size):
    """A number of bytes means itself, as a number and as text with its unit."""
    assert parse_size(size, name="s") == parse_size(f"{size} B", name="s") == size


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_typed_error(text):
    """No text raises anything but ``FormatError``."""
    try:
        assert 1 <= parse_size(text, name="s") <= MAX_SIZE
    except FormatError as error:
        assert error.kind == "option"  # noqa: PT017 - both outcomes are fine
