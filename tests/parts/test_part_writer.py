"""The bytes of one file: limits are kept whatever the sizes of records and the cuts of batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filesink.errors import InternalError, SchemaError, StorageError
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.parts.part_file import State
from filesink.parts.part_writer import SizeHint, UnwritableRecord
from filesink.parts.rolling import UNLIMITED, Allowance, RollingPolicy
from filesink.storage.memory import MemoryFiles, MemoryStore
from formats import ParquetWriterFactory
from formats.encoders import Encoder
from formats.errors import FormatError
from tests.fakes import World, plan_of, records

LINES = RowFormat(Encoder.simple_string_encoder())
SCHEMA = pa.schema([("value", pa.string())])
MIB = 1 << 20


def batch(*values):
    """Records of one column."""
    return pa.RecordBatch.from_pydict({"value": list(values)}, schema=SCHEMA)


def start(form=LINES, files=None, schema=SCHEMA):
    """A writer of a new file ``x``."""
    return form.start(MemoryStore(files or MemoryFiles()).create("x", target=None), schema, SizeHint())


def allow(size=None, rows=None):
    """A limit."""
    return Allowance(bytes=size, rows=rows)


def test_size_counts_what_waits():
    """A writer knows its size before a byte has reached the output."""
    writer = start()
    assert writer.write(batch("abc", "d"), UNLIMITED) == 2
    assert (writer.size, writer.rows, writer.buffered, writer.is_open) == (6, 2, 6, False)
    writer.flush()
    assert (writer.size, writer.buffered, writer.is_open) == (6, 0, True)


@pytest.mark.parametrize(
    ("allowance", "taken"),
    [
        (allow(0), 1),
        (allow(1), 1),
        (allow(2), 2),
        (allow(3), 2),
        (allow(4), 3),
        (allow(99), 4),
        (allow(99, 2), 2),
    ],
)
def test_the_crossing_record_is_taken_and_no_more(allowance, taken):
    """Of records of two bytes, as many are taken as it needs to exceed the allowance, at least one."""
    assert start().write(batch("a", "b", "c", "d"), allowance) == taken


def test_no_file_for_a_writer_that_was_never_flushed():
    """Small parts take a descriptor only when they are closed."""
    files = MemoryFiles()
    writer = start(files=files)
    writer.write(batch("a"), UNLIMITED)
    assert files.files == {}
    writer.close()
    assert files.files["x"].content == b"a\n"


def test_an_empty_part():
    """A part closed without data is an empty file, as Flink's."""
    files = MemoryFiles()
    staged = start(files=files).close()
    assert staged.size == 0
    assert files.files["x"].content == b""


def test_a_closed_file_takes_no_more():
    """Writing, closing and holding after the end are errors of this package."""
    writer = start()
    writer.close()
    with pytest.raises(InternalError, match="pending part file cannot write"):
        writer.write(batch("a"), UNLIMITED)
    for step in (writer.close, writer.hold):
        with pytest.raises(InternalError, match="pending part file cannot"):
            step()


def test_a_held_file_takes_no_more():
    """A segment is never appended to."""
    writer = start()
    writer.write(batch("a"), UNLIMITED)
    writer.hold()
    assert writer.state is State.HELD
    with pytest.raises(InternalError, match="held part file cannot write"):
        writer.write(batch("b"), UNLIMITED)


def test_a_header_counts():
    """The header is part of the size and of the file."""
    files = MemoryFiles()
    writer = start(RowFormat(Encoder.csv(header=True)), files)
    assert writer.size == 6
    writer.close()
    assert files.files["x"].content == b"value\n"


sizes = st.lists(st.integers(0, 40) | st.integers(0, 4000), min_size=1, max_size=60)


@settings(deadline=None)
@given(sizes, st.lists(st.integers(1, 20), min_size=1, max_size=8), st.integers(1, 3000))
def test_row_parts_overshoot_by_one_record_at_most(lengths, cuts, limit):
    """Every part but the last exceeds the limit, and would not without its last record."""
    world = World(plan=plan_of(policy=RollingPolicy.on_checkpoint_rolling_policy(part_size=limit)))
    writer = world.writer()
    values = ["x" * length for length in lengths]
    position = 0
    for number in range(len(values)):
        cut = cuts[number % len(cuts)]
        if position < len(values):
            writer.write(records(*values[position : position + cut]), world.context())
        position += cut
    parts = [world.files.files[file.staged.path].content for file in writer.prepare_commit(0)]
    assert b"".join(parts).decode().splitlines() == values
    for part in parts[:-1]:
        last = len(part.splitlines()[-1]) + 1
        assert len(part) > limit >= len(part) - last
    assert len(parts[-1]) - (len(parts[-1].splitlines()[-1]) + 1) <= limit


def columns_of(kind, rows):
    """Columns that do not compress at all, that compress well, or of both kinds."""
    rng = np.random.default_rng(1)
    noise = [pa.array(rng.integers(0, 1 << 62, rows)) for _ in range(6)]
    same = [pa.array(np.repeat(np.int64(7), rows)) for _ in range(6)]
    digits = rng.bytes(rows * 12).hex()
    text = pa.array([digits[start : start + 24] for start in range(0, rows * 24, 24)])
    return {"noise": noise, "same": same, "text": [text, *same]}[kind]


def parquet_parts(pieces, rows):
    """Sizes of the Parquet files of at most 2 MiB that batches of ``rows`` records make."""
    policy = RollingPolicy.on_checkpoint_rolling_policy(part_size=2 * MIB)
    world = World(plan=plan_of(BulkFormat(ParquetWriterFactory()), policy))
    writer = world.writer()
    for columns in pieces:
        names = [*map(str, range(len(columns))), "bucket"]
        whole = pa.RecordBatch.from_arrays([*columns, pa.array([""] * len(columns[0]))], names)
        for start_row in range(0, whole.num_rows, rows):
            writer.write(whole.slice(start_row, rows), world.context())
    files = writer.prepare_commit(0)
    read = [pq.ParquetFile(pa.BufferReader(data)).metadata.num_rows for data in world.contents().values()]
    assert sum(read) == sum(len(columns[0]) for columns in pieces)
    return [file.size for file in files]


@pytest.mark.parametrize("kind", ["noise", "same", "text"])
@pytest.mark.parametrize("rows", [700, 10_000])
def test_bulk_parts_overshoot_by_a_mebibyte_at_most(kind, rows):
    """Parquet parts of 2 MiB end between 2 and 3 MiB, whatever compresses how well."""
    sizes = parquet_parts([columns_of(kind, 200_000)], rows)
    assert all(2 * MIB < size <= 3 * MIB for size in sizes[:-1]), sizes
    assert sizes[-1] <= 3 * MIB
    assert (len(sizes) > 1) is (kind != "same")


def test_bulk_parts_when_compressibility_changes():
    """Records that suddenly stop to compress take a part beyond its limit by no more either."""
    noise = columns_of("noise", 100_000)
    same = columns_of("same", 400_000)
    sizes = parquet_parts([same, noise, same, noise], 5000)
    assert len(sizes) > 3
    assert all(2 * MIB < size <= 3 * MIB for size in sizes[:-1]), sizes


class Broken(Encoder):
    """An encoder of a user's that fails in a way of its choice."""

    def __init__(self, error):
        self.error = error

    def encode(self, batch):
        del batch
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (FormatError("no maps", kind="schema"), SchemaError, "FORMAT"),
        (StorageError("full", code="NO_SPACE"), StorageError, "NO_SPACE"),
    ],
)
def test_errors_of_formats_are_typed(error, kind, code):
    """A user's encoder that fails is named, with its cause; no value gets into our message."""
    with pytest.raises(kind) as raised:
        start(RowFormat(Broken(error))).write(batch("a"), UNLIMITED)
    assert raised.value.code == code
    assert "secret value" not in str(raised.value)
    assert raised.value is error or raised.value.__cause__ is error


@pytest.mark.parametrize(
    ("error", "code"),
    [(ZeroDivisionError("what it said"), "ENCODER"), (FormatError("no nulls", kind="value"), "FORMAT")],
)
def test_a_record_that_cannot_be_written_is_named_by_its_writer(error, code):
    """A user's encoder that fails is named, with its cause and what that says."""
    with pytest.raises(UnwritableRecord) as raised:
        start(RowFormat(Broken(error))).write(batch("a"), UNLIMITED)
    assert raised.value.error.code == code
    assert str(error) in raised.value.error.message
    assert raised.value.error.__cause__ is error


class Picky(Encoder):
    """Writes single letters, and counts the records it was asked for."""

    def __init__(self):
        self.asked = 0

    def encode(self, batch):
        values = batch.column(0).to_pylist()
        self.asked += len(values)
        if "bad" in values:
            raise FormatError("bad", kind="value")
        return "".join(values).encode()


@pytest.mark.parametrize("allowance", [UNLIMITED, Allowance(bytes=100_000, rows=None)])
def test_what_stands_before_a_bad_record_is_written(allowance):
    """A call takes what it can; only when the first record is bad nothing is taken."""
    writer = start(RowFormat(Picky()))
    records = batch(*"abcdefg", "bad", *"hij")
    done = 0
    while done < 7:
        done += writer.write(records.slice(done), allowance)
    assert writer.rows == 7
    with pytest.raises(UnwritableRecord):
        writer.write(records.slice(7), allowance)
    assert writer.rows == 7
    while done < 10:
        done += writer.write(records.slice(done + 1), allowance)
    assert writer.rows == 10


def test_many_bad_records_do_not_make_the_others_slow():
    """Whoever has met a bad record goes on in small steps, which grow again."""
    encoder = Picky()
    writer = start(RowFormat(encoder))
    records, done = batch(*(["x"] * 9 + ["bad"]) * 1000), 0
    while done < records.num_rows:
        try:
            done += writer.write(records.slice(done), UNLIMITED)
        except UnwritableRecord:
            done += 1
    assert writer.rows == 9000
    assert encoder.asked < 10 * records.num_rows


def test_a_discarded_bulk_file_stays_silent():
    """A file given up after its first row group leaves nothing, and no error when it is collected."""
    files = MemoryFiles()
    output = MemoryStore(files).create("x", target=None)
    writer = BulkFormat(ParquetWriterFactory()).start(output, SCHEMA, SizeHint())
    writer.write(batch("a"), UNLIMITED)
    writer.flush()
    output.discard()
    del writer
    assert files.files == {}
