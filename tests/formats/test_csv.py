"""CSV, against Python's own parser; ``tests/spark`` compares it with Spark's."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import Encoder, FormatError

# Python's parser has no word for a NUL, and reads a lone CR as the end of a line even inside quotes.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def encode(columns, **options):
    """The bytes of one batch."""
    return bytes(Encoder.csv(**options).encode(pa.record_batch(columns)))


@pytest.mark.parametrize("mode", ["minimal", "all"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@given(rows=st.lists(st.tuples(TEXT, TEXT, st.integers(0, 99)), min_size=1, max_size=5))
def test_csv_reads_back_equal(mode, delimiter, rows):
    """Any strings come back from a reader of RFC 4180."""
    columns = {name: list(values) for name, values in zip("abc", zip(*rows, strict=True), strict=True)}
    text = encode(columns, delimiter=delimiter, quote_mode=mode, escape='"').decode()
    read = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    assert read == [[a, b, str(c)] for a, b, c in rows]


def test_null_and_empty_differ():
    """Null is nothing, an empty string is two quotes."""
    assert encode({"a": ["x", None, ""], "b": [1, None, 3]}) == b'x,1\n,\n"",3\n'
    assert encode({"a": ["x", None, ""], "b": [1, None, 3]}, null_value="NULL") == b'x,1\nNULL,NULL\n"",3\n'


def test_no_record_is_an_empty_line():
    """Readers skip empty lines, so a single null is written as two quotes."""
    assert encode({"a": [None, 1]}) == b'""\n1\n'


def test_spaces_are_kept():
    """Unlike Spark's writer, which cuts them off."""
    assert encode({"a": [" x ", " "], "b": ["\t", "y "]}) == b" x ,\t\n ,y \n"


def test_quotes_and_escapes():
    """Quoted where needed; quotes and escapes inside quotes are escaped, others are left alone."""
    values = ['q"q', "a\\b", "a,\\", "l\nf", "c\rr", "#first"]
    expected = b'"q\\"q",1\na\\b,1\n"a,\\\\",1\n"l\nf",1\n"c\rr",1\n"#first",1\n'
    assert encode({"a": values, "b": [1] * 6}) == expected


def test_delimiters_inside_numbers_and_times_are_quoted():
    """A delimiter that is part of another type's text does not tear it apart."""
    columns = {"n": pa.array([-1]), "d": pa.array([1.5]), "w": pa.array([0], pa.timestamp("us"))}
    assert encode(columns, delimiter=".") == b'-1."1.5"."1970-01-01T00:00:00.000"\n'
    assert encode(columns, delimiter="-") == b'"-1"-1.5-"1970-01-01T00:00:00.000"\n'
    assert encode(columns, quote="1", escape="\\") == b"1-\\11,1\\1.51,1\\1970-0\\1-0\\1T00:00:00.0001\n"


def test_the_header_is_a_line_of_names():
    """Names are quoted as values are; without ``header`` there are no bytes."""
    schema = pa.schema([("#a", pa.int32()), ("b,c", pa.int32()), ("", pa.int32())])
    assert Encoder.csv(header=True).header(schema) == b'"#a","b,c",""\n'
    assert Encoder.csv(";", True).header(schema) == b'"#a";b,c;""\n'  # noqa: FBT003 - as users write it
    assert Encoder.csv().header(schema) == b""


@pytest.mark.parametrize(
    "options",
    [
        *({"delimiter": text} for text in ("", "\n", 'a"', "\\", 5, None)),
        *({"quote": text} for text in ("", "ab", "é", "\n", None)),
        *({"escape": text} for text in ("", "ab", None)),
        {"quote_mode": "some"},
        {"null_value": None},
    ],
    ids=str,
)
def test_options_that_no_reader_could_take_apart_are_refused(options):
    """Ambiguous or mistyped options fail at construction, with the name of the option."""
    with pytest.raises(FormatError, match=next(iter(options))) as error:
        Encoder.csv(**options)
    assert error.value.kind == "option"


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("b", pa.int32())]), pa.map_(pa.string(), pa.int32())]
)
def test_nested_columns_are_refused_with_their_name(kind):
    """A file that would lose structure is not written."""
    with pytest.raises(FormatError, match=r"'tree'.*to_json"):
        Encoder.csv().check_schema(pa.schema([("ok", pa.int32()), ("tree", kind)]))


def test_a_schema_without_columns_is_refused():
    """There is no CSV of nothing."""
    with pytest.raises(FormatError, match="one column"):
        Encoder.csv().check_schema(pa.schema([]))
