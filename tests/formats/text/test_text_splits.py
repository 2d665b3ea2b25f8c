"""Lines of text are found in every charset, and those of strangers by the ends that they have."""

from __future__ import annotations

import io
from encodings.aliases import aliases

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import Encoder, FormatError, LimitError, ReadLimits, bounded
from formats.api import Split
from formats.splitting import between
from formats.text import charsets
from formats.text.line_format import TextLineFormat
from formats.text.text_file import TextFile, behind_feeds

LINES = TextLineFormat()


def lines(form, data, splits):
    """What is read of a file, split after split."""
    file = io.BytesIO(data)
    return [line for split in splits for line in form.open_split(file, split).read_all()["value"].to_pylist()]


def taken():
    """Every charset that we take."""
    for name in sorted(set(aliases.values())):
        try:
            yield charsets.canonical(name)
        except FormatError:
            continue


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("charset", sorted(set(taken())))
def test_no_other_character_has_the_bytes_of_a_line_feed(charset, every):
    """Where a split finds a line feed, there is one: of all that a charset has.

    A change tries those that have its bytes, and some of the others.
    """
    feed = charsets.line_feed(charset)
    for code in [*range(0xD800), *range(0xE000, 0x11000), 0x1F600, 0x20000]:
        try:
            data = chr(code).encode(charset)
        except UnicodeError:
            continue
        if code % every and not all(byte in data for byte in feed):
            continue
        found = behind_feeds(data, feed).tolist() if len(data) % len(feed) == 0 else data.count(feed)
        assert bool(found) == (code == 10), hex(code)


@pytest.mark.parametrize(
    "charset", ["UTF-8", "UTF-16-LE", "UTF-16-BE", "UTF-32-LE", "GB18030", "Shift-JIS", "cp037"]
)
@given(
    texts=st.lists(st.text(st.characters(max_codepoint=0x0A0F, codec="utf-8"), max_size=6), max_size=6),
    cuts=st.sets(st.integers(1, 60), max_size=4),
)
def test_lines_are_found_between_characters(charset, texts, cuts):
    """U+0A00 beside U+000A included, which has its bytes the other way round; wherever it is cut."""
    known = [text.encode(charset, "ignore").decode(charset).replace("\n", "") for text in texts]
    data = "".join(f"{text}\n" for text in known).encode(charset)
    encoder = Encoder.simple_string_encoder(charset)
    assert lines(encoder, data, between(cuts, len(data)) if data else [Split(0, 0)]) == known


TEXT = st.text(st.sampled_from("a\r\né漢"), max_size=12)


@given(text=TEXT, cuts=st.sets(st.integers(1, 40), max_size=4))
@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16-LE"])
def test_lines_of_strangers_end_as_python_and_java_have_it(charset, text, cuts):
    """With a line feed, a carriage return, both, or the end of the file; wherever it is cut."""
    expected = list(io.StringIO(text, newline=None))
    data = text.encode(charset)
    form = TextLineFormat(charset=charset)
    splits = between(cuts, len(data)) if data else [Split(0, 0)]
    assert lines(form, data, splits) == [line.removesuffix("\n") for line in expected]
    whole = form.open_reader(io.BytesIO(data)).read_all()["value"].to_pylist()
    assert whole == [line.removesuffix("\n") for line in expected]


def test_a_schema_names_the_lines():
    """One column of text, of any layout; nothing else."""
    wanted = pa.schema([("text", pa.large_string())])
    found = LINES.open_reader(io.BytesIO(b"a\nb"), schema=wanted).read_all()
    assert found == pa.table({"text": ["a", "b"]}, schema=wanted)
    with pytest.raises(FormatError, match="one column"):
        LINES.open_reader(io.BytesIO(b"a\n"), schema=pa.schema([("n", pa.int64())]))


@pytest.mark.parametrize("data", [b"a\n\xc3", b"\xff\n", b"\xc3"])
def test_lines_of_another_charset_are_an_error(data):
    """A last character that is cut off, too: no line ends in the middle of one."""
    for target in range(1, len(data) + 1):
        with pytest.raises(FormatError, match="not text in utf-8") as error:
            lines(LINES, data, LINES.splits(io.BytesIO(data), target=target))
        assert error.value.kind == "value"


@pytest.mark.parametrize("charset", ["UTF-16", "no such", ""])
def test_a_charset_of_lines_is_known_and_has_no_mark(charset):
    """As for those that are written."""
    with pytest.raises(FormatError, match="charset") as error:
        TextLineFormat(charset=charset)
    assert error.value.kind == "option"


def test_a_line_beyond_every_bound_is_an_error_of_its_split():
    """The splits that it goes through look for its end and keep nothing of it."""
    data = b"short\n" + b"x" * 5_000 + b"\nshort\n"
    file = bounded(io.BytesIO(data), limits=ReadLimits(record="1KiB"), name="a.txt")
    splits = LINES.splits(file, target=1_000)
    with pytest.raises(LimitError, match=r"a line in 'a\.txt'"):
        LINES.open_split(file, splits[0]).read_all()
    assert [LINES.open_split(file, split).read_all().num_rows for split in splits[1:]] == [0, 0, 0, 0, 1]


class Short(io.BytesIO):
    """A file that answers with a byte at a time, as a socket may."""

    def read(self, size=-1):
        return super().read(min(size, 1))


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16-LE", "UTF-32-BE"])
def test_answers_may_be_short(charset):
    """A line feed is found even if its bytes come one by one."""
    texts = ["é", "", "\u0a00\u0a0a", "end"]
    data = "".join(f"{text}\n" for text in texts).encode(charset)
    for size in (1, 3, 1000):
        found = b"".join(
            block
            for split in between(range(1, len(data), 5), len(data))
            for block in TextFile(file=Short(data), charset=charset, split=split).blocks(size)
        )
        assert found.decode().split("\n")[:-1] == texts
