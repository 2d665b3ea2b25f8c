"""Which schema may follow which."""

from __future__ import annotations

import pyarrow as pa
import pytest

from formats import AvroWriterFactory, Encoder, FormatError, ParquetWriterFactory
from formats.schemas.evolution import check_continues, check_readable_as

GROWS = [
    (pa.int8(), pa.int64()),
    (pa.uint8(), pa.int16()),
    (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.int32(), pa.decimal128(12, 2)),
    (pa.decimal128(5, 2), pa.decimal128(7, 4)),
    (pa.date32(), pa.timestamp("us")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")),
    (pa.timestamp("s"), pa.timestamp("us")),
    (pa.timestamp("ns", "UTC"), pa.timestamp("ns", "Europe/Berlin")),
    (pa.time32("ms"), pa.time64("ns")),
    (pa.duration("s"), pa.duration("ms")),
    (pa.null(), pa.string()),
    (pa.string(), pa.large_string()),
    (pa.binary(), pa.large_binary()),
    (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.string()), ("a", pa.int64())])),
    (pa.list_(pa.float32()), pa.large_list(pa.float64())),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int16())),
]
CHANGES = [
    (pa.int64(), pa.int32(), "c"),
    (pa.int64(), pa.float64(), "c"),
    (pa.int16(), pa.uint32(), "c"),
    (pa.uint16(), pa.int16(), "c"),
    (pa.int32(), pa.string(), "c"),
    (pa.string(), pa.binary(), "c"),
    (pa.int32(), pa.decimal128(10, 2), "c"),
    (pa.int8(), pa.decimal128(4, 2), "c"),
    (pa.int16(), pa.decimal128(6, 2), "c"),
    (pa.int32(), pa.decimal128(11, 2), "c"),
    (pa.int64(), pa.decimal128(21, 2), "c"),
    (pa.decimal128(5, 2), pa.decimal128(5, 3), "c"),
    (pa.decimal128(5, 2), pa.decimal128(7, 1), "c"),
    (pa.float64(), pa.decimal128(38, 2), "c"),
    (pa.bool_(), pa.int8(), "c"),
    (pa.bool_(), pa.float64(), "c"),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), "c"),
    (pa.timestamp("us"), pa.date32(), "c"),
    (pa.date32(), pa.timestamp("us", "UTC"), "c"),
    (pa.timestamp("us"), pa.timestamp("s"), "c"),
    (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), "c"),
    (pa.date32(), pa.timestamp("ns"), "c"),
    (pa.time64("us"), pa.time32("ms"), "c"),
    (pa.duration("us"), pa.duration("ms"), "c"),
    (pa.duration("s"), pa.duration("ns"), "c"),
    (pa.struct([("a", pa.timestamp("us"))]), pa.struct([("a", pa.timestamp("ms"))]), "c.a"),
    (pa.list_(pa.int8()), pa.map_(pa.int8(), pa.int8()), "c"),
    (pa.list_(pa.int16()), pa.list_(pa.int8()), "c[]"),
    (pa.map_(pa.string(), pa.int16()), pa.map_(pa.string(), pa.int8()), "c.value"),
    (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int32())]), "c.a"),
    (
        pa.struct([("a", pa.int64())]),
        pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.int8(), nullable=False)]),
        "c.b",
    ),
    (pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.struct([("a", pa.int8())]), "c.b"),
]


def one(kind):
    """A schema of one column."""
    return pa.schema([("c", kind)])


@pytest.mark.parametrize(("old", "new"), GROWS, ids=str)
def test_types_may_grow(old, new):
    """Every value of the old type is a value of the new one; Arrow can cast it."""
    check_continues(one(old), one(new))
    pa.nulls(1, old).cast(new)


@pytest.mark.parametrize(("old", "new", "path"), CHANGES, ids=str)
def test_other_changes_name_the_column(old, new, path):
    """The innermost one, with its path."""
    with pytest.raises(FormatError) as error:
        check_continues(one(old), one(new))
    assert f"column {path!r} " in error.value.message
    assert error.value.kind == "schema"


def test_columns_may_be_added_if_they_may_be_null():
    """In any place: readers go by name."""
    check_continues(one(pa.int8()), pa.schema([("new", pa.string()), ("c", pa.int8())]))
    with pytest.raises(FormatError, match="column 'new' is new"):
        check_continues(one(pa.int8()), one(pa.int8()).append(pa.field("new", pa.int8(), nullable=False)))


def test_columns_may_not_go():
    """A reader of the new files would miss what the old ones have."""
    with pytest.raises(FormatError, match="column 'c' is gone"):
        check_continues(one(pa.int8()), pa.schema([("other", pa.int8())]))


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (pa.int64(), pa.int8()),
        (pa.timestamp("us", "UTC"), pa.timestamp("s", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ns")),
        (pa.date32(), pa.timestamp("ns")),
        (pa.time64("ns"), pa.time32("s")),
        (pa.duration("us"), pa.duration("s")),
    ],
    ids=str,
)
def test_a_reader_may_ask_for_a_narrower_type(file, wanted):
    """It looks at every value; files that lie side by side may not."""
    check_readable_as(one(file), one(wanted))
    with pytest.raises(FormatError):
        check_continues(one(file), one(wanted))


@pytest.mark.timeout(60)  # in the square of the number of columns it was a minute and more
def test_wide_tables_take_no_longer_per_column():
    """Columns are looked up by name, nested ones too."""
    wide = pa.schema([(f"c{place}", pa.int8()) for place in range(20_000)])
    for schema in (wide, one(pa.struct(list(wide)))):
        check_continues(schema, schema)
        check_readable_as(schema, schema)


AVRO_GROWS = [
    (pa.int8(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.float32(), pa.float64()),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")),
    (pa.timestamp("s"), pa.timestamp("us")),  # both are microseconds in the file
    (pa.null(), pa.null()),
    (pa.decimal128(5, 2), pa.decimal128(5, 2)),
    (pa.list_(pa.int8()), pa.list_(pa.int32())),
]
AVRO_CHANGES = [
    (pa.date32(), pa.timestamp("us")),
    (pa.decimal128(5, 2), pa.decimal128(7, 4)),
    (pa.decimal128(5, 2), pa.decimal128(7, 2)),
    (pa.int32(), pa.decimal128(12, 2)),
    (pa.int64(), pa.decimal128(20, 0)),
]
AVRO_UNREAD = [
    (pa.null(), pa.string()),
    (pa.null(), pa.int64()),
    (pa.int8(), pa.float32()),
    (pa.int16(), pa.float32()),
    (pa.uint32(), pa.float64()),  # a long in the file
]


@pytest.mark.parametrize("code", [AvroWriterFactory(), Encoder.avro()], ids=["bulk", "row"])
@pytest.mark.parametrize(("old", "new"), AVRO_GROWS, ids=str)
def test_avro_takes_what_its_readers_resolve(code, old, new):
    """By its specification, as far as Spark keeps it."""
    code.check_continues(one(old), one(new))


@pytest.mark.parametrize("code", [AvroWriterFactory(), Encoder.avro()], ids=["bulk", "row"])
@pytest.mark.parametrize(("old", "new"), AVRO_CHANGES, ids=str)
def test_avro_refuses_what_its_readers_take_for_something_else(code, old, new):
    """A day would be so many microseconds, 1.25 be 0.0125, and nobody would notice."""
    check_continues(one(old), one(new))
    for wrap, path in ((lambda kind: kind, "c"), (lambda kind: pa.list_(pa.struct([("x", kind)])), "c[].x")):
        with pytest.raises(FormatError) as error:
            code.check_continues(one(wrap(old)), one(wrap(new)))
        assert f"column {path!r} was " in error.value.message


@pytest.mark.parametrize("code", [AvroWriterFactory(), Encoder.avro()], ids=["bulk", "row"])
@pytest.mark.parametrize(("old", "new"), AVRO_UNREAD, ids=str)
def test_avro_refuses_what_spark_does_not_resolve(code, old, new):
    """Its reader fails over the old files; ours reads them, as every value would fit."""
    check_readable_as(one(old), one(new))
    for wrap, path in ((lambda kind: kind, "c"), (pa.list_, "c[]")):
        with pytest.raises(FormatError) as error:
            code.check_continues(one(wrap(old)), one(wrap(new)))
        assert f"column {path!r} was " in error.value.message


@pytest.mark.parametrize("options", [{"date_format": "dd.MM.yyyy"}, {"timestamp_format": "dd.MM.yyyy HH:mm"}])
def test_csv_refuses_days_that_become_times_where_they_have_patterns(options):
    """Spark's reader goes by one pattern for all files, and makes null of the days without an error."""
    old = pa.schema([("id", pa.int64()), ("c", pa.date32())])
    new = pa.schema([("id", pa.int64()), ("c", pa.timestamp("us"))])
    with pytest.raises(FormatError, match="column 'c' was a date") as error:
        Encoder.csv(**options).check_continues(old, new)
    assert error.value.kind == "schema"
    Encoder.csv().check_continues(old, new)
    Encoder.csv(**options).check_continues(old, old.append(pa.field("at", pa.timestamp("us"))))


def test_avro_of_ones_own_schema_is_the_same_in_all_files():
    """Whatever the columns were."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "double"}]}
    AvroWriterFactory(schema=schema).check_continues(one(pa.int32()), one(pa.float64()))
    with pytest.raises(FormatError, match="column 'c' is gone"):
        AvroWriterFactory(schema=schema).check_continues(one(pa.int32()), pa.schema([("d", pa.int32())]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int8(), pa.decimal128(12, 2)),
        (pa.int16(), pa.decimal128(10, 0)),
        (pa.int64(), pa.decimal128(22, 2)),
        (pa.int16(), pa.float64()),
        (pa.null(), pa.int64()),
        (pa.null(), pa.float64()),
        (pa.null(), pa.date32()),
        (pa.null(), pa.null()),
        (pa.date32(), pa.timestamp("us")),
        (pa.decimal128(5, 2), pa.decimal128(7, 4)),
    ],
    ids=str,
)
def test_parquet_takes_what_spark_reads(old, new):
    """From a file of the old type with the new one for its schema."""
    ParquetWriterFactory().check_continues(one(old), one(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int8(), pa.decimal128(5, 2)),
        (pa.int16(), pa.decimal128(11, 2)),
        (pa.int8(), pa.float32()),
        (pa.int16(), pa.float32()),
        (pa.null(), pa.string()),
        (pa.null(), pa.bool_()),
        (pa.null(), pa.decimal128(12, 2)),
    ],
    ids=str,
)
def test_parquet_refuses_what_spark_does_not_read(old, new):
    """Although every value would fit."""
    check_continues(one(old), one(new))
    with pytest.raises(FormatError, match="column 'c' was "):
        ParquetWriterFactory().check_continues(one(old), one(new))
