"""Avro files: what other readers find in them, and what ours refuses."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import sys
import zlib
from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal

import cramjam
import fastavro
import numpy as np
import pyarrow as pa
import pytest

from formats import AvroWriterFactory, Encoder, FormatError, LimitError, ReadLimits, bounded
from formats.avro import container as avro_container
from formats.avro.codecs import AvroCodec
from formats.avro.container import Header
from formats.read_limits import guard_of
from formats.text import ragged

GUARD = guard_of(io.BytesIO())

CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]
READABLE = ["null", "deflate", "snappy", "bzip2", "xz"]  # by fastavro without other packages


def file_of(*batches, **options):
    """A file of some batches."""
    output = io.BytesIO()
    writer = AvroWriterFactory(**options).create(output, batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return io.BytesIO(output.getvalue())


def numbers(count, start=0):
    """A column of consecutive numbers."""
    return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})


@pytest.mark.parametrize("codec", READABLE)
def test_fastavro_reads_every_codec(codec):
    """Other readers find the same records, whatever the codec."""
    reader = fastavro.reader(file_of(numbers(1000), numbers(50, 1000), compression=codec))
    assert [row["n"] for row in reader] == list(range(1050))
    assert reader.codec == codec


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_what_fastavro_and_we_write(codec):
    """Blocks of every codec are expanded."""
    if codec in READABLE:
        theirs = io.BytesIO()
        schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
        fastavro.writer(theirs, schema, [{"n": n} for n in range(1000)], codec=codec, sync_interval=100)
        assert AvroWriterFactory().open_reader(theirs).read_all()["n"].to_pylist() == list(range(1000))
    ours = file_of(numbers(1000), compression=codec)
    assert AvroWriterFactory().open_reader(ours).read_all()["n"].to_pylist() == list(range(1000))


@pytest.mark.parametrize(
    ("codec", "level", "compress"),
    [
        ("deflate", 1, lambda data: zlib.compress(data, 1, wbits=-zlib.MAX_WBITS)),
        ("deflate", None, lambda data: zlib.compress(data, 6, wbits=-zlib.MAX_WBITS)),
        ("zstandard", 19, lambda data: pa.Codec("zstd", compression_level=19).compress(data, asbytes=True)),
        ("bzip2", 1, lambda data: bz2.compress(data, 1)),
        ("xz", 0, lambda data: lzma.compress(data, preset=0)),
    ],
)
def test_a_level_is_that_of_the_codec(codec, level, compress):
    """Others than the default make other bytes; without one it is the codec's own."""
    data = " ".join(str(number * 7919 % 10007) for number in range(3000)).encode()
    assert bytes(AvroCodec(name=codec, level=level).compress(memoryview(data))) == compress(data)


def test_the_checksum_of_a_snappy_block_is_looked_at():
    """One of other bytes is damage: expanded alone it would be altered rows."""
    data = b"row" * 9
    block, checksum = bytes(cramjam.snappy.compress_raw(data)), zlib.crc32(data).to_bytes(4)
    assert AvroCodec().expand(block + checksum, guard=GUARD) == data
    with pytest.raises(FormatError, match="damaged"):
        AvroCodec().expand(block + zlib.crc32(b"sow" * 9).to_bytes(4), guard=GUARD)


def test_fastavro_sees_the_values(all_rows):
    """Its Python values are those of Arrow."""
    batch = all_rows.drop_columns(["time", "span", "map", "double"])
    found = list(fastavro.reader(file_of(batch)))
    assert str(found) == str(
        batch.set_column(
            batch.schema.get_field_index("at"), "at", batch["at"].cast(pa.timestamp("us", "UTC"))
        ).to_pylist()
    ).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


def test_parts_of_several_processes_are_one_file():
    """Segments that were encoded apart, joined byte by byte, are read by others as one file."""
    first = Encoder.avro("deflate").start_part()
    second = Encoder.avro("deflate").resume_part(first.carry_over())
    segments = [first.header(numbers(1).schema), first.encode(numbers(10)), second.encode(numbers(5, 10))]
    file = io.BytesIO(b"".join(bytes(segment) for segment in segments))
    assert [row["n"] for row in fastavro.reader(file)] == list(range(15))


def test_every_part_has_a_marker_of_its_own():
    """Nobody can know in advance which bytes would look like the end of a block."""
    encoder = Encoder.avro()
    assert encoder.start_part().carry_over() != encoder.start_part().carry_over()


def test_blocks_end_at_their_size():
    """Each block holds whole records and is as large as was asked for."""
    reader = fastavro.block_reader(file_of(numbers(1000), compression="null", block_size=100))
    counts = [block.num_records for block in reader]
    assert sum(counts) == 1000
    assert max(counts) <= 100 // 2 + 1


VOIDS = pa.list_(pa.null())


def test_metadata_is_in_the_header():
    """Own keys stand beside Avro's, whatever their values look like."""
    assert fastavro.reader(file_of(numbers(1), metadata={"who": "avro.us"})).metadata["who"] == "avro.us"


def test_values_without_a_type_are_written_inside_of_maps():
    """Spark calls them void; each is null, however many there are."""
    maps = pa.array(
        [[("x", [None])], [("a", [None, None]), ("b", [])], None, []], pa.map_(pa.string(), VOIDS)
    )
    batch = pa.record_batch({"m": maps})
    for rows in (batch, batch.slice(1)):
        read = list(fastavro.reader(file_of(rows)))
        assert [row["m"] for row in read] == [None if m is None else dict(m) for m in rows["m"].to_pylist()]


GIVEN = {
    "type": "record",
    "name": "event",
    "namespace": "org.example",
    "fields": [
        {"name": "color", "type": ["null", {"type": "enum", "name": "color", "symbols": ["RED", "BLUE"]}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "n", "type": ["long", "null"]},
        {
            "name": "price",
            "type": {
                "type": "fixed",
                "name": "d",
                "size": 9,
                "logicalType": "decimal",
                "precision": 20,
                "scale": 3,
            },
        },
        {"name": "key", "type": {"type": "fixed", "name": "k", "size": 2}},
        {"name": "more", "type": {"type": "array", "items": "double"}},
        {"name": "missing", "type": ["null", "string"], "default": None},
        {"name": "other", "type": ["null", "k"]},
    ],
}


def events():
    """Two records that fit ``GIVEN``, in another order and other types."""
    instant = datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)
    return pa.record_batch(
        {
            "n": pa.array([1, None], pa.int32()),
            "color": ["BLUE", None],
            "at": pa.array([instant, instant], pa.timestamp("us", "Europe/Berlin")),
            "price": pa.array([Decimal("-1.5"), Decimal(2)], pa.decimal128(5, 2)),
            "key": pa.array([b"ab", b"cd"], pa.binary(2)),
            "more": pa.array([[1.5], []], pa.list_(pa.float32())),
            "other": pa.array([None, b"xy"], pa.binary(2)),
        }
    )


@pytest.mark.parametrize("schema", [GIVEN, json.dumps(GIVEN)], ids=["dict", "text"])
def test_a_given_schema_is_the_file_s(schema):
    """Columns are matched by name, types widened, branches and fixed sizes kept."""
    file = file_of(events(), schema=schema)
    reader = fastavro.reader(file)
    assert reader.writer_schema["name"] == "org.example.event"
    instant = datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)
    assert list(reader) == [
        {"color": "BLUE", "at": instant, "n": 1, "price": Decimal("-1.500"), "key": b"ab", "more": [1.5],
         "missing": None, "other": None},
        {"color": None, "at": instant, "n": None, "price": Decimal("2.000"), "key": b"cd", "more": [],
         "missing": None, "other": b"xy"},
    ]  # fmt: skip
    batch = events().drop_columns(["more"])
    assert AvroWriterFactory().open_reader(file, schema=batch.schema).read_all() == pa.table(batch)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("at", pa.array([None, 1000], pa.timestamp("us", "UTC")), "'at' is null"),
        ("color", pa.array(["BLUE", "GREEN"]), "'color' holds a text"),
        ("more", pa.array([[1.0], [None]], pa.list_(pa.float32())), r"'more\[\]' is null"),
    ],
)
def test_values_that_a_given_schema_does_not_allow_name_the_column(column, values, said):
    """The epoch fails before a byte is written; no value is shown."""
    batch = events().set_column(events().schema.get_field_index(column), column, values)
    with pytest.raises(FormatError, match=said) as error:
        Encoder.avro(schema=GIVEN).start_part().encode(batch)
    assert error.value.kind == "value"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.field("extra", pa.int8()), "column 'extra' is not in the Avro schema"),
        (pa.field("n", pa.string()), "column 'n' was string"),
    ],
)
def test_columns_that_do_not_fit_a_given_schema_are_refused(column, said):
    """Before anything is written."""
    schema = pa.schema([field for field in events().schema if field.name != column.name]).append(column)
    with pytest.raises(FormatError, match=said):
        AvroWriterFactory(schema=GIVEN).check_schema(schema)


INNER = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": ["null", "int"]}]}
PAIR = pa.struct([("a", pa.int32()), ("b", pa.int32())])


@pytest.mark.parametrize(
    ("avro", "column", "path"),
    [
        (INNER, PAIR, "s.b"),
        (["null", INNER], PAIR, "s.b"),
        ({"type": "array", "items": ["null", INNER]}, pa.list_(PAIR), "s[].b"),
        ({"type": "map", "values": INNER}, pa.map_(pa.string(), PAIR), "s.value.b"),
        ({"type": "map", "values": {"type": "array", "items": INNER}},
         pa.map_(pa.string(), pa.list_(PAIR)), "s.value[].b"),
        ({"type": "record", "name": "outer", "fields": [{"name": "in", "type": ["null", INNER]}]},
         pa.struct([("in", PAIR)]), "s.in.b"),
    ],
)  # fmt: skip
def test_fields_inside_of_columns_that_a_given_schema_lacks_are_refused(avro, column, path):
    """They would be lost, and nobody would be told."""
    factory = AvroWriterFactory(
        schema={"type": "record", "name": "r", "fields": [{"name": "s", "type": avro}]}
    )
    with pytest.raises(FormatError) as error:
        factory.check_schema(pa.schema([("s", column)]))
    assert error.value.message.startswith(f"column {path!r} is not in the Avro schema")


def test_a_column_is_not_taken_for_a_field_of_another():
    """Although both have the same path."""
    given = {"type": "record", "name": "r", "fields": [{"name": "s", "type": INNER}]}
    with pytest.raises(FormatError, match=r"column 's\.a' is not in the Avro schema"):
        AvroWriterFactory(schema=given).check_schema(
            pa.schema([("s", pa.struct([("a", pa.int32())])), ("s.a", pa.int8())])
        )


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (pa.field("a b", pa.int8()), "a b"),
        (pa.field("s", pa.struct([("é", pa.int8())])), "s.é"),
        (pa.field("m", pa.map_(pa.int8(), pa.int8())), "m"),
        (pa.field("u", pa.uint64()), "u"),
        (pa.field("l", pa.list_(pa.struct([]))), "l[]"),
    ],
)
def test_what_avro_does_not_have_is_refused_with_its_path(field, path):
    """Names and types."""
    with pytest.raises(FormatError) as error:
        Encoder.avro().check_schema(pa.schema([field]))
    assert f"column {path!r} " in error.value.message


def test_a_record_without_columns_is_refused():
    """Nothing but a number would be left, and it is easily lost."""
    with pytest.raises(FormatError, match="at least one column"):
        AvroWriterFactory().check_schema(pa.schema([]))


def test_dates_before_1970_and_at_the_limits():
    """Negative numbers of days and microseconds, to the last bit."""
    batch = pa.record_batch(
        {
            "day": pa.array([date(1, 1, 1), date(9999, 12, 31)]),
            "at": pa.array([-(2**63), 2**63 - 1], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(10**38 - 1), Decimal(1 - 10**38)], pa.decimal128(38, 0)),
        }
    )
    assert AvroWriterFactory().open_reader(file_of(batch), schema=batch.schema).read_all() == pa.table(batch)


def test_records_that_32_bits_do_not_count_are_an_error():
    """Whoever gets it encodes fewer at a time; offsets that wrap round would be other records."""
    with pytest.raises(pa.ArrowCapacityError):
        ragged.binary(np.array([0, 2**31]), pa.py_buffer(b""))


def test_nanoseconds_are_never_cut():
    """A value that microseconds cannot hold is an error that names the column."""
    batch = pa.record_batch({"at": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(FormatError, match="column 'at'") as error:
        Encoder.avro().start_part().encode(batch)
    assert error.value.kind == "value"


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzo"},
        {"compression": "snappy", "compression_level": 1},
        {"compression": "deflate", "compression_level": 10},
        {"compression_level": True, "compression": "xz"},
        {"block_size": 0},
        {"metadata": {"avro.codec": "null"}},
        {"metadata": {"n": 1}},
        {"metadata": {1: "n"}},
        {"schema": "{"},
        {"schema": {"type": "recor"}},
        {"schema": "5"},
        {"schema": {"type": "record", "name": "r", "fields": [{"name": "a", "type": "nothing"}]}},
    ],
    ids=str,
)
def test_bad_options_are_refused_at_once(options):
    """Where they are given, not in a task."""
    with pytest.raises(FormatError) as error:
        AvroWriterFactory(**options)
    assert error.value.kind == "option"


def test_without_fastavro_nothing_is_read(monkeypatch):
    """Writing needs nothing; reading, and a schema of your own, say what to install."""
    monkeypatch.setitem(sys.modules, "fastavro.schema", None)
    for call in (
        lambda: AvroWriterFactory().open_reader(io.BytesIO()),
        lambda: AvroWriterFactory(schema=GIVEN),
    ):
        with pytest.raises(FormatError, match=r"filesink\[avro\]") as error:
            call()
        assert error.value.kind == "option"
    assert file_of(numbers(1)).getvalue()


def bomb(
    count,
    data,
    codec="deflate",
    schema='{"type":"record","name":"r","fields":[{"name":"s","type":"string"}]}',
):
    """A file of one block."""
    header = Header(metadata={"avro.schema": schema.encode(), "avro.codec": codec.encode()}, marker=b"m" * 16)
    return io.BytesIO(b"".join([header.to_bytes(), *avro_container.block(count, data, marker=b"m" * 16)]))


def test_a_block_is_as_large_as_a_record_may_be():
    """It is in memory as a whole."""
    data = AvroCodec(name="deflate").compress(memoryview(b"\x80\x01" + b"x" * 64))
    for most, fits in ((66, True), (65, False)):
        file = bounded(bomb(1, data), limits=ReadLimits(record=most))
        with nullcontext() if fits else pytest.raises(LimitError, match="a block is larger than 65 bytes"):
            found = AvroWriterFactory().open_reader(file).read_all()
            assert found.to_pylist() == [{"s": "x" * 64}]


@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_a_block_that_expands_beyond_all_limits_is_refused(codec):
    """In bounded memory, as an error of ours."""
    file = bomb(2, AvroCodec(name=codec).compress(memoryview(bytes(300 << 20))), codec)
    with pytest.raises(FormatError):
        list(AvroWriterFactory().open_reader(file))


@pytest.mark.parametrize(
    "file",
    [
        bomb(2, b"\xff\xff\xff\xff\x07" + bytes(9), "snappy"),
        bomb(2**40, b"", "null", '{"type":"record","name":"r","fields":[]}'),
        bomb(2, b"\x0aab", "null"),
        bomb(1, b"\x02\xff", "null"),
        bomb(1, b"xx", "lzo"),
        bomb(1, b"xx", "deflate"),
        bomb(1, b"xx" * 9, "snappy"),
        bomb(1, zlib.compress(b"\x02a"), "deflate"),
        bomb(1, b"", "null", "{"),
        bomb(1, b"", "null", "[" * 200_000),
        bomb(1, b"", "null", "5"),
        bomb(1, b"", "null", '{"type":"record","name":"r","fields":[{"name":"x","type":"y"}]}'),
        io.BytesIO(b"Obj\x01" + b"\xff" * 9 + b"\x01"),
        io.BytesIO(b"Obj\x01\x02\xfe\xff\xff\xff\x0f"),
    ],
)
def test_bombs_and_nonsense_are_refused(file):
    """In bounded memory, as an error of ours."""
    with pytest.raises(FormatError):
        list(AvroWriterFactory().open_reader(file))


@pytest.mark.parametrize(
    "schema",
    [
        '"int"',
        '{"type":"record","name":"r","fields":[{"name":"c","type":["int","string"]}]}',
        '{"type":"record","name":"r","fields":[{"name":"c","type":["null","r"]}]}',
    ],
)
def test_files_without_a_form_in_arrow_are_refused(schema):
    """Unions of two types, records inside themselves, and no records."""
    with pytest.raises(FormatError) as error:
        AvroWriterFactory().open_reader(bomb(0, b"", "null", schema))
    assert error.value.kind == "schema"


def record(*kinds):
    """A record of columns of these types."""
    fields = [{"name": f"c{place}", "type": kind} for place, kind in enumerate(kinds)]
    return {"type": "record", "name": "top", "fields": fields}


def doubling(levels):
    """Each record names the one before it twice: 33 of them stand for eight billion columns."""
    kind = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, levels):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"r{level - 1}"}]
        kind = {"type": "record", "name": f"r{level}", "fields": fields}
    return record(kind)


def ladder(steps):
    """Side by side, and each names the one before it: deep only without names."""
    last = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    kinds = [last]
    for step in range(1, steps):
        fields = [{"name": "x", "type": f"r{step - 1}"}]
        kinds.append({"type": "record", "name": f"r{step}", "fields": fields})
    return record(*kinds)


def nested(depth):
    """Arrays of arrays."""
    kind = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return record(kind)


@pytest.mark.timeout(20)  # without the bound, hours
@pytest.mark.parametrize("schema", [doubling(33), ladder(500), nested(300)], ids=["wide", "ladder", "deep"])
def test_schemas_that_grow_without_bounds_are_refused(schema):
    """When names are replaced by what they stand for, by the reader and for a schema of one's own."""
    with pytest.raises(FormatError, match="too large or nested") as error:
        AvroWriterFactory().open_reader(bomb(0, b"", "null", json.dumps(schema)))
    assert error.value.kind == "value"
    with pytest.raises(FormatError, match="too large or nested") as error:
        AvroWriterFactory(schema=schema)
    assert error.value.kind == "option"


def test_large_schemas_are_read():
    """Wide ones, deep ones, and names that stand for much: within bounds that no table comes near to."""
    for schema in (record(*["int"] * 20_000), doubling(10), ladder(50), nested(100)):
        reader = AvroWriterFactory().open_reader(bomb(0, b"", "null", json.dumps(schema)))
        assert len(reader.schema) == len(schema["fields"])


def decimal(**more):
    """A decimal of bytes."""
    return {"type": "bytes", "logicalType": "decimal", **more}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (decimal(precision=77), "'c0' has a precision"),
        (decimal(precision=0), "'c0' has a precision"),
        (decimal(), "'c0' has a precision"),
        (decimal(precision=2, scale=""), "'c0' has a scale"),
        ({"type": "fixed", "name": "f", "size": "a"}, "'c0' has a size"),
        ({"type": "fixed", "name": "f", "size": -1}, "'c0' has a size"),
        ({"type": "fixed", "name": "f", "size": 2**31}, "'c0' has a size"),
        ([["int"]], "'c0' is a union inside a union"),
        ({"type": "record", "name": "r", "fields": [{"name": 5, "type": "int"}]}, "name is not text"),
    ],
    ids=str,
)
def test_numbers_that_arrow_does_not_have_are_refused(kind, said):
    """As errors of ours, by the reader and for a schema of one's own."""
    with pytest.raises(FormatError, match=said) as error:
        AvroWriterFactory().open_reader(bomb(0, b"", "null", json.dumps(record(kind))))
    assert error.value.kind == "schema"
    with pytest.raises(FormatError, match=said) as error:
        AvroWriterFactory(schema=record(kind))
    assert error.value.kind == "schema"


def test_what_is_said_of_another_type_counts_for_nothing():
    """As Avro has it: a decimal is of bytes, a time of the number that its unit takes."""
    kinds = [
        {"type": "long", "logicalType": "decimal", "precision": 9},
        {"type": "int", "logicalType": "timestamp-millis"},
        {"type": "string", "logicalType": "date"},
        {"type": "int", "logicalType": []},
        decimal(precision=76, scale=76),
    ]
    found = AvroWriterFactory().open_reader(bomb(0, b"", "null", json.dumps(record(*kinds)))).schema.types
    assert found == [pa.int64(), pa.int32(), pa.string(), pa.int32(), pa.decimal256(76, 76)]
