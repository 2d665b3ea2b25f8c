"""CSV is cut where records begin, whatever stands in quotes, and wherever blocks end."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import Encoder, FormatError
from formats.api import Split
from formats.csv import boundaries
from formats.csv import records as csv_records

TWO = pa.schema([("a", pa.string()), ("b", pa.string())])
ROWS = [
    ("plain", "é,漢"),
    ("two\nlines", 'q"q'),
    ('"', "\n\n"),
    ("\r\n", "😀\n,"),
    (None, ""),
    ("back\\", '\\"\n'),
    ("last", "\n"),
]
OPTIONS = [
    {},
    {"header": True},
    {"dialect": "spark"},
    {"dialect": "spark", "header": True},
    {"quote_mode": "all", "null_value": "NULL"},
    {"quote": "'", "escape": "|"},
]


def batch_of(rows):
    """Two columns of text."""
    return pa.record_batch([[row[0] for row in rows], [row[1] for row in rows]], schema=TWO)


def read(encoder, file, target, schema=TWO):
    """The records of all splits."""
    return [
        tuple(row.values())
        for split in encoder.splits(file, target=target)
        for row in encoder.open_split(file, split, schema=schema).read_all().to_pylist()
    ]


#: A change tries some targets of a file, a night every one of its bytes.
EVERY = pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.nightly)])


@pytest.fixture(params=[None, 4, 8], ids=["large blocks", "4", "8"])
def block(request, monkeypatch):
    """How many bytes are looked at together; ends of blocks are everywhere."""
    if request.param:
        monkeypatch.setattr(boundaries, "_BLOCK", request.param)
        monkeypatch.setattr(csv_records, "_BLOCK", request.param)


@EVERY
@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16-LE", "UTF-32-BE", "GB18030"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_stands_in_quotes_ends_no_record(options, charset, every):
    """Line feeds, delimiters, quotes and escapes, in characters of one to four bytes; from every target."""
    encoder = Encoder.csv(charset=charset, **options)
    batch = batch_of(ROWS)
    data = encoder.header(TWO) + bytes(encoder.encode(batch))
    for target in range(1, len(data) + 1, every):
        assert read(encoder, io.BytesIO(data), target) == ROWS


@EVERY
@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("header", [False, True])
def test_lines_may_end_with_a_carriage_return_and_a_line_feed(header, every):
    """As files of Windows do, with both in values too, and text of many bytes; at every byte."""
    rows = [("é\r\n漢", "x"), ("plain", "\r\n"), ("a,b", '😀"\n"'), ("", "last\r\n")]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows] if header else rows)
    data = text.getvalue().encode()
    encoder = Encoder.csv(header=header)
    for target in range(1, len(data) + 1, every):
        assert read(encoder, io.BytesIO(data), target) == rows


FIELD = st.text(st.sampled_from("ab\"';,\t \n\ré漢😀"), max_size=8)


@dataclass(frozen=True)
class Written:
    """A file of three columns as Python's writer makes it, and what it is told."""

    rows: list[tuple[str, str, str]]
    delimiter: str
    quote: str
    escape: str | None
    end: str
    header: bool
    quoting: int

    @property
    def names(self):
        """Of the columns; they have what has to be quoted."""
        return ("a", f"b{self.quote}\n", f"c{self.delimiter}")

    @property
    def dialect(self):
        """For Python's writer and parser."""
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote,
            "doublequote": self.escape is None,
            "escapechar": self.escape,
        }

    def text(self):
        """What is in the file: in quotes, where an escape or a carriage return would mean something else."""
        text = io.StringIO(newline="")
        is_plain = self.escape is None and not any("\r" in field for row in self.rows for field in row)
        quoting = self.quoting if is_plain else csv.QUOTE_ALL
        writer = csv.writer(text, lineterminator=self.end, quoting=quoting, **self.dialect)
        writer.writerows([self.names, *self.rows] if self.header else self.rows)
        return text.getvalue()

    def encoder(self):
        """What reads it here."""
        escape = self.escape or self.quote
        return Encoder.csv(self.delimiter, self.header, quote=self.quote, escape=escape)


FILES = st.builds(
    Written,
    rows=st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t"),
    quote=st.sampled_from("\"'"),
    escape=st.sampled_from([None, "\\"]),
    end=st.sampled_from(["\n", "\r\n"]),
    header=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
BLOCKS = st.sampled_from([3, 7, 1 << 18])


@given(file=FILES, cut=st.floats(0, 1), planned=BLOCKS, parsed=BLOCKS)
def test_splits_have_what_pythons_own_parser_finds(file, cut, planned, parsed):
    """In any file that Python's writer makes, for any target, with any size of blocks."""
    text = file.text()
    content = text.encode()
    found = list(csv.reader(io.StringIO(text, newline=""), **file.dialect))[file.header :]
    schema = pa.schema([(name, pa.string()) for name in file.names])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "_BLOCK", planned)
        patch.setattr(csv_records, "_BLOCK", parsed)
        splits = read(file.encoder(), io.BytesIO(content), 1 + int(cut * len(content)), schema)
    assert [[value or "" for value in row] for row in splits] == found


def test_the_header_is_no_record_of_any_split():
    """Even if it has line feeds, and the first splits end before it does."""
    names = ["a\nb", 'c"d']
    batch = pa.record_batch([["x", "y"], ["1", "2"]], names=names)
    encoder = Encoder.csv(header=True)
    data = encoder.header(batch.schema) + bytes(encoder.encode(batch))
    wanted = pa.schema([(names[1], pa.string()), ("new", pa.string()), (names[0], pa.string())])
    for target in range(1, len(data) + 1):
        found = read(encoder, io.BytesIO(data), target, wanted)
        assert found == [("1", None, "x"), ("2", None, "y")]


@pytest.mark.parametrize("header", [False, True])
def test_a_mark_before_a_record_is_of_its_value(header):
    """But at the beginning of the file: wherever a split begins."""
    rows = [("\ufeffx", "1"), ("\ufeff", "2"), ("\ufeffy", "3")]
    encoder = Encoder.csv(header=header)
    data = b"\xef\xbb\xbf" + encoder.header(TWO) + (b"" if header else b"w,0\n")
    data += bytes(encoder.encode(batch_of(rows)))
    for target in range(1, len(data) + 1):
        assert read(encoder, io.BytesIO(data), target)[-3:] == rows


def test_every_split_has_the_columns_of_the_first_record():
    """A record of fewer fields is an error, as for the reader of the file, and no record of nulls."""
    data = b"a,b\nc,d\ne\n"
    encoder = Encoder.csv()
    for target in range(1, len(data) + 1):
        with pytest.raises(FormatError):
            read(encoder, io.BytesIO(data), target)
    with pytest.raises(FormatError, match="3 columns"):
        encoder.open_split(io.BytesIO(b"a,b,c\nd,e,f\n"), Split(6, 12), schema=TWO).read_all()


class Counted(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    def read(self, size=-1):
        data = super().read(size)
        self.taken += len(data)
        return data


def test_planning_reads_up_to_the_last_cut(monkeypatch):
    """Nothing of a file that is no larger than a split; else all that stands before the last one."""
    monkeypatch.setattr(boundaries, "_BLOCK", 1000)
    file = Counted(b"some,text\n" * 10_000)
    assert Encoder.csv().splits(file, target=100_000) == [Split(0, 100_000)]
    assert file.taken == 0
    assert Encoder.csv().splits(file, target=30_000) == [
        Split(start, start + 25_000) for start in range(0, 100_000, 25_000)
    ]
    assert file.taken <= 76_000


def test_a_file_without_quotes_is_cut_anywhere():
    """Where the dialect has none, nothing is read while planning, and a quote is a character."""
    encoder = Encoder.csv(";", quote_mode="none", null_value="\\N", header=True)
    rows = [('"a', "1"), ("b", None), ('c"', "2"), ("é", '""')]
    data = 'a;b\n"a;1\nb;\\N\nc";2\né;""\n'.encode()
    for target in range(1, len(data) + 1):
        file = Counted(data)
        assert len(encoder.splits(file, target=target)) == -(-len(data) // target)
        assert file.taken == 0
        assert read(encoder, file, target) == rows


def test_ranges_of_somebody_else_may_end_outside_of_quotes():
    """Anywhere in a file whose values have no line feeds: as Spark cuts CSV without ``multiLine``."""
    rows = [("a,b", "é"), ('"', "x"), ("", "y")]
    encoder = Encoder.csv(header=True)
    data = encoder.header(TWO) + bytes(encoder.encode(batch_of(rows)))
    for place in range(1, len(data)):
        file = io.BytesIO(data)
        readers = [
            encoder.open_split(file, split, schema=TWO)
            for split in (Split(0, place), Split(place, len(data)))
        ]
        assert [tuple(row.values()) for one in readers for row in one.read_all().to_pylist()] == rows


def test_what_cannot_be_read_is_not_split():
    """It is told at planning, before anything is read."""
    file = Counted(b"x||y\n")
    with pytest.raises(FormatError, match="delimiter") as error:
        Encoder.csv("||").splits(file, target=1)
    assert error.value.kind == "option"
    assert file.taken == 0


def test_another_charset_is_told_while_planning():
    """If there is a cut behind what is no text in it."""
    with pytest.raises(FormatError, match="not text in ascii") as error:
        Encoder.csv(charset="ASCII").splits(io.BytesIO("é,x\n".encode() * 9), target=9)
    assert error.value.kind == "value"
