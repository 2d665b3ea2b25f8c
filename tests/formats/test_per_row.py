"""A user's encoder, one row at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from formats import FormatError, RowEncoder
from formats.per_row import PerRowEncoder

SECRET = "hunter2"  # noqa: S105 - a value of a record, which must not show


class Upper(RowEncoder):
    extension = ".up"

    def encode(self, row):
        return f"{row['a'].upper()}\n".encode()


class Text(RowEncoder):
    def encode(self, row):
        return row["a"]


def test_each_row_is_a_dict():
    """The bytes of the rows follow one another; extension and signature are the user's."""
    encoder = PerRowEncoder(Upper())
    assert bytes(encoder.encode(pa.record_batch({"a": ["x", "y"]}))) == b"X\nY\n"
    assert encoder.extension == ".up"
    assert Upper().signature() in encoder.signature()


def test_an_error_of_the_user_names_the_row_and_is_the_cause():
    """What the user's code raised is kept, and repeated in one line; nothing else of the row is."""
    with pytest.raises(FormatError, match=r"Upper\.encode raised AttributeError: 'NoneType'") as error:
        PerRowEncoder(Upper()).encode(pa.record_batch({"a": [SECRET, None]}))
    assert error.value.kind == "value"
    assert isinstance(error.value.__cause__, AttributeError)
    assert SECRET not in str(error.value)


def test_anything_but_bytes_is_refused():
    """A string is not encoded behind the user's back."""
    with pytest.raises(FormatError, match="returned str") as error:
        PerRowEncoder(Text()).encode(pa.record_batch({"a": [SECRET]}))
    assert error.value.kind == "value"
    assert SECRET not in str(error.value)


def test_values_without_a_python_form_are_an_error_of_the_value():
    """Dates beyond Python's last year do not surface as a bare OverflowError."""
    batch = pa.record_batch({"a": pa.array([2**40], pa.timestamp("s"))})
    with pytest.raises(FormatError, match="cast it") as error:
        PerRowEncoder(Upper()).encode(batch)
    assert error.value.kind == "value"


def test_a_time_in_a_zone_that_nobody_knows_is_an_error_of_the_value():
    """As any other value without a Python form; Python's own is a KeyError with the name."""
    times = pa.array([0], pa.timestamp("us", "Nowhere/Land"))
    with pytest.raises(FormatError, match="no Python form") as error:
        PerRowEncoder(Upper()).encode(pa.record_batch({"a": times}))
    assert error.value.kind == "value"


def test_only_the_user_knows_what_columns_become():
    """A column that goes or changes is no business of ours."""
    old, new = pa.schema([("a", pa.string())]), pa.schema([("b", pa.int8())])
    PerRowEncoder(Upper()).check_continues(old, new)


def test_what_is_no_row_encoder_is_refused():
    """A function or a class instead of an instance fails at construction."""
    with pytest.raises(FormatError, match="RowEncoder") as error:
        PerRowEncoder(Upper)
    assert error.value.kind == "option"
