"""Bytes as text."""

from __future__ import annotations

import base64

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from formats.text.binary_text import base64_text, hex_text

COLUMNS = st.lists(st.none() | st.binary(max_size=9), max_size=9)


@given(COLUMNS, st.integers(0, 9))
def test_base64_is_that_of_the_standard_library(values, skipped):
    """Whatever the lengths and wherever the slice begins."""
    expected = [value if value is None else base64.b64encode(value).decode() for value in values[skipped:]]
    assert base64_text(pa.array(values, pa.binary()).slice(skipped)).to_pylist() == expected


@given(COLUMNS, st.integers(0, 9))
def test_hex_is_two_digits_per_byte_in_brackets(values, skipped):
    """Spark's text for binary values in CSV."""
    expected = [value if value is None else f"[{value.hex(' ').upper()}]" for value in values[skipped:]]
    assert hex_text(pa.array(values, pa.binary()).slice(skipped)).to_pylist() == expected
