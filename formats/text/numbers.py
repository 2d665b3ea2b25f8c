"""Numbers as the text that Java, and so Spark, writes: ``1.0``, ``1.0E10``, ``1.00E-7``, ``NaN``."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats.arrow import Column, Mask, Text, pc

# What turns Arrow's shortest text (0.00012, 1234567890, 1.5e+21) into a mantissa with one digit
# before the point and at least one after it.
_TO_MANTISSA: Final = (
    (r"e.*$", r""),
    (r"^(-?)0\.0*([1-9])", r"\1\2."),
    (r"^(-?\d)(\d+)\.?(\d*)$", r"\1.\2\3"),
    (r"^(-?\d)\.?$", r"\1.0"),
    (r"(\.\d+?)0+$", r"\1"),
    (r"\.$", r".0"),
)


def float_text(column: Column) -> Text:
    """Java's ``Double.toString`` and ``Float.toString``, with the fewest digits that read back equal.

    Two digits at least, and of these the nearest: ``4.9E-324``, where ``5E-324`` reads back as well. Java
    writes numbers from 0.001 to 10,000,000 plainly and all others as ``1.0E10``. Before Java 19 it wrote
    a digit too many now and then; the number is the same.
    """
    if pt.is_float16(column.type):
        column = column.cast(pa.float32())
    text = column.cast(pa.string())
    size = pc.abs(column)
    is_plain = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)))
    whole = pc.binary_join_element_wise(text, ".0", "")
    text = pc.if_else(pc.or_(pc.match_substring(text, "."), pc.invert(is_plain)), text, whole)
    text = _replaced(text, pc.and_(pc.invert(is_plain), pc.is_finite(column)), column)
    return text if pc.all(pc.is_finite(column)).as_py() is not False else _with_names(text, column)


def plain_decimal_text(column: Column) -> Text:
    """``0.000000100000000000``, as ``cast(... as string)``: never an exponent."""
    text = column.cast(pa.string())
    scientific = pc.match_substring(text, "E")
    if not pc.any(scientific).as_py():
        return text
    # An exponent appears only below 0.000001, so every digit stands after the point.
    digits = pc.replace_substring_regex(text, r"E.*|[.-]", "")
    fraction = pc.utf8_lpad(digits, column.type.scale, "0")
    start = pc.if_else(pc.starts_with(text, "-"), "-0.", "0.")
    return pc.if_else(scientific, pc.binary_join_element_wise(start, fraction, ""), text)


def _replaced(text: Text, mask: Mask, column: Column) -> Text:
    mask = mask.fill_null(fill_value=False)
    if not pc.any(mask).as_py():
        return text
    return pc.replace_with_mask(text, mask, _scientific(text.filter(mask), column.filter(mask)))


def _scientific(text: Text, values: Column) -> Text:
    mantissa = _with_two_digits(text, values)
    for pattern, replacement in _TO_MANTISSA:
        mantissa = pc.replace_substring_regex(mantissa, pattern, replacement)
    # Value and mantissa differ by a power of ten, so the difference of their logarithms is close
    # to a whole number, however small or large the value.
    size = np.abs(values.cast(pa.float64()).to_numpy())
    leading = np.abs(mantissa.cast(pa.float64()).to_numpy())
    exponent = pa.array(np.rint(np.log10(size) - np.log10(leading)).astype(np.int64))
    return pc.binary_join_element_wise(mantissa, exponent.cast(pa.string()), "E")


def _with_two_digits(text: Text, values: Column) -> Text:
    """The second digit of numbers of one; it is a 0 but for the few that have hardly any bits."""
    is_tiny = pc.less(pc.abs(values), 100 * np.finfo(values.type.to_pandas_dtype()).smallest_subnormal)
    short = pc.and_(is_tiny, pc.match_substring_regex(text, r"^-?\de"))
    if not pc.any(short).as_py():
        return text
    distinct = values.filter(short).dictionary_encode()
    nearest = pa.array([f"{value:.1e}" for value in distinct.dictionary.to_pylist()])
    return pc.replace_with_mask(text, short, nearest.take(distinct.indices))


def _with_names(text: Text, column: Column) -> Text:
    text = pc.if_else(pc.is_nan(column), "NaN", text)
    text = pc.if_else(pc.equal(column, float("inf")), "Infinity", text)
    return pc.if_else(pc.equal(column, float("-inf")), "-Infinity", text)
