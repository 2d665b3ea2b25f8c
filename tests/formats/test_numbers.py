"""Numbers as Java writes them."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.numbers import float_text, plain_decimal_text

JAVA = re.compile(r"-?(\d{1,7}\.\d+|\d\.\d+E-?\d+)")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_doubles_read_back_equal_in_javas_form(values):
    """The text means the same double and has the form that ``Double.toString`` prescribes."""
    for value, text in zip(values, float_text(pa.array(values)).to_pylist(), strict=True):
        assert float(text) == value
        assert JAVA.fullmatch(text)
        assert ("E" not in text) == (value == 0 or 1e-3 <= abs(value) < 1e7)
        assert not re.search(r"\.\d+0$|\.\d+0E", text)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1))
def test_floats_read_back_equal(values):
    """Single precision has its own, shorter text."""
    column = pa.array(np.array(values, np.float32))
    assert np.array(float_text(column).to_pylist()).astype(np.float32).tolist() == column.to_pylist()


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_values_that_are_no_numbers(kind):
    """NaN and infinities have Java's names; null stays null; minus zero keeps its sign."""
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1])
    column = pa.array(values.astype(kind.to_pandas_dtype()), kind, mask=np.array([0, 0, 0, 0, 1], bool))
    assert float_text(column).to_pylist() == ["NaN", "Infinity", "-Infinity", "-0.0", None]
    assert float_text(column.slice(4)).to_pylist() == [None]
    assert float_text(column.slice(5)).to_pylist() == []


@given(st.lists(st.decimals(min_value=-99, max_value=99, places=18), min_size=1))
def test_decimals_never_have_an_exponent(values):
    """All digits of the scale are written, as in ``BigDecimal.toPlainString``."""
    column = pa.array([value.quantize(Decimal("1e-18")) for value in values], pa.decimal128(38, 18))
    expected = [f"{value:.18f}" if value else "0." + "0" * 18 for value in column.to_pylist()]
    assert plain_decimal_text(column).to_pylist() == expected
