"""What every format that reads promises: the records that were written, in bounded memory, or an error."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    BulkWriterFactory,
    FormatError,
    ParquetWriterFactory,
    RowEncoder,
    reading,
)
from formats.per_row import PerRowEncoder


def written(factory, *batches):
    """A file of some batches, to be read."""
    output = io.BytesIO()
    writer = factory.create(output, batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return io.BytesIO(output.getvalue())


def numbers(count):
    """Two columns."""
    return pa.record_batch(
        {"n": pa.array(range(count), pa.int32()), "t": pa.array([str(i) for i in range(count)], pa.string())}
    )


def test_what_was_written_is_read(factory, rows):
    """Every value and every name, in order; a reader without a wish has the file's types."""
    reader = factory.open_reader(written(factory, rows.slice(0, 4), rows.slice(4)))
    assert reader.schema.names == rows.schema.names
    assert str(reader.read_all().cast(rows.schema).to_pylist()) == str(rows.to_pylist())


def test_what_was_written_is_read_as_it_was_sent(factory, rows):
    """Asked for the schema of the records, a reader gives that, layouts and zones included."""
    reader = factory.open_reader(written(factory, rows), schema=rows.schema)
    found = reader.read_all()
    assert found.schema == rows.schema
    assert str(found.to_pylist()) == str(rows.to_pylist())


def test_columns_are_chosen_added_and_widened(factory):
    """A file of an older schema is read as the newer one."""
    wanted = pa.schema([("new", pa.string()), ("n", pa.int64())])
    found = factory.open_reader(written(factory, numbers(3)), schema=wanted).read_all()
    assert found.to_pylist() == [{"new": None, "n": number} for number in range(3)]
    assert found.schema == wanted


def test_narrower_whole_numbers_are_looked_at_one_by_one(factory):
    """They are read if all fit; else the column is named."""
    wanted = pa.schema([("n", pa.int8())])
    assert factory.open_reader(written(factory, numbers(3)), schema=wanted).read_all().num_rows == 3
    with pytest.raises(FormatError, match="column 'n'") as error:
        factory.open_reader(written(factory, numbers(200)), schema=wanted).read_all()
    assert error.value.kind == "value"


def test_a_column_of_another_kind_is_refused_by_name(factory):
    """Nothing is parsed or cut behind the reader's back."""
    with pytest.raises(FormatError, match="column 'n'"):
        factory.open_reader(written(factory, numbers(3)), schema=pa.schema([("n", pa.string())]))


def test_a_file_of_no_records_is_read(factory):
    """A schema and not a single batch with rows."""
    reader = factory.open_reader(written(factory, numbers(0)))
    assert reader.read_all().num_rows == 0


def test_the_file_stays_with_its_owner(factory):
    """A reader that is dropped half-way closes nothing and leaves no error behind."""
    file = written(factory, numbers(10))
    reader = factory.open_reader(file)
    reader.read_next_batch()
    del reader
    assert not file.closed


def test_batches_are_small(factory, monkeypatch):
    """A large file comes in pieces, whatever its row groups or blocks."""
    file = written(factory, numbers(10_000))
    monkeypatch.setattr(reading, "BATCH_ROWS", 1_000)
    batches = list(factory.open_reader(file))
    assert max(batch.num_rows for batch in batches) <= 1_000
    assert sum(batch.num_rows for batch in batches) == 10_000


@pytest.mark.parametrize("keep", [0, 3, 20, -1, -20], ids=lambda keep: f"keep{keep}")
def test_a_file_that_was_cut_is_an_error(factory, keep):
    """Never fewer records than there were, silently."""
    data = written(factory, numbers(500)).getvalue()
    with pytest.raises(FormatError) as error:
        list(factory.open_reader(io.BytesIO(data[:keep])))
    assert error.value.kind == "value"


class Nothing(RowEncoder):
    def encode(self, row):
        del row
        return b""


class Silent(BulkWriterFactory):
    def create(self, output, schema):
        raise NotImplementedError


@pytest.mark.parametrize("format_", [PerRowEncoder(Nothing()), Silent()])
def test_a_format_without_a_reader_says_so(format_):
    """A user's own format need not read; who asks learns it at once."""
    with pytest.raises(FormatError, match="cannot read") as error:
        format_.open_reader(io.BytesIO())
    assert error.value.kind == "option"


@pytest.mark.parametrize("form", [ParquetWriterFactory(), ArrowWriterFactory(), AvroWriterFactory()])
def test_lists_of_void_are_written_and_read(form):
    """``ARRAY<VOID>`` beside a column that is never null, as ``spark.range`` makes it."""
    inner = pa.struct([pa.field("v", pa.list_(pa.null())), pa.field("n", pa.int32(), nullable=False)])
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("a", pa.list_(pa.null())),
            pa.field("s", pa.list_(inner)),
        ]
    )
    structs = [[{"v": [None, None], "n": 1}] * 2, [], [{"v": [None], "n": 2}]]
    batch = pa.record_batch([[1, 2, 3], [[None] * 3, [], [None]], structs], schema=schema)
    assert form.open_reader(written(form, batch)).read_all().to_pylist() == batch.to_pylist()


def test_a_batch_of_long_texts_that_repeat_is_bounded():
    """A few bytes of Parquet may be hundreds of megabytes of text; every one of the row groups is read."""
    texts = pa.record_batch({"t": pa.array([0] * 6_000, pa.int32())}).column(0)
    column = pa.DictionaryArray.from_arrays(texts, ["x" * 20_000])
    factory = ParquetWriterFactory()
    file = written(factory, *[pa.record_batch({"t": column})] * 2)
    assert len(file.getvalue()) < 10_000
    sizes = [(batch.nbytes, batch.num_rows) for batch in factory.open_reader(file)]
    assert max(size for size, _ in sizes) <= 2 * reading.BATCH_BYTES
    assert sum(rows for _, rows in sizes) == 12_000
    assert len(sizes) < 40


def test_a_parquet_reader_is_soon_at_full_speed():
    """Only the first batch is small, and no later one, where records are."""
    factory = ParquetWriterFactory(row_group_rows=50_000)
    sizes = [batch.num_rows for batch in factory.open_reader(written(factory, numbers(100_100)))]
    assert sizes == [256, 49_744, 50_000, 100]


def test_a_batch_of_records_that_take_no_bytes_is_bounded():
    """In memory each of their fields takes some."""
    factory = AvroWriterFactory()
    file = written(factory, pa.record_batch({f"c{place}": pa.nulls(10_000) for place in range(100)}))
    sizes = [batch.num_rows for batch in factory.open_reader(file)]
    assert max(sizes) <= 5_000
    assert sum(sizes) == 10_000


def test_a_null_is_not_read_as_never_null():
    """Who asks for such a column gets no value that it cannot have; the column is named."""
    file = io.BytesIO()
    batch = pa.record_batch({"a": pa.array([1, None])})
    writer = ParquetWriterFactory().create(file, batch.schema)
    writer.write(batch)
    writer.finish()
    wanted = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(FormatError, match="column 'a' holds nulls") as error:
        ParquetWriterFactory().open_reader(file, schema=wanted).read_all()
    assert error.value.kind == "value"
