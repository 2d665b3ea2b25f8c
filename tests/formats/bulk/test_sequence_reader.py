"""SequenceFiles come back as they were written; ``tests/spark`` has those of Hadoop."""

from __future__ import annotations

import bz2
import io
import struct
import tracemalloc
import zlib
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import FormatError, SequenceFileWriterFactory, reading
from formats.sequence_file import reader as sequence_reader
from formats.sequence_file import writables

WAYS = [("none", "zlib"), ("record", "gzip"), ("block", "zlib"), ("block", "gzip"), ("block", "bzip2")]
SIZES = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1)), max_size=40)


def file_of(factory, *batches):
    """A finished file."""
    output = io.BytesIO()
    writer = factory.create(output, batches[0].schema)
    for batch in batches:
        writer.write(batch)
        writer.flush()
    writer.finish()
    return io.BytesIO(output.getvalue())


def pairs(count=500, width=1):
    """A column of numbers and one of text of many lengths."""
    texts = [str(number) * (number % 7 * width) for number in range(count)]
    return pa.record_batch({"n": pa.array(range(count), pa.int32()), "t": pa.array(texts, pa.string())})


@pytest.fixture(params=WAYS, ids="-".join)
def factory(request):
    """Each layout, and each codec in blocks."""
    compression, codec = request.param
    return SequenceFileWriterFactory(key="n", value="t", compression=compression, codec=codec)


def test_what_was_written_is_read(factory):
    """All pairs, from blocks and from records with sync markers between them."""
    batch = pairs(5_000, width=40)
    assert factory.open_reader(file_of(factory, batch.slice(0, 2_000), batch.slice(2_000))).read_all() == (
        pa.table(batch)
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@given(values=st.lists(st.one_of(st.text(max_size=3), st.text("é漢a", min_size=120, max_size=300))))
def test_any_text_and_bytes_come_back(kind, values):
    """Empty ones, and those whose length takes more than one byte, without keys."""
    batch = pa.record_batch({"value": pa.array([value.encode() for value in values], pa.binary()).cast(kind)})
    for compression in ("none", "block"):
        factory = SequenceFileWriterFactory(compression=compression)
        assert factory.open_reader(file_of(factory, batch)).read_all() == pa.table(batch)


@given(SIZES)
def test_sizes_are_read_as_they_are_written(sizes):
    """VInts of any width, one after the other."""
    data = writables.vints(np.array(sizes, np.int64))
    assert writables.read_vints(data, len(sizes)).tolist() == sizes
    for count in (len(sizes) + 1, len(sizes) - 1):
        if count >= 0:
            with pytest.raises(ValueError, match="length"):
                writables.read_vints(data, count)


def test_long_numbers_keep_their_sign():
    """Both kinds of numbers, at their limits."""
    batch = pa.record_batch(
        {"k": pa.array([-(2**63), 2**63 - 1, 0]), "v": pa.array([-(2**31), 2**31 - 1, 0], pa.int32())}
    )
    factory = SequenceFileWriterFactory(key="k", value="v")
    assert factory.open_reader(file_of(factory, batch)).read_all() == pa.table(batch)


def test_columns_are_chosen_added_and_widened(factory):
    """As by every reader."""
    wanted = pa.schema([("new", pa.string()), ("n", pa.int64())])
    found = factory.open_reader(file_of(factory, pairs(3)), schema=wanted).read_all()
    assert found.to_pylist() == [{"new": None, "n": number} for number in range(3)]


def test_batches_are_small(factory, monkeypatch):
    """A block comes in pieces."""
    monkeypatch.setattr(reading, "BATCH_ROWS", 100)
    batches = list(factory.open_reader(file_of(factory, pairs(1_000))))
    assert [batch.num_rows for batch in batches] == [100] * 10


def test_keys_stay_with_their_values(factory, monkeypatch):
    """However many pieces they come in, and wherever somebody has left the file."""
    monkeypatch.setattr(reading, "BATCH_BYTES", 1_000)
    batch = pairs(500)
    file = file_of(factory, batch)
    file.seek(7)
    batches = list(factory.open_reader(file))
    assert len(batches) > 3
    assert pa.Table.from_batches(batches) == pa.table(batch)


@pytest.mark.parametrize("piece", [1, 100, 1_000])
def test_records_are_read_across_pieces_of_the_file(piece, monkeypatch):
    """Wherever a piece ends, in a length, a marker or a value."""
    monkeypatch.setattr(sequence_reader, "_PIECE", piece)
    factory = SequenceFileWriterFactory(key="n", value="t", compression="none")
    batch = pairs(2_000, width=30)
    assert factory.open_reader(file_of(factory, batch)).read_all() == pa.table(batch)


@pytest.mark.parametrize("keep", [0, 3, 20, 100, -1, -20], ids=lambda keep: f"keep{keep}")
def test_a_file_that_was_cut_is_an_error(factory, keep):
    """Never fewer records than there were, silently; between two records nobody can tell."""
    data = file_of(factory, pairs()).getvalue()
    with pytest.raises(FormatError) as error:
        list(factory.open_reader(io.BytesIO(data[:keep])))
    assert error.value.kind == "value"


@given(place=st.integers(0, 2_000), value=st.integers(0, 255))
@pytest.mark.parametrize("compression", ["none", "record", "block"])
def test_a_damaged_file_is_read_or_refused(compression, place, value):
    """Any byte may be another: nothing but our own error comes out."""
    factory = SequenceFileWriterFactory(key="n", value="t", compression=compression)
    data = bytearray(file_of(factory, pairs(50)).getvalue())
    data[place % len(data)] = value
    with suppress(FormatError):
        list(factory.open_reader(io.BytesIO(bytes(data))))


def head(codec, *, in_blocks, key="NullWritable", value="Text"):
    """What a file begins with."""
    names = [key, value, f"compress.{codec}"]
    first, second, third = (writables.text(writables.PACKAGE + name) for name in names)
    return b"SEQ\x06" + first + second + bytes([1, in_blocks]) + third + bytes(4) + b"s" * 16


def block(count, *pieces, compress=zlib.compress):
    """A block of some compressed pieces."""
    packed = [compress(piece) for piece in pieces]
    framed = b"".join(writables.vint(len(piece)) + piece for piece in packed)
    return sequence_reader.ESCAPE + b"s" * 16 + writables.vint(count) + framed


MIB = 1 << 20
BOMBS = {  # made when they are needed: that takes seconds
    "values that are more than their lengths": lambda: block(1, b"\0", b"", b"\x01", bytes(9 * MIB)),
    "lengths of nothing": lambda: block(1 << 27, bytes(128 * MIB), b"", bytes(128 * MIB), b""),
    "a length of many bytes": lambda: block(1, b"\x8f" * (64 * MIB), b"", b"\x01", b"\0"),
    "a value larger than any": lambda: block(1, b"\0", b"", writables.vint(2**31 - 1), b"x"),
    "many values larger than a block": lambda: block(
        3, bytes(3), b"", writables.vint(200 * MIB) * 3, bytes(MIB)
    ),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_refused(bomb):
    """A block that says it is small and is not, or claims what it does not hold, costs next to nothing."""
    file = io.BytesIO(head("DefaultCodec", in_blocks=True) + bomb())
    tracemalloc.start()
    try:
        with pytest.raises(FormatError) as error:
            list(SequenceFileWriterFactory().open_reader(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.value.kind == "value"
    assert peak < 256 << 20


TEXTS, NUMBERS, BYTES = (
    head("DefaultCodec", in_blocks=True, value=name) for name in ("Text", "LongWritable", "BytesWritable")
)
GOOD = block(1, b"\0", b"", b"\x02", b"\x01a")
DAMAGED = {
    "another version": TEXTS.replace(b"SEQ\x06", b"SEQ\x05") + GOOD,
    "a block of another file": TEXTS + GOOD.replace(b"s" * 16, b"t" * 16),
    "a marker of another file": head("DefaultCodec", in_blocks=False) + sequence_reader.ESCAPE + b"t" * 16,
    "more bytes than the text": TEXTS + block(1, b"\0", b"", b"\x03", b"\x01ab"),
    "no bytes for a text": TEXTS + block(1, b"\0", b"", b"\0", b""),
    "more bytes than the number": NUMBERS + block(2, b"\0\0", b"", b"\x08\x0a", bytes(18)),
    "fewer bytes than there should be": NUMBERS + block(1, b"\0", b"", b"\x08", bytes(4)),
    "bytes without a length": BYTES + block(1, b"\0", b"", b"\x02", b"ab"),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_what_does_not_fit_together_is_damage(data):
    """Else other records than those that were written would be read."""
    good = SequenceFileWriterFactory().open_reader(io.BytesIO(TEXTS + GOOD)).read_all()
    assert good.to_pylist() == [{"value": "a"}]
    with pytest.raises(FormatError) as error:
        SequenceFileWriterFactory().open_reader(io.BytesIO(data)).read_all()
    assert error.value.kind == "value"


def test_records_that_expand_a_lot_come_one_by_one():
    """So many of them cannot fill the memory together."""
    text = bz2.compress(writables.vint(20 << 20) + b"x" * (20 << 20))
    record = struct.pack(">ii", len(text), 0) + text
    file = io.BytesIO(head("BZip2Codec", in_blocks=False) + record * 5)
    assert [batch.num_rows for batch in SequenceFileWriterFactory().open_reader(file)] == [1] * 5


@pytest.mark.parametrize("compression", ["none", "record", "block"])
def test_large_values_are_no_bomb(compression, monkeypatch):
    """Whatever is written is read: one value may be larger than a block, and blocks are cut."""
    monkeypatch.setattr(sequence_reader, "MOST_OF_SEVERAL", 1 << 20)
    factory = SequenceFileWriterFactory(compression=compression, block_size="64MiB")
    batch = pa.record_batch({"value": ["x" * (3 << 20), *["y" * (700 << 10)] * 3, *["z"] * 1_000]})
    assert factory.open_reader(file_of(factory, batch)).read_all() == pa.table(batch)


def test_small_records_after_a_large_one_come_in_pieces(monkeypatch):
    """A long record makes no long piece of what follows it."""
    monkeypatch.setattr(sequence_reader, "_PIECE", 1 << 10)
    factory = SequenceFileWriterFactory(compression="none")
    batch = pa.record_batch({"value": ["x" * (1 << 20), *["y"] * 10_000]})
    found = list(factory.open_reader(file_of(factory, batch)))
    assert pa.Table.from_batches(found) == pa.table(batch)
    assert max(batch.num_rows for batch in found) < 1_000


def test_values_that_are_null_leave_the_keys():
    """Sets of keys are files like that."""
    data = head("DefaultCodec", in_blocks=True, key="Text", value="NullWritable")
    data += block(2, b"\x02\x02", b"\x01a\x01b", b"\0\0", b"")
    found = SequenceFileWriterFactory(key="k").open_reader(io.BytesIO(data)).read_all()
    assert found.to_pylist() == [{"k": "a"}, {"k": "b"}]
    with pytest.raises(FormatError, match="no column"):
        SequenceFileWriterFactory().open_reader(
            io.BytesIO(head("DefaultCodec", in_blocks=True, value="NullWritable"))
        )


def test_two_columns_need_two_names():
    """A factory that leaves one to its default may mean another by it."""
    factory = SequenceFileWriterFactory(key="value")
    data = file_of(factory, pa.record_batch({"value": ["a"], "x": ["b"]}))
    with pytest.raises(FormatError, match="name both") as error:
        factory.open_reader(data)
    assert error.value.kind == "option"


@pytest.mark.parametrize(
    ("old", "new"), [(b"\x19org.apache.hadoop.io.Text", b"\x03abc"), (b"DefaultCodec", b"AnotherCodec")]
)
def test_classes_that_are_not_known_are_named(old, new):
    """Whoever wrote them."""
    factory = SequenceFileWriterFactory()
    data = file_of(factory, pa.record_batch({"value": ["a"]})).getvalue().replace(old, new)
    with pytest.raises(FormatError, match="cannot be read here") as error:
        factory.open_reader(io.BytesIO(data))
    assert error.value.kind == "option"


def test_metadata_are_passed_over():
    """Hadoop's writers may leave some, though not without bound."""
    plain = head("DefaultCodec", in_blocks=True)
    some = (1).to_bytes(4) + writables.text("who") + writables.text("us")
    data = plain.replace(bytes(4) + b"s", some + b"s") + block(1, b"\0", b"", b"\x02", b"\x01a")
    assert SequenceFileWriterFactory().open_reader(io.BytesIO(data)).read_all().to_pylist() == [
        {"value": "a"}
    ]
    many = plain.replace(bytes(4) + b"s", b"\x7f\xff\xff\xff" + b"\0" * (1 << 20))
    with pytest.raises(FormatError):
        SequenceFileWriterFactory().open_reader(io.BytesIO(many))


def test_no_block_has_more_records_than_readers_take(monkeypatch):
    """However small they are and however many may wait; what is written can be read."""
    monkeypatch.setattr(sequence_reader, "MOST_RECORDS", 10)
    batch = pa.record_batch({"value": pa.array(range(25), pa.int32())})
    factory = SequenceFileWriterFactory()
    assert factory.open_reader(file_of(factory, batch)).read_all().to_pylist() == batch.to_pylist()
