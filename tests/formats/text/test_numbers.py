"""Numbers as Java writes them."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.text.numbers import float_text, plain_decimal_text

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


@pytest.mark.parametrize(("bits", "kind"), [(np.int64, pa.float64()), (np.int32, pa.float32())])
def test_of_the_smallest_numbers_javas_two_digits_are_the_nearest(bits, kind):
    """One digit would do for 5E-324, which Java writes as 4.9E-324, and two more do not help 1.5E-323."""
    sizes = np.arange(1, 2_000, dtype=bits).view(kind.to_pandas_dtype())
    values = pa.array([*sizes, *-sizes, None], kind)
    texts = float_text(values).to_pylist()
    assert texts.pop() is None
    for value, text in zip(values.to_pylist(), texts, strict=False):
        nearest = f"{value:.1e}".upper()
        assert text == nearest or (len(text) > len(nearest) and kind.to_pandas_dtype()(nearest) != value)
    first = ["4.9E-324", "9.9E-324", "1.5E-323"] if bits is np.int64 else ["1.4E-45", "2.8E-45", "4.2E-45"]
    assert texts[:3] == first
    assert texts[len(sizes)] == f"-{first[0]}"
    wide = np.array([2e23, 1e-5, 9e-300 if bits is np.int64 else 9e-30], kind.to_pandas_dtype())
    assert [text[:3] for text in float_text(pa.array(wide)).to_pylist()] == ["2.0", "1.0", "9.0"]


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
