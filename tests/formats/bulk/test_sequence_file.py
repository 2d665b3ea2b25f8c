"""SequenceFiles, as far as it can be told without Hadoop; ``tests/spark`` has its reader."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from formats import FormatError, SequenceFileWriterFactory


def file_of(factory, *batches):
    """A finished file."""
    output = io.BytesIO()
    writer = factory.create(output, batches[0].schema)
    for batch in batches:
        writer.write(batch)
    assert output.getvalue() == b""
    writer.finish()
    return output.getvalue()


def test_the_bytes_are_those_of_the_format():
    """A header with classes and sync marker, then lengths, key and value of each record."""
    data = file_of(
        SequenceFileWriterFactory(key="k", compression="none"), pa.record_batch({"k": [7], "v": ["ab"]})
    )
    classes = b"\x21org.apache.hadoop.io.LongWritable\x19org.apache.hadoop.io.Text"
    head = b"SEQ\x06" + classes + b"\0\0" + bytes(4)
    assert data.startswith(head)
    assert data[len(head) + 16 :] == b"\0\0\0\x0b\0\0\0\x08" + (7).to_bytes(8) + b"\x02ab"


def test_a_file_of_no_records_is_a_header():
    """Readers find the classes and nothing else."""
    factory = SequenceFileWriterFactory()
    data = file_of(factory, pa.record_batch({"v": pa.array([], pa.string())}))
    assert data[:-16] == factory.header(pa.schema([("v", pa.string())]), b"")


@pytest.mark.parametrize(
    "schema",
    [
        [("k", pa.string())],
        [("k", pa.string()), ("v", pa.string()), ("w", pa.string())],
        [("k", pa.string()), ("v", pa.float64())],
        [("k", pa.string()), ("v", pa.uint32())],
        [("k", pa.list_(pa.string())), ("v", pa.string())],
        [("v", pa.string()), ("w", pa.string())],
    ],
)
def test_what_is_no_pair_of_writables_is_refused(schema):
    """Other columns, or types that Hadoop has no Writable for."""
    with pytest.raises(FormatError) as error:
        SequenceFileWriterFactory(key="k").check_schema(pa.schema(schema))
    assert error.value.kind == "schema"


def test_the_value_is_the_column_that_is_named():
    """If it is another, nobody gets the wrong one."""
    schema = pa.schema([("k", pa.string()), ("v", pa.string())])
    SequenceFileWriterFactory(key="k", value="v").check_schema(schema)
    with pytest.raises(FormatError, match="select 'k', 'w'"):
        SequenceFileWriterFactory(key="k", value="w").check_schema(schema)


def test_null_is_an_error():
    """There is nothing to write for it."""
    with pytest.raises(FormatError, match="'v' is null") as error:
        file_of(
            SequenceFileWriterFactory(key="k"),
            pa.record_batch({"k": [1], "v": pa.array([None], pa.string())}),
        )
    assert error.value.kind == "value"


@pytest.mark.parametrize(
    "options", [{"compression": "all"}, {"codec": "lzo"}, {"codec": None}, {"block_size": -1}], ids=str
)
def test_unknown_options_are_refused(options):
    """Never another codec than the one that was asked for."""
    with pytest.raises(FormatError) as error:
        SequenceFileWriterFactory(**options)
    assert error.value.kind == "option"


SYNC = bytes(range(16))


@pytest.mark.parametrize("codec", ["zlib", "gzip", "bzip2"])
def test_equal_records_are_equal_bytes_at_any_time(monkeypatch, codec):
    """But for the marker, which is random unless it is given."""
    factory = SequenceFileWriterFactory(codec=codec, make_sync=lambda: SYNC)
    files = set()
    for now in (1_000_000_000.0, 2_000_000_000.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        files.add(file_of(factory, pa.record_batch({"v": ["a", "b"]})))
    assert len(files) == 1


@pytest.mark.parametrize("rows", [1000, 70, 3])
def test_records_are_marked_every_hundred_kibibytes(rows):
    """So that readers can begin in the middle: never more than that and one record between two markers.

    However few records are written at a time.
    """
    factory = SequenceFileWriterFactory(compression="none", make_sync=lambda: SYNC)
    batch, output = pa.record_batch({"v": ["x" * 1000] * 1000}), io.BytesIO()
    writer = factory.create(output, batch.schema)
    for start in range(0, 1000, rows):
        writer.write(batch.slice(start, rows))
        writer.flush()
    writer.finish()
    pieces = output.getvalue().split(b"\xff\xff\xff\xff" + SYNC)
    assert len(pieces) == 1000 * 1010 // (100 << 10) + 1
    assert all(len(piece) <= (100 << 10) + 1100 for piece in pieces)


def test_files_of_other_options_have_other_signatures():
    """Only alike ones are merged by their bytes or continued."""
    options = [
        {},
        {"key": "k"},
        {"key": "k", "value": "v"},
        {"compression": "none"},
        {"compression": "record"},
        {"codec": "gzip"},
        {"codec": "bzip2"},
    ]
    signatures = {SequenceFileWriterFactory(**one).signature() for one in options}
    assert len(signatures) == len(options)
