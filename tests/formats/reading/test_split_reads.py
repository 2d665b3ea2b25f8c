"""What is read of a file for its splits, and for one of them; and what markers are looked for."""

from __future__ import annotations

import io
import os
import re
import tracemalloc
from contextlib import contextmanager

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    Encoder,
    FormatError,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
)
from formats.api import Split
from formats.binary.sync_marker import find
from formats.sequence_file import writer as sequence_writer
from formats.splitting import between
from formats.text.line_format import TextLineFormat
from tests.formats.conftest import PLAIN_FORMS
from tests.formats.forms import Form

UNIT = 100 << 10  # bytes of a block, a row group, a stripe or what is between markers, about
WINDOW = 400 << 10  # bytes that a reader may read beside its split: blocks, a footer, the beginning of CSV
ROWS = pa.record_batch(
    {
        "int": pa.array(range(3_000), pa.int32()),
        "text": [os.urandom(400).hex() for _ in range(3_000)],
    }
)


def large_form(code, *names):
    """A file of such units."""
    return Form(code, ROWS.select(names or ROWS.schema.names), at_a_time=UNIT // 800)


SEQUENCES = ["none", "record", "block"]
FORMS = {
    "text": large_form(Encoder.simple_string_encoder(), "text"),
    "lines": large_form(Encoder.simple_string_encoder("UTF-16-LE"), "text"),
    "json": large_form(Encoder.json_lines()),
    "csv": large_form(Encoder.csv(header=True)),
    "csv-unquoted": large_form(Encoder.csv(quote_mode="none")),
    "avro": large_form(Encoder.avro("null")),
    **{
        f"sequence-{each}": large_form(SequenceFileWriterFactory(key="int", compression=each))
        for each in SEQUENCES
    },
    "parquet": large_form(ParquetWriterFactory(compression="none")),
    "orc": large_form(OrcBulkWriterFactory(compression="none")),
    "arrow": large_form(ArrowWriterFactory(compression="none")),
}


class Counted(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    def read(self, size=-1):
        data = super().read(size)
        self.taken += len(data)
        return data


@pytest.fixture(params=FORMS.values(), ids=FORMS.keys())
def large(request):
    """A file that is much larger than what may be read in vain."""
    return request.param


def test_a_split_is_read_and_little_else(large):
    """Its bytes, the rest of a unit that begins in it, and a window; whatever the size of the file."""
    size = len(large.data)
    assert size > 3 * WINDOW
    splits = large.splits(size // 4)
    assert len(splits) >= 3
    for split in splits:
        file = Counted(large.data)
        assert len(large.read([split], file)) > 400
        assert file.taken <= split.end - split.start + 2 * UNIT + WINDOW


@pytest.mark.parametrize("name", ["text", "lines", "json", "csv-unquoted", "avro", "sequence-block"])
def test_splits_of_what_is_cut_anywhere_are_planned_without_a_look(name):
    """Of its size alone; and none is larger than the target."""
    file = Counted(FORMS[name].data)
    splits = FORMS[name].format.splits(file, target=100_000)
    assert file.taken == 0
    assert max(split.end - split.start for split in splits) <= 100_000


@pytest.mark.parametrize("name", ["parquet", "orc", "arrow"])
def test_splits_between_units_are_planned_by_the_footer(name):
    """However large the file is, and with about as many bytes as are wanted."""
    file = Counted(FORMS[name].data)
    splits = FORMS[name].format.splits(file, target=5 * UNIT)
    assert file.taken <= 128 << 10
    assert max(split.end - split.start for split in splits) <= 7 * UNIT
    assert min(split.end - split.start for split in splits[:-1]) >= 3 * UNIT


def test_a_split_without_a_record_reads_no_more_than_itself():
    """A record that goes through it, and the sync marker behind it, are of no interest."""
    data = b"x" * 10_000 + b"\n" + b"y\n" * 10
    for form in (Encoder.simple_string_encoder(), TextLineFormat()):
        file = Counted(data)
        assert form.open_split(file, Split(2_000, 5_000)).read_all().num_rows == 0
        assert file.taken <= 3_000
    avro = PLAIN_FORMS["avro"]
    begins = len(avro.data) - 3
    file = Counted(avro.data)
    assert avro.read([Split(begins, begins + 1)], file) == []
    assert file.taken <= begins


@contextmanager
def at_most(size):
    """Most bytes that Python may take at a time meanwhile."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dialect", ["rfc4180", "spark"])
def test_a_long_record_takes_no_memory_of_who_plans(dialect, tmp_path):
    """Quotes are counted a block at a time."""
    path = tmp_path / "long.csv"
    path.write_bytes(b'a,"' + b"x\n" * (20 << 20) + b'"\nb,c\n')
    with path.open("rb") as file, at_most(20 << 20):
        splits = Encoder.csv(dialect=dialect).splits(file, target=8 << 20)
    assert [split.start for split in splits] == [0, (40 << 20) + 5]


def test_a_long_record_takes_no_memory_of_who_passes_over_it(tmp_path):
    """It is kept by none but the reader of its own split."""
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * (40 << 20) + b"\n")
    with path.open("rb") as file, at_most(12 << 20):
        assert TextLineFormat().open_split(file, Split(1 << 20, 39 << 20)).read_all().num_rows == 0


def test_stripes_begin_where_pyorc_finds_them():
    """It reads the same footer by other means, whatever it is compressed with."""
    for codec in ("none", "zlib", "snappy", "lz4", "zstd"):
        form = large_form(OrcBulkWriterFactory(compression=codec))
        stripes = [stripe.bytes_offset for stripe in pyorc.Reader(io.BytesIO(form.data)).iter_stripes()]
        assert len(stripes) > 5
        assert [split.start for split in form.splits(1)] == [0, *stripes[1:]]


def test_row_groups_and_record_batches_begin_where_they_are():
    """At the first page of the first column, and at the message of the batch."""
    parquet = FORMS["parquet"]
    metadata = pq.ParquetFile(io.BytesIO(parquet.data)).metadata
    groups = [metadata.row_group(number).column(0) for number in range(metadata.num_row_groups)]
    begins = [min(chunk.dictionary_page_offset or 1 << 60, chunk.data_page_offset) for chunk in groups]
    assert [split.start for split in parquet.splits(1)] == [0, *begins[1:]]
    arrow = FORMS["arrow"]
    for split in arrow.splits(1)[1:]:
        assert arrow.data[split.start : split.start + 4] == b"\xff" * 4


def test_blocks_of_avro_begin_where_fastavro_finds_them():
    """Behind a marker."""
    avro = FORMS["avro"]
    blocks = [block.offset for block in fastavro.block_reader(io.BytesIO(avro.data))]
    counts = [block.num_records for block in fastavro.block_reader(io.BytesIO(avro.data))]
    assert len(blocks) > 5
    file = io.BytesIO(avro.data)
    for number in (1, len(blocks) - 2):
        for split, expected in (
            (Split(blocks[number], blocks[number] + 1), counts[number]),
            (Split(blocks[number] + 1, blocks[number + 1]), 0),
        ):
            assert avro.format.open_split(file, split).read_all().num_rows == expected


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("compression", ["none", "record", "block"])
def test_sequence_files_are_split_at_every_marker(compression, every, monkeypatch):
    """Which stand between the records every now and then; wherever the file is cut."""
    monkeypatch.setattr(sequence_writer, "_SYNC_INTERVAL", 30)
    rows = pa.record_batch(
        {"n": pa.array(range(30), pa.int32()), "t": [f"row {n}" * (n % 4) for n in range(30)]}
    )
    factory = SequenceFileWriterFactory(key="n", value="t", compression=compression)
    form = Form(factory, rows)
    size = len(form.data)
    for place in range(1, size, every):
        assert form.read(between([place], size)) == form.written
    finest = [form.read([split]) for split in form.splits(1)]
    assert [record for records in finest for record in records] == form.written
    assert sum(1 for records in finest if records) >= 10


@pytest.mark.parametrize("compression", ["none", "block"])
def test_a_damaged_marker_is_an_error_of_the_split_before_it(compression, monkeypatch):
    """The one behind it does not find its records: they are missed, and not lost in silence."""
    monkeypatch.setattr(sequence_writer, "_SYNC_INTERVAL", 30)
    rows = pa.record_batch({"n": pa.array(range(30), pa.int32()), "t": [f"row {n}" for n in range(30)]})
    sync = bytes(range(100, 116))
    factory = SequenceFileWriterFactory(key="n", value="t", compression=compression, make_sync=lambda: sync)
    form = Form(factory, rows)
    size = len(form.data)
    marks = [found.start() for found in re.finditer(b"\xff" * 4 + sync, form.data)]
    assert len(marks) >= 5
    for place in marks[1:]:
        damaged = form.data[: place + 9] + b"!" + form.data[place + 10 :]
        with pytest.raises(FormatError) as error:
            form.read(between([place], size), io.BytesIO(damaged))
        assert error.value.kind == "value"


def test_a_marker_is_found_wherever_blocks_end(monkeypatch):
    """All of it, from the first place to the last that is looked at."""
    monkeypatch.setattr("formats.binary.sync_marker._BLOCK", 3)
    data = b"ab" + b"0123456789abcdef" + b"x0123456789abcdef"
    mark = b"0123456789abcdef"
    places = {start: find(io.BytesIO(data), mark, start=start, end=len(data)) for start in range(len(data))}
    assert places == {start: 2 if start <= 2 else 19 if start <= 19 else None for start in range(len(data))}
    assert find(io.BytesIO(data), mark, start=0, end=17) is None
    assert find(io.BytesIO(data), mark, start=0, end=18) == 2


def test_a_footer_that_is_cut_off_is_an_error_at_planning():
    """Where units are is not known then."""
    for factory in (ParquetWriterFactory(), ArrowWriterFactory(), OrcBulkWriterFactory()):
        data = Form(factory, ROWS.slice(0, 10)).data
        with pytest.raises(FormatError, match="no readable") as error:
            factory.splits(io.BytesIO(data[:-8]), target=10)
        assert error.value.kind == "value"


def test_parts_of_avro_that_were_continued_are_split():
    """By another process, which knows the marker."""
    encoder = Encoder.avro(block_size=1).start_part()
    other = Encoder.avro(block_size=1).resume_part(encoder.carry_over())
    rows = ROWS.slice(0, 20)
    data = encoder.header(rows.schema) + bytes(encoder.encode(rows.slice(0, 9)))
    data += bytes(other.encode(rows.slice(9)))
    file = io.BytesIO(data)
    splits = AvroWriterFactory().splits(file, target=700)
    found = [
        number
        for split in splits
        for number in AvroWriterFactory().open_split(file, split).read_all()["int"].to_pylist()
    ]
    assert found == list(range(20))
    assert len(splits) > 10
