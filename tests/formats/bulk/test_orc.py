"""ORC files, as other readers see them."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from formats import FormatError, OrcBulkWriterFactory, OrcIndexes


def written(*batches, schema=None, **options):
    """The file that a writer makes of some batches."""
    output = io.BytesIO()
    writer = OrcBulkWriterFactory(**options).create(output, schema or batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return io.BytesIO(output.getvalue())


def numbers(count, start=0):
    """Consecutive numbers, inside of a struct and beside it."""
    values = pa.array(range(start, start + count), pa.int64())
    inner = pa.StructArray.from_arrays([values, values.cast(pa.string())], ["a", "b"])
    return pa.record_batch({"s": inner, "n": values, "t": values.cast(pa.string())})


@pytest.mark.parametrize("codec", ["zstd", "zlib", "snappy", "lz4", "none"])
def test_codecs_are_those_of_the_file(codec):
    """The option is what the postscript says, and pyorc reads the rows."""
    file = written(numbers(9), compression=codec)
    assert orc.ORCFile(file).compression.lower() == {"none": "uncompressed"}.get(codec, codec)
    assert [row[1] for row in pyorc.Reader(file)] == list(range(9))


@pytest.mark.parametrize("codec", ["zstd", "none"])
@pytest.mark.parametrize("batches", [[], [numbers(100_000)], [numbers(5), numbers(5, 5)]], ids=len)
def test_metadata_is_in_the_footer(codec, batches):
    """Every reader that knows user metadata finds ours, and the rows as before."""
    pairs = {"who": "us", "long": "x" * 200_000, "é": ""}
    file = written(*batches, schema=numbers(1).schema, compression=codec, metadata=pairs)
    reader = pyorc.Reader(file)
    assert {name: value.decode() for name, value in reader.user_metadata.items()} == pairs
    assert len(list(reader)) == sum(batch.num_rows for batch in batches)
    assert orc.ORCFile(file).read().num_rows == sum(batch.num_rows for batch in batches)


def test_the_footer_is_one_that_readers_in_java_take():
    """No chunk is larger than the file says, and its days are those of one calendar at all times."""
    data = written(numbers(9), metadata={"long": "x" * 200_000}).getvalue()
    file = orc.ORCFile(io.BytesIO(data))
    end = len(data) - 1 - file.file_postscript_length
    footer = data[end - file.file_footer_length : end]
    while footer:
        size = int.from_bytes(footer[:3], "little") >> 1
        assert size <= file.compression_size
        chunk, footer = footer[3 : 3 + size], footer[3 + size :]
    assert chunk.endswith(b"\x58\x02")  # field 11 of ORC's footer: the proleptic Gregorian calendar


def test_halves_are_written_as_floats():
    """ORC has no numbers of 16 bits with a point."""
    batch = pa.record_batch({"h": pa.array([np.float16(1.5), None], pa.float16())})
    OrcBulkWriterFactory().check_schema(batch.schema)
    reader = pyorc.Reader(written(batch))
    assert (str(reader.schema.fields["h"]), list(reader)) == ("float", [(1.5,), (None,)])


def test_stripes_end_at_the_size_of_the_limit():
    """Memory for waiting records is bounded by the size of a stripe and one batch."""
    output = io.BytesIO()
    writer = OrcBulkWriterFactory(stripe_size="64KiB", compression="none").create(output, numbers(1).schema)
    for start in range(0, 10_000, 100):
        writer.write(numbers(100, start))
        assert writer.buffered_bytes < 64 << 10
    writer.finish()
    file = orc.ORCFile(io.BytesIO(output.getvalue()))
    assert file.nstripes > 3
    assert file.read()["n"].to_pylist() == list(range(10_000))


def test_a_flush_ends_the_stripe():
    """What was flushed is in the output, and is a stripe of its own."""
    output = io.BytesIO()
    writer = OrcBulkWriterFactory(compression="none").create(output, numbers(1).schema)
    sizes = []
    for start in range(0, 3000, 1000):
        writer.write(numbers(1000, start))
        writer.flush()
        sizes.append(output.tell())
    assert sizes == sorted(set(sizes))
    writer.finish()
    assert orc.ORCFile(io.BytesIO(output.getvalue())).nstripes == 3


def test_compression_keeps_back_little():
    """A flush of compressed streams may wait for more, but not for much."""
    output = io.BytesIO()
    writer = OrcBulkWriterFactory().create(output, numbers(1).schema)
    for start in range(0, 100_000, 1000):
        writer.write(numbers(1000, start))
        writer.flush()
        assert writer.buffered_bytes == 0
    assert output.tell() > 100_000
    writer.finish()
    assert orc.ORCFile(io.BytesIO(output.getvalue())).nrows == 100_000


def test_bloom_filters_are_where_they_were_asked_for():
    """Columns are named as users know them; ORC counts what is inside of structs, too."""
    file = written(numbers(1000), indexes=OrcIndexes(bloom_filter_columns=["n"], bloom_filter_fpp=0.01))
    stripe = pyorc.Reader(file).read_stripe(0)
    assert [
        column for column in range(6) if stripe.bloom_filter_columns and column in stripe.bloom_filter_columns
    ] == [4]


def test_a_row_index_has_entries_at_its_stride():
    """As many records apart as was asked for."""
    assert orc.ORCFile(written(numbers(5000), indexes=OrcIndexes(row_stride=1000))).row_index_stride == 1000


@pytest.mark.parametrize(
    ("small", "large"),
    [
        ({"dictionary_threshold": 0.8}, {"dictionary_threshold": 0}),
        (
            {"indexes": OrcIndexes(bloom_filter_columns=["n"], bloom_filter_fpp=0.5)},
            {"indexes": OrcIndexes(bloom_filter_columns=["n"], bloom_filter_fpp=0.001)},
        ),
    ],
    ids=["dictionary", "Bloom filter"],
)
def test_options_show_in_the_size_of_a_file(small, large):
    """A dictionary holds repeated texts once, and a filter that errs rarely takes more bits."""
    batch = pa.record_batch({"t": [f"{number % 5}" * 40 for number in range(10_000)], "n": range(10_000)})
    sizes = [len(written(batch, compression="none", **options).getvalue()) for options in (small, large)]
    assert 2 * sizes[0] < sizes[1]


def test_times_are_instants_or_local():
    """As Arrow has them: with a zone or without."""
    batch = pa.record_batch(
        {"at": pa.array([1], pa.timestamp("us", "Europe/Berlin")), "wall": pa.array([1], pa.timestamp("us"))}
    )
    kinds = pyorc.Reader(written(batch)).schema.fields
    assert str(kinds["at"]) == "timestamp with local time zone"
    assert str(kinds["wall"]) == "timestamp"


def test_times_far_away_are_written_and_never_read_as_others():
    """Arrow reads nanoseconds: what they cannot hold is an error that says so."""
    far = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    file = written(pa.record_batch({"at": pa.array(far, pa.timestamp("us", "UTC"))}))
    assert [row[0] for row in pyorc.Reader(file)] == far
    with pytest.raises(FormatError) as error:
        OrcBulkWriterFactory().open_reader(file).read_all()
    assert error.value.kind == "value"


EARLY = pa.array([None, 1, -1], pa.timestamp("us", "UTC"))
NOT_WHOLE = {
    "c": EARLY,
    "c.a": pa.StructArray.from_arrays([EARLY], ["a"]),
    "c[]": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), EARLY),
    "c.key": pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), EARLY[1:], pa.array(["a", "b"])),
    "c.value": pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "c"]), EARLY),
}


@pytest.mark.parametrize("path", NOT_WHOLE)
def test_fractions_of_seconds_before_1970_are_refused(path):
    """Arrow would write them so that readers in Java fail; whole seconds are fine."""
    writer = OrcBulkWriterFactory().create(io.BytesIO(), pa.schema([("c", NOT_WHOLE[path].type)]))
    writer.write(pa.record_batch({"c": NOT_WHOLE[path]}))
    with pytest.raises(FormatError, match=re.escape(f"column {path!r} has a time before 1970")) as error:
        writer.finish()
    assert error.value.kind == "value"
    whole = pa.array([-1_000_000, 10**6 + 1], pa.timestamp("us"))
    assert [row[0].second for row in pyorc.Reader(written(pa.record_batch({"c": whole})))] == [59, 1]


NOT_WRITTEN = {path: column.slice(0, len(column) - 1) for path, column in NOT_WHOLE.items()}
NOT_WRITTEN["hidden"] = pa.StructArray.from_arrays([EARLY], ["a"], mask=pa.array([False, False, True]))


@pytest.mark.parametrize("column", NOT_WRITTEN.values(), ids=NOT_WRITTEN.keys())
def test_times_that_are_not_written_are_not_refused(column):
    """Those of other rows of what a slice is from, and those that a null struct hides."""
    batch = pa.record_batch({"c": column})
    found = OrcBulkWriterFactory().open_reader(written(batch), schema=batch.schema)
    assert found.read_all().to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_last_unit_before_1970_is_a_fraction_of_a_second(unit):
    """Whatever the unit; a second is none."""
    written(pa.record_batch({"c": pa.array([-1], pa.timestamp("s"))}))
    with pytest.raises(FormatError, match="before 1970"):
        written(pa.record_batch({"c": pa.array([-1], pa.timestamp(unit))}))


def test_slices_of_structs_are_the_records_that_were_meant():
    """Arrow's writer alone would begin at the first record of what the slice is from."""
    structs = pa.array([{"a": number} if number % 3 else None for number in range(10)])
    batch = pa.record_batch({"s": structs, "l": pa.array([[each] for each in structs.to_pylist()])}).slice(
        4, 3
    )
    assert [row[0] for row in pyorc.Reader(written(batch))] == [(4,), (5,), None]
    assert orc.ORCFile(written(batch)).read().to_pylist() == batch.to_pylist()


def test_thousands_of_waiting_writers_stay_small():
    """A writer that waits with a record holds no file and no encoder."""
    before = pa.total_allocated_bytes()
    batch = numbers(2_000)
    writers = [OrcBulkWriterFactory().create(io.BytesIO(), batch.schema) for _ in range(2_000)]
    for row, writer in enumerate(writers):
        writer.write(batch.slice(row, 1))
    assert pa.total_allocated_bytes() - before < 1_000_000


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzo"},
        {"stripe_size": "0"},
        {"dictionary_threshold": 1.5},
        {"metadata": {"n": 1}},
    ],
    ids=str,
)
def test_bad_options_are_refused_at_once(options):
    """Where they are given, not in a task."""
    with pytest.raises(FormatError) as error:
        OrcBulkWriterFactory(**options)
    assert error.value.kind == "option"


@pytest.mark.parametrize(
    "options", [{"row_stride": 999}, {"row_stride": -1}, {"bloom_filter_fpp": 1}], ids=str
)
def test_bad_indexes_are_refused_at_once(options):
    """ORC's own limits."""
    with pytest.raises(FormatError) as error:
        OrcIndexes(**options)
    assert error.value.kind == "option"


def test_a_bloom_filter_needs_its_column():
    """A name that is not there is found before anything is written."""
    factory = OrcBulkWriterFactory(indexes=OrcIndexes(bloom_filter_columns=["x"]))
    with pytest.raises(FormatError, match="column 'x'"):
        factory.check_schema(numbers(1).schema)


def test_signatures_tell_options_apart():
    """Each option counts."""
    options = [
        {},
        {"compression": "zlib"},
        {"stripe_size": "1MiB"},
        {"dictionary_threshold": 0},
        {"metadata": {"a": "b"}},
        {"indexes": OrcIndexes(row_stride=1000)},
    ]
    assert len({OrcBulkWriterFactory(**each).signature() for each in options}) == len(options)
