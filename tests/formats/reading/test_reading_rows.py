"""Row formats read back: values, and what is refused rather than guessed."""

from __future__ import annotations

import io
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import Encoder, FormatError, LimitError, ReadLimits, bounded
from formats.csv import records as csv_records
from formats.text import line_reader

JSON = [
    "text",
    "large",
    "int",
    "long",
    "bool",
    "decimal",
    "date",
    "at",
    "wall",
    "void",
    "list",
    "struct",
    "deep",
]
CSV = [
    "text",
    "large",
    "int",
    "long",
    "double",
    "float",
    "bool",
    "decimal",
    "date",
    "at",
    "wall",
    "time",
    "void",
]
RFC = Encoder.csv()
SPARK = Encoder.csv(dialect="spark")
TWO = pa.schema([("a", pa.string()), ("b", pa.string())])
HOSTILE = st.one_of(st.none(), st.text('\\",\na', max_size=6))


@pytest.mark.parametrize(
    ("encoder", "names"),
    [
        (Encoder.json_lines(), JSON),
        (RFC, CSV),
        (Encoder.csv(header=True), CSV),
        (SPARK, CSV),
        (Encoder.csv(header=True, escape="'", quote="|"), CSV),
    ],
    ids=["json", "csv", "csv with header", "csv of Spark", "csv of nobody"],
)  # fmt: skip
def test_what_was_written_is_read(encoder, names, all_rows):
    """Every value of every type that the format can read back, to the microsecond."""
    batch = all_rows.select(names)
    file = io.BytesIO(encoder.header(batch.schema) + bytes(encoder.encode(batch)))
    found = encoder.open_reader(file, schema=batch.schema).read_all()
    assert found.schema == batch.schema
    assert str(found.to_pylist()) == str(batch.to_pylist())


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16-LE", "latin-1"])
def test_text_is_read_in_its_charset(charset, monkeypatch):
    """Wherever a block ends; null and the empty string are the same empty line."""
    encoder = Encoder.simple_string_encoder(charset)
    batch = pa.record_batch({"t": ["a", "é" * 5, None, "", "x"]})
    monkeypatch.setattr(line_reader, "_BLOCK", 3)
    reader = encoder.open_reader(io.BytesIO(bytes(encoder.encode(batch))))
    assert reader.read_all().to_pydict() == {"value": ["a", "é" * 5, "", "", "x"]}


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16-LE", "latin-1"])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("escape", ['"', "\\"])
def test_csv_is_read_in_its_charset(charset, header, escape):
    """Line feeds, quotes and delimiters inside of values included."""
    encoder = Encoder.csv(";", header=header, escape=escape, charset=charset)
    batch = pa.record_batch({"é": ["a\nb", 'é;"ü"', None, "", " x "], "n": [1, 2, 3, 4, None]})
    file = io.BytesIO(encoder.header(batch.schema) + bytes(encoder.encode(batch)))
    assert encoder.open_reader(file, schema=batch.schema).read_all().to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("quote_mode", ["minimal", "all"])
@given(values=st.lists(st.tuples(HOSTILE, HOSTILE), max_size=4))
def test_escapes_are_told_from_backslashes(quote_mode, values):
    """Inside of quotes one stands for the next character, outside for itself; wherever a block ends."""
    encoder = Encoder.csv(quote_mode=quote_mode, null_value="" if quote_mode == "minimal" else "NULL")
    batch = pa.record_batch([[one for one, _ in values], [two for _, two in values]], schema=TWO)
    data = bytes(encoder.encode(batch))
    with small_blocks():
        assert encoder.open_reader(io.BytesIO(data), schema=TWO).read_all() == pa.table(batch)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_mark_that_begins_a_value_is_kept_behind_a_header(rows):
    """Only at the beginning of a file is U+FEFF no character: in every piece, the first one included."""
    batch = pa.record_batch([["\ufeffx"] * rows, ["\ufeff"] * rows], schema=TWO)
    encoder = Encoder.csv(header=True)
    data = encoder.header(TWO) + bytes(encoder.encode(batch))
    assert encoder.open_reader(io.BytesIO(data), schema=TWO).read_all() == pa.table(batch)
    marked = encoder.open_reader(io.BytesIO(b"\xef\xbb\xbf" + data), schema=TWO)
    assert marked.read_all() == pa.table(batch)
    with small_blocks():
        assert encoder.open_reader(io.BytesIO(data), schema=TWO).read_all() == pa.table(batch)


@contextmanager
def small_blocks():
    """What is between the file and the parser sees some bytes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_BLOCK", 3)
        yield


CSVS = [RFC, SPARK, Encoder.csv(header=True)]


@pytest.mark.parametrize("encoder", CSVS)
def test_a_record_may_be_longer_than_a_block(encoder):
    """Each record comes once, and line ends inside of values stay as they are."""
    texts = ["a" * 20] * 50 + ["b" * 5_000, "c\n" * 30, "\r\n" * 30, "d\r"] + ["d"] * 50
    batch = pa.record_batch({"t": texts, "n": range(104)})
    file = io.BytesIO(encoder.header(batch.schema) + bytes(encoder.encode(batch)))
    with small_blocks():
        assert encoder.open_reader(file, schema=batch.schema).read_all() == pa.table(batch)


class Slow(io.BytesIO):
    """A file on a network, which counts what was read."""

    taken = 0

    def read(self, size=-1):
        time.sleep(0.001)
        data = super().read(size)
        self.taken += len(data)
        return data


@pytest.mark.parametrize("encoder", [*CSVS, Encoder.json_lines(), Encoder.simple_string_encoder()])
def test_nothing_is_read_that_nobody_asked_for(encoder):
    """Memory is bounded, and a file may be closed once its reader is dropped."""
    batch = pa.record_batch({"t": ["x" * 1_000] * 50_000})
    file = Slow(encoder.header(batch.schema) + bytes(encoder.encode(batch)))
    schema = pa.schema([("value", pa.string())]) if encoder.extension == ".txt" else batch.schema
    reader = encoder.open_reader(file, schema=schema)
    reader.read_next_batch()
    del reader
    assert file.taken < 10 << 20


def test_a_record_beyond_every_bound_is_an_error():
    """A quote that nobody closes makes no block of the whole file."""
    file = Slow(b'a,"b\n' + b"c,d\n" * 3_000_000)
    with pytest.raises(LimitError, match="a record is larger than 1048576 bytes") as error:
        RFC.open_reader(bounded(file, limits=ReadLimits(record="1MiB")), schema=TWO).read_all()
    assert error.value.kind == "value"
    assert file.taken < 4 << 20


@pytest.mark.parametrize("encoder", [Encoder.json_lines(), Encoder.simple_string_encoder()], ids=repr)
def test_a_line_beyond_every_bound_is_an_error(encoder):
    """What is no file of lines is not taken into memory as a whole."""
    file = Slow(b"x" * 12_000_000)
    with pytest.raises(LimitError, match="a line is larger than 1048576 bytes") as error:
        encoder.open_reader(
            bounded(file, limits=ReadLimits(record="1MiB")), schema=pa.schema([("value", pa.string())])
        ).read_all()
    assert error.value.kind == "value"
    assert file.taken < 4 << 20


def test_a_run_of_escapes_costs_no_more_than_other_text(monkeypatch):
    """However long, it is not looked at again with each block."""
    seen = []
    plain = csv_records._without_escapes

    def counting(cells, **options):
        seen.append(len(cells))
        return plain(cells, **options)

    monkeypatch.setattr(csv_records, "_without_escapes", counting)
    count = 8 << 20
    data = b'"' + b"\\" * count + b'",b\n'
    assert len(SPARK.open_reader(Slow(data), schema=TWO).read_all()["a"][0].as_py()) == count // 2
    assert 0 < sum(seen) <= len(data)


@pytest.mark.parametrize("encoder", CSVS)
@pytest.mark.parametrize("rest", [b'1,"a', b'1,"a\n', b"1,a"])
def test_a_csv_that_was_cut_is_an_error(encoder, rest):
    """Inside of quotes or not."""
    file = io.BytesIO(encoder.header(TWO) + b"x,y\n" + rest)
    with pytest.raises(FormatError, match="cut off") as error:
        encoder.open_reader(file, schema=TWO).read_all()
    assert error.value.kind == "value"


def test_columns_of_csv_are_taken_by_name_where_there_is_a_header():
    """Whatever their order, and even if a name has a line feed."""
    batch = pa.record_batch({"a\nb": ["x"], 'c"d': ["y"], "n": pa.array([1], pa.int8())})
    encoder = Encoder.csv(header=True)
    file = io.BytesIO(encoder.header(batch.schema) + bytes(encoder.encode(batch)))
    wanted = pa.schema([("n", pa.int64()), ("new", pa.string()), ("a\nb", pa.string())])
    found = encoder.open_reader(file, schema=wanted).read_all()
    assert found.to_pylist() == [{"n": 1, "new": None, "a\nb": "x"}]


def test_columns_of_csv_are_taken_by_place_where_there_is_none():
    """Files may be older than the last columns of a schema, but not have others."""
    found = RFC.open_reader(io.BytesIO(b'x\n"y\n,"\n'), schema=TWO).read_all()
    assert found.to_pylist() == [{"a": "x", "b": None}, {"a": "y\n,", "b": None}]
    with pytest.raises(FormatError, match="3 columns"):
        RFC.open_reader(io.BytesIO(b"x,y,z\n"), schema=TWO).read_all()
    with pytest.raises(FormatError):
        RFC.open_reader(io.BytesIO(b"x,y\nz\n"), schema=TWO).read_all()


def test_a_header_that_names_a_column_twice_is_refused():
    """Nobody can tell which is meant."""
    with pytest.raises(FormatError, match="twice"):
        Encoder.csv(header=True).open_reader(io.BytesIO(b"a,a\nx,y\n"), schema=TWO).read_all()


@pytest.mark.parametrize("null_value", ["#N/A", "a,b", '"', "NULL", "-"])
@pytest.mark.parametrize("escape", ['"', "\\"])
def test_null_is_read_whatever_stands_for_it(null_value, escape):
    """Quoted or not, in columns of text and of numbers."""
    encoder = Encoder.csv(null_value=null_value, escape=escape)
    batch = pa.record_batch({"n": pa.array([None, 1]), "t": ["x", None]})
    file = io.BytesIO(bytes(encoder.encode(batch)))
    assert encoder.open_reader(file, schema=batch.schema).read_all().to_pylist() == batch.to_pylist()


def test_one_column_of_numbers_may_be_null():
    """Such a record is quoted lest it be an empty line."""
    batch = pa.record_batch({"n": pa.array([None, 1])})
    file = io.BytesIO(bytes(Encoder.csv().encode(batch)))
    assert Encoder.csv().open_reader(file, schema=batch.schema).read_all() == pa.table(batch)


@pytest.mark.parametrize("encoder", [RFC, Encoder.json_lines()], ids=["csv", "json"])
def test_timestamps_of_every_unit_are_read(encoder):
    """They are written with six digits of a second."""
    for unit in ("s", "ms", "us", "ns"):
        batch = pa.record_batch({"at": pa.array([0, 10**9], pa.timestamp(unit)), "n": [1, 2]})
        file = io.BytesIO(bytes(encoder.encode(batch)))
        expected = pa.table(batch)
        assert encoder.open_reader(file, schema=batch.schema).read_all() == expected, unit


@pytest.mark.parametrize("encoder", [RFC, SPARK, Encoder.csv(header=True), Encoder.json_lines()])
def test_a_file_of_no_records_is_read(encoder):
    """With a header or without a byte."""
    file = io.BytesIO(encoder.header(TWO))
    assert encoder.open_reader(file, schema=TWO).read_all().num_rows == 0


def test_csv_in_another_charset_is_an_error():
    """Not a character in place of what is not understood."""
    plain, schema = Encoder.csv(escape='"', charset="ASCII"), pa.schema([("c", pa.string())])
    with pytest.raises(FormatError, match="not text in ascii") as error:
        plain.open_reader(io.BytesIO("é\n".encode()), schema=schema).read_all()
    assert error.value.kind == "value"


def test_nested_json_is_read():
    """Structs in lists in structs, with line feeds and quotes in their strings, and fields left out."""
    inner = pa.struct([("s", pa.string()), ("n", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
    schema = pa.schema([("a", pa.struct([("list", pa.list_(inner)), ("x", pa.float64())]))])
    rows = [
        {"a": {"list": [{"s": 'line\n"é"', "n": None, "at": None}, None], "x": 1.5}},
        {"a": {"list": [], "x": None}},
        {"a": None},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    file = io.BytesIO(bytes(Encoder.json_lines().encode(batch)))
    assert Encoder.json_lines().open_reader(file, schema=schema).read_all().to_pylist() == rows


@pytest.mark.parametrize(
    "encoder", [Encoder.json_lines(), Encoder.simple_string_encoder()], ids=["json", "text"]
)
def test_a_line_that_was_cut_is_an_error(encoder):
    """A file that does not end with a line feed has lost something."""
    batch = pa.record_batch({"t": ["abc"]})
    data = bytes(encoder.encode(batch))[:-1]
    with pytest.raises(FormatError, match="cut off") as error:
        encoder.open_reader(io.BytesIO(data), schema=batch.schema).read_all()
    assert error.value.kind == "value"


@pytest.mark.parametrize(
    ("encoder", "kind"),
    [
        (Encoder.json_lines(), pa.binary()),
        (Encoder.json_lines(), pa.map_(pa.string(), pa.int32())),
        (RFC, pa.binary()),
        (RFC, pa.list_(pa.int32())),
        (RFC, pa.decimal256(50, 2)),
        (RFC, pa.month_day_nano_interval()),
        (Encoder.csv("||"), pa.string()),
        (Encoder.csv(date_format="yyyy"), pa.string()),
    ],
)
def test_what_cannot_be_read_back_is_refused(encoder, kind):
    """With a reason, before the first batch."""
    with pytest.raises(FormatError, match="read") as error:
        encoder.open_reader(io.BytesIO(b"x\n"), schema=pa.schema([("c", kind)]))
    assert error.value.kind == "option"


@pytest.mark.parametrize("encoder", [Encoder.json_lines(), RFC], ids=["json", "csv"])
def test_types_must_be_given(encoder):
    """Guessing types from values goes wrong one day."""
    with pytest.raises(FormatError, match="schema"):
        encoder.open_reader(io.BytesIO(b""))


@pytest.mark.parametrize(("encoder", "line"), [(Encoder.json_lines(), b'{"n": "x"}\n'), (RFC, b"x\n")])
def test_a_value_of_another_type_is_an_error(encoder, line):
    """And no null in its place."""
    with pytest.raises(FormatError) as error:
        encoder.open_reader(io.BytesIO(line), schema=pa.schema([("n", pa.int32())])).read_all()
    assert error.value.kind == "value"
    if encoder is RFC:
        assert error.value.message == "column 'n' has text that is not of type int32"
    assert "'x'" not in str(error.value)


@pytest.mark.parametrize("encoder", [Encoder.json_lines(), Encoder.simple_string_encoder()], ids=repr)
def test_a_file_that_was_cut_inside_of_a_character_is_an_error(encoder):
    """Even of the first one of a line."""
    with pytest.raises(FormatError) as error:
        encoder.open_reader(io.BytesIO(b"{}\n\xc3"), schema=pa.schema([("value", pa.string())])).read_all()
    assert error.value.kind == "value"


def test_json_may_have_more_columns_than_are_asked_for():
    """As the files of a newer schema have; they are left out."""
    file = io.BytesIO(b'{"a":"x","n":1,"s":{"b":"y","m":2}}\n')
    schema = pa.schema([("s", pa.struct([("b", pa.string())])), ("a", pa.string())])
    found = Encoder.json_lines().open_reader(file, schema=schema).read_all()
    assert found.to_pylist() == [{"s": {"b": "y"}, "a": "x"}]
