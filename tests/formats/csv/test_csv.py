"""CSV, against Python's own parser; ``tests/spark`` compares it with Spark's."""

from __future__ import annotations

import csv
import io
import re

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
    assert encode({"a": values, "b": [1] * 6}, dialect="spark") == expected
    expected = b'"q""q",1\na\\b,1\n"a,\\",1\n"l\nf",1\n"c\rr",1\n"#first",1\n'
    assert encode({"a": values, "b": [1] * 6}) == expected


def test_delimiters_inside_numbers_and_times_are_quoted():
    """A delimiter that is part of another type's text does not tear it apart."""
    columns = {"n": pa.array([-1]), "d": pa.array([1.5]), "w": pa.array([0], pa.timestamp("us"))}
    assert encode(columns, delimiter=".") == b'-1."1.5"."1970-01-01T00:00:00.000000"\n'
    assert encode(columns, delimiter="-") == b'"-1"-1.5-"1970-01-01T00:00:00.000000"\n'
    assert encode(columns, quote="1", escape="\\") == b"1-\\11,1\\1.51,1\\1970-0\\1-0\\1T00:00:00.0000001\n"


def fields_of(line, delimiter):
    """The fields of a record, as a reader finds them from left to right."""
    fields, rest = [], line
    while rest is not None:
        if rest.startswith('"'):
            end = rest.index('"', 1)
            field, rest = rest[1:end], rest[end + 1 :]
            assert not rest or rest.startswith(delimiter)
            rest = rest[len(delimiter) :] if rest else None
        else:
            field, found, rest = rest.partition(delimiter)
            rest = rest if found else None
        fields.append(field)
    return fields


@given(
    delimiter=st.text("ab", min_size=1, max_size=4),
    rows=st.lists(st.tuples(*[st.text("abx", max_size=5)] * 3), min_size=1),
)
def test_a_value_never_ends_in_the_delimiter_behind_it(delimiter, rows):
    """Behind ``x:`` the delimiter ``::`` would be found a character too early, so it is quoted."""
    columns = {name: list(values) for name, values in zip("abc", zip(*rows, strict=True), strict=True)}
    lines = encode(columns, delimiter=delimiter).decode().splitlines()
    assert [fields_of(line, delimiter) for line in lines] == [list(row) for row in rows]


def test_what_ends_like_the_delimiter_begins():
    """Is quoted only if that can be misread; without quotes it is an error; and Spark would not quote it."""
    columns = {"a": ["x:", ":x"], "b": ["1", None]}
    assert encode(columns, delimiter="::", null_value=":") == b'"x:"::1\n:x::":"\n'
    assert encode(columns, delimiter=":;") == b"x::;1\n:x:;\n"
    with pytest.raises(FormatError, match="column 'a'"):
        encode(columns, delimiter="::", quote_mode="none")
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    assert Encoder.csv("::").sql_expression(schema) is None
    assert Encoder.csv("::", quote_mode="all").sql_expression(schema)
    assert Encoder.csv(":;").sql_expression(schema)


def test_spark_is_told_how_values_become_text():
    """Times with a zone and without one by the same pattern; Spark would write those without in ISO 8601."""
    encoder = Encoder.csv(null_value="-", date_format="dd.MM.yyyy", timestamp_format="yyyy HH")
    expression = encoder.sql_expression(pa.schema([("a", pa.timestamp("us")), ("b", pa.date32())]))
    texts = [bytes.fromhex(text).decode() for text in re.findall("X'([0-9a-f]+)'", expression or "")]
    told = dict(zip(texts[::2], texts[1::2], strict=True))
    assert (told["nullValue"], told["dateFormat"]) == ("-", "dd.MM.yyyy")
    assert told["timestampFormat"] == told["timestampNTZFormat"] == "yyyy HH"


@pytest.mark.parametrize("header", ["false", "no", 0, None])
def test_a_header_is_true_or_false(header):
    """Text would be true, whatever it says."""
    with pytest.raises(FormatError, match="True or False"):
        Encoder.csv(header=header)


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
        *({"delimiter": text, "escape": '"'} for text in ("\\", "\\t", "\\u0001", "|\\")),
        *({"quote": text} for text in ("", "ab", "é", "\n", None)),
        *({"escape": text} for text in ("", "ab")),
        {"dialect": "excel"},
        {"quote_mode": "some"},
        *({"date_format": text} for text in ("", "yy", "HH", "yyyy-'", "[yyyy]", "yyyy#", 5)),
        *({"timestamp_format": text} for text in ("", "EEE", "SSSSSSS", "yyyy-'", "yyyy{", "}HH", "]")),
        *({"charset": text} for text in ("", "utf-16", "klingon", None)),
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


def test_patterns_are_those_of_java():
    """Quoted text stands for itself, years beyond 9999 have a sign, null stays null."""
    columns = {
        "d": pa.array([19_000, 5_000_000, None], pa.date32()),
        "t": pa.array([1_700_000_000_123_456, None, -1], pa.timestamp("us", "Europe/Berlin")),
        "w": pa.array([0, 1, 2], pa.timestamp("us")),
    }
    options = {"date_format": "dd/MM/yyyy", "timestamp_format": "'o''clock' HH:mm:ss.SSS yyyyMMdd"}
    assert encode({"d": columns["d"][:1], "n": [1]}, date_format="'['yyyy']#{}'") == b"[2022]#{},1\n"
    assert encode({"d": columns["d"][:1], "n": [1]}, date_format="yyyy''MM") == b"2022'01,1\n"
    assert encode({"d": columns["d"][1:], "n": [1, 2]}, date_format="'day'") == b"day,1\n,2\n"
    assert encode(columns, **options).decode() == (
        "08/01/2022,o'clock 23:13:20.123 20231114,o'clock 00:00:00.000 19700101\n"
        "15/07/+15659,,o'clock 00:00:00.000 19700101\n"
        ",o'clock 00:59:59.999 19700101,o'clock 00:00:00.000 19700101\n"
    )
    with_offset = {"timestamp_format": "HHXXX"}
    assert encode({"a": columns["t"], "b": [1, 2, 3]}, **with_offset) == b"23+01:00,1\n,2\n00+01:00,3\n"
    with pytest.raises(FormatError, match="'w' has no zone"):
        Encoder.csv(**with_offset).check_schema(pa.schema([("w", pa.timestamp("us"))]))


def test_an_offset_needs_a_zone():
    """A column without one has none to write, which is told before anything is."""
    encoder = Encoder.csv(timestamp_format="HH:mm XXX")
    encoder.check_schema(pa.schema([("at", pa.timestamp("us", "UTC")), ("day", pa.date32())]))
    with pytest.raises(FormatError, match="column 'wall' has no zone"):
        encoder.check_schema(pa.schema([("wall", pa.timestamp("us"))]))


def test_without_quotes_what_needs_them_is_an_error():
    """Such a value would change the number of fields; the message names the column."""
    assert encode({"a": ["x y", "", None], "b": [1, 2, 3]}, quote_mode="none") == b"x y,1\n,2\n,3\n"
    for text in ("a,b", 'a"', "a\n", "#a"):
        with pytest.raises(FormatError, match="column 'a'") as error:
            encode({"a": [text], "b": [1]}, quote_mode="none")
        assert error.value.kind == "value"
    with pytest.raises(FormatError, match="empty line"):
        encode({"a": ["x", None]}, quote_mode="none")


def test_a_charset_is_that_of_the_whole_file():
    """Header and records; a character that it lacks is an error."""
    encoder = Encoder.csv(header=True, charset="latin-1")
    assert encoder.header(pa.schema([("é", pa.string()), ("b", pa.int32())])) == b"\xe9,b\n"
    assert encode({"a": ["é"], "b": [1]}, charset="latin-1") == b"\xe9,1\n"
    assert bytes(encoder.encode_rendered(pa.array(["é,1"]))) == b"\xe9,1\n"
    with pytest.raises(FormatError, match="iso8859-1") as error:
        encode({"a": ["漢"], "b": [1]}, charset="latin-1")
    assert error.value.kind == "value"
