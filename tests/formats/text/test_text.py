"""One line of text per record."""

from __future__ import annotations

import pyarrow as pa
import pytest

from formats import Encoder, FormatError


def encode(values, kind=None, charset="UTF-8"):
    """The bytes of one column."""
    column = values if isinstance(values, pa.Array) else pa.array(values, kind)
    return bytes(Encoder.simple_string_encoder(charset).encode(pa.record_batch({"line": column})))


def test_strings_are_lines_and_null_is_an_empty_one():
    """Strings are written as they are, one line feed after each."""
    assert encode(["a", None, "", "é"]) == "a\n\n\né\n".encode()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["no", "x", None, "é"], pa.large_string()),
        pa.array(["no", "x", None, "é"]).cast(pa.string_view()),
        pa.array(["no", "x", None, "é"]).dictionary_encode(),
        pa.array([b"no", b"x", None, "é".encode()]),
        pa.array([b"no", b"x", None, "é".encode()], pa.large_binary()),
    ],
    ids=str,
)
def test_every_layout_of_strings_is_the_same_text(column):
    """Layouts and slices of Arrow are not visible in the file."""
    assert encode(column.slice(1)) == "x\n\né\n".encode()


def test_bytes_that_are_no_text_pass_through():
    """A binary column is written byte by byte in UTF-8, as Spark casts it."""
    assert encode([b"\xff\x00"]) == b"\xff\x00\n"


def test_numbers_are_written_as_spark_casts_them():
    """Other scalars have the text of ``cast(... as string)``."""
    assert encode([1, None, -3]) == b"1\n\n-3\n"
    assert encode([1.0, 1e10]) == b"1.0\n1.0E10\n"


def test_charsets_are_python_codecs():
    """Line feeds are encoded too."""
    assert encode(["é"], charset="latin-1") == b"\xe9\n"
    assert encode(["é"], charset="UTF-16-LE") == "é\n".encode("UTF-16-LE")


def test_equal_charsets_have_equal_signatures():
    """A part can be continued whichever name of the charset was used."""
    names = ["UTF-8", "utf8", "U8"]
    assert len({Encoder.simple_string_encoder(name).signature() for name in names}) == 1


@pytest.mark.parametrize("charset", ["klingon", "", "base64", "UTF-16", "utf-8-sig", "a\0b", None, 8])
def test_charsets_that_cannot_work_are_refused(charset):
    """Unknown charsets, and those that begin each piece with a mark, fail at construction."""
    with pytest.raises(FormatError, match="UTF-8") as error:
        Encoder.simple_string_encoder(charset)
    assert error.value.kind == "option"


@pytest.mark.parametrize(
    "charset", ["unicode_escape", "raw_unicode_escape", "idna", "punycode", "UTF-7", "hz", "iso2022_kr"]
)
def test_codecs_that_change_characters_are_refused(charset):
    """A line feed that becomes a backslash and an ``n``, for example, ends no record."""
    with pytest.raises(FormatError, match="UTF-8") as error:
        Encoder.simple_string_encoder(charset)
    assert error.value.kind == "option"


@pytest.mark.parametrize(
    "charset", ["ascii", "cp1252", "cp037", "UTF-32-BE", "Shift_JIS", "gb18030", "EUC-KR"]
)
def test_charsets_keep_every_character_of_ascii(charset):
    """One byte each, or several, and not always those of ASCII."""
    text = "".join(map(chr, range(128)))
    assert encode([text, text], charset=charset).decode(charset) == f"{text}\n" * 2


@pytest.mark.parametrize(
    ("column", "charset"), [(pa.array(["語"]), "latin-1"), (pa.array([b"\xff"]), "latin-1")]
)
def test_characters_that_the_charset_lacks_are_an_error_without_the_value(column, charset):
    """Nothing is replaced by a question mark, and the message does not show the data."""
    with pytest.raises(FormatError, match="UTF-8") as error:
        encode(column, charset=charset)
    assert error.value.kind == "value"
    assert "語" not in str(error.value)


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([("a", pa.string()), ("b", pa.string())]),
        pa.schema([("a", pa.list_(pa.string()))]),
        pa.schema([("a", pa.struct([("b", pa.string())]))]),
        pa.schema([("a", pa.timestamp("us", "Mars/Olympus"))]),
    ],
    ids=str,
)
def test_anything_but_one_scalar_column_is_refused(schema):
    """No column, two columns, nested columns and unknown zones fail before the first record."""
    with pytest.raises(FormatError) as error:
        Encoder.simple_string_encoder().check_schema(schema)
    assert error.value.kind == "schema"


def test_a_line_may_follow_any_other():
    """Whatever the column was called and held."""
    old, new = pa.schema([("a", pa.string())]), pa.schema([("b", pa.int8())])
    Encoder.simple_string_encoder().check_continues(old, new)
