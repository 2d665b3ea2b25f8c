"""Parquet files and what a waiting writer costs."""

from __future__ import annotations

import base64
import io
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from formats import FormatError, ParquetEncryption, ParquetLayout, ParquetWriterFactory


def written(batches, schema=None, **options):
    """The file that a writer makes of some batches."""
    output = io.BytesIO()
    writer = ParquetWriterFactory(**options).create(output, schema or batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return pq.ParquetFile(io.BytesIO(output.getvalue()))


def numbers(count, start=0):
    """A column of consecutive numbers."""
    return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})


def test_every_value_comes_back(all_rows):
    """All types, with nulls, in slices of all sizes."""
    # Neither comes back as it is written: views as strings, dictionaries as dictionaries of 32-bit keys.
    batch = all_rows.drop_columns(["view"])
    file = written([batch.slice(0, 1), batch.slice(1, 4), batch.slice(5)])
    assert str(file.read().to_pylist()) == str(batch.to_pylist())


def test_no_record_is_a_file_without_rows():
    """A part without records is a valid file all the same."""
    file = written([], pa.schema([("a", pa.int32())]))
    assert file.metadata.num_rows == 0
    assert file.schema_arrow.names == ["a"]


def test_row_groups_have_at_most_the_rows_of_the_limit():
    """A group is filled to the last row, across and within batches."""
    file = written([numbers(5), numbers(5, 5), numbers(2, 10)], row_group_rows=4)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [4, 4, 4]
    assert file.read().column(0).to_pylist() == list(range(12))


def test_row_groups_end_at_the_size_of_the_limit():
    """Memory for waiting records is bounded by the size of a row group plus one batch."""
    output = io.BytesIO()
    writer = ParquetWriterFactory(row_group_size="8KiB").create(output, numbers(1).schema)
    for _ in range(50):
        writer.write(numbers(100))
        assert writer.buffered_bytes < 8192
    writer.finish()
    assert pq.ParquetFile(io.BytesIO(output.getvalue())).num_row_groups == -(-50 // 11)


def test_small_slices_do_not_keep_their_batches():
    """A writer of rare records holds memory in proportion to its records, not to their batches."""
    before = pa.total_allocated_bytes()
    writer = ParquetWriterFactory().create(io.BytesIO(), numbers(1).schema)
    for _ in range(320):
        writer.write(pa.record_batch({"n": pa.array(range(10_000), pa.int64())}).slice(5_000, 1))
    held = pa.total_allocated_bytes() - before
    assert held < 16 * 80_000 + 100_000
    assert writer.buffered_bytes < 320 * 8 * 2


def test_buffered_bytes_count_the_slice_and_not_its_batch():
    """What a slice takes is what its rows take."""
    writer = ParquetWriterFactory().create(io.BytesIO(), numbers(1).schema)
    batch = numbers(10_000)
    writer.write(batch.slice(10, 100))
    assert writer.buffered_bytes == 800 == batch.slice(10, 100).nbytes


def test_thousands_of_waiting_writers_stay_small():
    """A writer that waits with a record holds no file, no encoder and no footer."""
    before = pa.total_allocated_bytes()
    batch = numbers(2_000)
    writers = [ParquetWriterFactory().create(io.BytesIO(), batch.schema) for _ in range(2_000)]
    for row, writer in enumerate(writers):
        writer.write(batch.slice(row, 1))
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_nulls_in_fields_of_null_structs_are_written():
    """Spark declares the fields of a nullable struct not null and sends nulls in them."""
    field = pa.field("a", pa.int32(), nullable=False)
    structs = pa.StructArray.from_arrays(
        [pa.array([1, None], pa.int32())], fields=[field], mask=pa.array([False, True])
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), structs)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["x", "y"]), structs)
    batch = pa.record_batch({"s": structs, "l": lists, "m": maps})
    file = written([batch])
    assert file.read().to_pylist() == batch.to_pylist()
    assert file.schema_arrow.field("s").type.field(0).nullable


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "brotli", "none"])
def test_codecs_are_those_of_the_file(codec):
    """The option is what the footer says; other readers call lz4 and none by other names."""
    seen = written([numbers(9)], compression=codec).metadata.row_group(0).column(0).compression
    assert seen.lower() == {"none": "uncompressed"}.get(codec, codec)


@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli"])
def test_a_higher_level_makes_smaller_columns(codec):
    """The footer says how large each is; Spark's ``compressionLevel`` is the same option."""
    batch = pa.record_batch({"t": [str(number * 7919 % 10007) for number in range(5000)]})
    low, high = (
        written([batch], compression=codec, compression_level=level).metadata.row_group(0).column(0)
        for level in (1, 9)
    )
    assert high.total_compressed_size < low.total_compressed_size


def test_metadata_is_in_the_footer_beside_the_schemas():
    """Own keys are added, and win; keys of the schema are kept."""
    batch = numbers(1).replace_schema_metadata({"from": "schema", "who": "them"})
    found = written([batch], metadata={"who": "us"}).metadata.metadata
    assert found[b"who"] == b"us"
    assert found[b"from"] == b"schema"


def test_timestamps_are_microseconds_and_say_whether_they_are_instants():
    """With a zone they are adjusted to UTC, without they are local."""
    batch = pa.record_batch(
        {"at": pa.array([1], pa.timestamp("us", "Europe/Berlin")), "wall": pa.array([1], pa.timestamp("us"))}
    )
    schema = written([batch]).schema
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(schema.column(0).logical_type)
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in str(schema.column(1).logical_type)


class Kms(encryption.KmsClient):
    """A service that keeps its keys in a dict, and wraps by turning bytes round."""

    keys: ClassVar = {"foot": b"0123456789012345", "col": b"5432109876543210"}

    def __init__(self, connection):
        super().__init__()
        del connection

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(self.keys[master_key_identifier] + key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        key = self.keys[master_key_identifier]
        unwrapped = base64.b64decode(wrapped_key)
        assert unwrapped.startswith(key)
        return unwrapped.removeprefix(key)


OPTIONS = [
    {"compression": "zstd"},
    {"compression": "zstd", "compression_level": 5},
    {"row_group_rows": 10},
    {"row_group_size": "1MiB"},
    {"metadata": {"a": "b"}},
    {"layout": ParquetLayout(page_index=True)},
    {"encryption": ParquetEncryption(open_kms=Kms, footer_key="foot")},
    {"encryption": ParquetEncryption(open_kms=Kms, footer_key="col")},
    {"encryption": ParquetEncryption(open_kms=Kms, footer_key="foot", column_keys={"col": ["n"]})},
    {"encryption": ParquetEncryption(open_kms=Kms, footer_key="foot", column_keys={"col": ["at"]})},
]


def test_signatures_tell_options_apart():
    """Each option counts, and equal sizes are equal however they are written."""
    signatures = {ParquetWriterFactory(**options).signature() for options in [{}, *OPTIONS]}
    assert len(signatures) == len(OPTIONS) + 1
    assert ParquetWriterFactory(row_group_size=64 << 20).signature() == ParquetWriterFactory().signature()


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzo"},
        {"compression": None},
        {"compression": "snappy", "compression_level": 3},
        {"compression": "zstd", "compression_level": 99},
        {"compression": "zstd", "compression_level": True},
        {"row_group_rows": 0},
        {"row_group_rows": True},
        {"row_group_rows": "10"},
        {"row_group_size": "0"},
        {"row_group_size": 1.5},
        {"metadata": {"a": 1}},
    ],
    ids=str,
)
def test_options_that_cannot_work_are_refused(options):
    """Each fails at construction, naming the option."""
    with pytest.raises(FormatError, match=list(options)[-1].split("_")[0]) as error:
        ParquetWriterFactory(**options)
    assert error.value.kind == "option"


def test_a_variant_is_refused_with_the_way_out():
    """Its two opaque binaries would be of no use to a reader."""
    kind = pa.struct(
        [pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]
    )
    with pytest.raises(FormatError, match="to_json"):
        ParquetWriterFactory().check_schema(pa.schema([("v", kind)]))


def test_a_schema_without_columns_is_refused():
    """Parquet has no rows without columns."""
    with pytest.raises(FormatError, match="one column"):
        ParquetWriterFactory().check_schema(pa.schema([]))


def people(count):
    """A number, a name inside of a struct and an instant."""
    return pa.record_batch(
        {
            "n": pa.array(range(count), pa.int64()),
            "who": pa.array([{"name": f"secret {n}"} for n in range(count)]),
            "at": pa.array([datetime(2024, 7, 1, 12, tzinfo=UTC)] * count, pa.timestamp("us", "UTC")),
        }
    )


def test_a_layout_is_that_of_the_file():
    """Each knob shows in the footer."""
    layout = ParquetLayout(
        dictionary=["n"],
        statistics=["n"],
        page_size=1000,
        page_index=True,
        page_checksums=True,
        bloom_filters={"who.name": 0.01},
        sorted_by=["n", "who.name desc"],
    )
    group = written([people(5000)], layout=layout).metadata.row_group(0)
    number, name, _ = (group.column(index) for index in range(3))
    undivided = written([people(5000)], layout=replace(layout, page_size="1MiB")).metadata.row_group(0)
    assert name.total_uncompressed_size > undivided.column(1).total_uncompressed_size  # for its pages' heads
    assert number.has_dictionary_page
    assert not name.has_dictionary_page
    assert number.statistics.max == 4999
    assert not name.is_stats_set
    assert number.has_offset_index
    assert name.bloom_filter_offset is not None
    assert number.bloom_filter_offset is None
    assert group.sorting_columns == (pq.SortingColumn(0, False, True), pq.SortingColumn(1, True, False))  # noqa: FBT003


@pytest.mark.parametrize(
    ("options", "has"), [({}, True), ({"layout": ParquetLayout(dictionary="none", statistics="none")}, False)]
)
def test_dictionaries_and_statistics_are_of_all_columns_or_of_none(options, has):
    """Of all where nothing is said, as in files of pyarrow and Spark: readers skip what they do not want."""
    group = written([people(9)], **options).metadata.row_group(0)
    found = [group.column(index) for index in range(3)]
    assert [(column.has_dictionary_page, column.is_stats_set) for column in found] == [(has, has)] * 3


def test_a_bloom_filter_errs_as_rarely_as_was_asked_for():
    """One that errs less often takes more bits."""
    sizes = []
    for chance in (0.5, 0.001):
        output = io.BytesIO()
        factory = ParquetWriterFactory(layout=ParquetLayout(bloom_filters={"n": chance}))
        writer = factory.create(output, numbers(1).schema)
        writer.write(numbers(10_000))
        writer.finish()
        sizes.append(len(output.getvalue()))
    assert sizes[0] + 4_000 < sizes[1]


def test_the_order_of_records_is_told_in_words_of_any_case():
    """Ascending if nothing is said."""
    orders = (["n", "who.name desc"], ["n asc", "who.name  DESC"])
    first, second = (
        ParquetLayout(sorted_by=order).arguments(people(1).schema)["sorting_columns"] for order in orders
    )
    assert first == second


def test_dictionaries_of_several_batches_are_one():
    """Each text stands once in a row group, as a reader of few columns of many rows hopes for."""
    texts = [pa.array([letter * 100] * 1000).dictionary_encode() for letter in "ab"]
    file = written([pa.record_batch({"t": text}) for text in texts], compression="none")
    assert file.metadata.row_group(0).column(0).total_uncompressed_size < 1000
    assert file.read().column(0).to_pylist() == ["a" * 100] * 1000 + ["b" * 100] * 1000


def test_a_dictionary_that_outgrows_its_limit_is_given_up():
    """From 256 KiB on values stand for themselves: looking them up would cost more than it saves."""
    sizes = []
    for distinct in (32_000, 64_000):
        batch = pa.record_batch({"n": pa.array(list(range(distinct)) * 4, pa.int64())})
        column = written([batch], compression="none").metadata.row_group(0).column(0)
        sizes.append(column.total_uncompressed_size / batch.nbytes)
    assert sizes[0] < 0.6
    assert sizes[1] > 0.8


def test_int96_where_asked_for_is_read_as_instants():
    """For old Hive and Impala; our reader takes them for what Spark takes them, nested ones too."""
    nested = pa.record_batch({"s": pa.array([{"at": datetime(1900, 1, 1, tzinfo=UTC)}]), "x": ["y"]})
    far = pa.record_batch({"at": pa.array([datetime(2500, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
    for batch in (people(3), nested, far):
        file = io.BytesIO()
        factory = ParquetWriterFactory(layout=ParquetLayout(timestamps="int96"))
        writer = factory.create(file, batch.schema)
        writer.write(batch)
        writer.finish()
        kinds = [column.physical_type for column in pq.ParquetFile(file).schema]
        assert kinds.count("INT96") == 1
        plain = pa.BufferOutputStream()
        pq.write_table(pa.table(batch), plain, store_schema=False, use_deprecated_int96_timestamps=True)
        for source in (file, io.BytesIO(plain.getvalue())):
            assert factory.open_reader(source).read_all().to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("column_keys", [{}, {"col": ["who.name"]}], ids=["uniform", "columns"])
def test_encrypted_files_are_read_with_their_keys_only(column_keys):
    """Nothing of what was encrypted shows, nor any key in what we print."""
    how = ParquetEncryption(open_kms=Kms, footer_key="foot", column_keys=column_keys)
    factory = pickle.loads(pickle.dumps(ParquetWriterFactory(encryption=how, compression="none")))  # noqa: S301 - ours
    file = io.BytesIO()
    writer = factory.create(file, people(1).schema)
    writer.write(people(100))
    writer.finish()
    assert b"secret 7" not in file.getvalue()
    assert factory.open_reader(file).read_all().to_pylist() == people(100).to_pylist()
    with pytest.raises(FormatError, match="no readable Parquet"):
        ParquetWriterFactory().open_reader(file)
    shown = repr(factory) + factory.signature()
    assert not any(key.decode() in shown for key in Kms.keys.values())


@pytest.mark.parametrize("column_keys", [{}, {"col": ["who.name"]}, {"col": ["n"]}], ids=str)
def test_encrypted_files_are_split_between_row_groups(column_keys):
    """Whose keys open the footer; without them nobody learns where a row group begins."""
    how = ParquetEncryption(open_kms=Kms, footer_key="foot", column_keys=column_keys)
    factory = ParquetWriterFactory(encryption=how, row_group_rows=30)
    file = io.BytesIO()
    writer = factory.create(file, people(1).schema)
    writer.write(people(100))
    writer.finish()
    splits = factory.splits(file, target=1)
    tables = [factory.open_split(file, split).read_all() for split in splits]
    assert [table.num_rows for table in tables] == [30, 30, 30, 10]
    assert pa.concat_tables(tables).to_pylist() == people(100).to_pylist()
    with pytest.raises(FormatError, match="no readable Parquet"):
        ParquetWriterFactory().splits(file, target=1)


@pytest.mark.parametrize(
    "options",
    [
        {"dictionary": "some"},
        {"statistics": ""},
        {"page_size": 0},
        {"bloom_filters": {"a": 0}},
        {"bloom_filters": {"a": 1.0}},
        {"sorted_by": ["a up"]},
        {"sorted_by": [""]},
        {"timestamps": "nanos"},
    ],
    ids=str,
)
def test_bad_layouts_are_refused_at_once(options):
    """Where they are given, not in a task."""
    with pytest.raises(FormatError) as error:
        ParquetLayout(**options)
    assert error.value.kind == "option"


@pytest.mark.parametrize(
    "options",
    [{"dictionary": ["x"]}, {"statistics": ["x"]}, {"bloom_filters": {"who.x": 0.1}}, {"sorted_by": ["x"]}],
)
def test_a_layout_names_columns_that_are_there(options):
    """Else pyarrow would pass over a name that it does not know."""
    with pytest.raises(FormatError, match=r"column '(who\.)?x' is named in the layout"):
        ParquetWriterFactory(layout=ParquetLayout(**options)).check_schema(people(1).schema)


NESTED = {
    "tags": pa.array([["a", "b"], ["a"]] * 500, pa.list_(pa.string())),
    "lists": pa.array([[[1], [2, 3]], []] * 500, pa.large_list(pa.list_(pa.int64()))),
    "counts": pa.array([[("k", 1)], []] * 500, pa.map_(pa.string(), pa.int64())),
    "who": [{"name": "x", "homes": [{"zip": 7}]}, None] * 500,
    "n": range(1000),
}
PATHS = {
    "tags[]": "tags.list.element",
    "lists[][]": "lists.list.element.list.element",
    "counts.key": "counts.key_value.key",
    "counts.value": "counts.key_value.value",
    "who.name": "who.name",
    "who.homes[].zip": "who.homes.list.element.zip",
    "n": "n",
}


@pytest.mark.parametrize(("ours", "inside"), PATHS.items(), ids=str)
def test_what_is_inside_of_columns_can_be_named(ours, inside):
    """The file's own metadata shows that the column has what was asked for, and no other has."""
    batch = pa.record_batch(NESTED)
    layout = ParquetLayout(dictionary=[ours], statistics=[ours], bloom_filters={ours: 0.01})
    ParquetWriterFactory(layout=layout).check_schema(batch.schema)
    group = written([batch], layout=layout).metadata.row_group(0)
    found = [group.column(index) for index in range(group.num_columns)]
    assert {column.path_in_schema for column in found} == set(PATHS.values())
    for has in ("has_dictionary_page", "is_stats_set", "bloom_filter_offset"):
        assert [column.path_in_schema for column in found if getattr(column, has)] == [inside], has


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tags", r"'tags\[\]'"),
        ("lists[]", r"'lists\[\]\[\]'"),
        ("counts", "'counts.key'"),
        ("who", "'who.name'"),
        ("who.homes[]", r"'who.homes\[\].zip'"),
        ("tags.list.element", "is not there"),
    ],
)
def test_a_layout_names_columns_that_hold_values(name, said):
    """Others would be passed over in silence; the message says what to name in their place."""
    for options in (
        {"dictionary": [name]},
        {"statistics": [name]},
        {"bloom_filters": {name: 0.1}},
        {"sorted_by": [name]},
    ):
        with pytest.raises(FormatError, match=said) as error:
            ParquetWriterFactory(layout=ParquetLayout(**options)).check_schema(pa.record_batch(NESTED).schema)
        assert error.value.kind == "schema"


def test_records_are_not_sorted_by_what_is_in_lists():
    """Only by a value that each has once."""
    schema = pa.record_batch(NESTED).schema
    for name in ("tags[]", "counts.value", "who.homes[].zip"):
        with pytest.raises(FormatError, match="many values in a record"):
            ParquetWriterFactory(layout=ParquetLayout(sorted_by=[name])).check_schema(schema)
    ParquetWriterFactory(layout=ParquetLayout(sorted_by=["who.name", "n desc"])).check_schema(schema)


def test_a_file_from_before_a_column_is_written_without_it():
    """A merge writes old files anew, with the layout of today."""
    layout = ParquetLayout(dictionary=["n", "new"], statistics=["new"], bloom_filters={"new": 0.1})
    assert written([numbers(9)], layout=layout).metadata.row_group(0).column(0).has_dictionary_page


def test_a_pyarrow_that_is_too_old_says_so(monkeypatch):
    """Not as a TypeError about a keyword."""
    layout = ParquetLayout(page_index=True)
    monkeypatch.setattr("formats.parquet.writer.pq.ParquetWriter", lambda *_: None)
    with pytest.raises(FormatError, match="too old"):
        written([numbers(1)], layout=layout)


def test_encryption_needs_names():
    """Of the footer's key and of each column key."""
    for names in ({"footer_key": ""}, {"footer_key": "f", "column_keys": {"": ["a"]}}):
        with pytest.raises(FormatError, match="names of its keys"):
            ParquetEncryption(open_kms=Kms, **names)
