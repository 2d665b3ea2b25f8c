"""What every row format promises, whatever it writes."""

from __future__ import annotations

import io
import json
import pickle

import pyarrow as pa
import pytest

from formats import CompressWriterFactory, Encoder, ExcelWriterFactory, FormatError, XmlWriterFactory


def test_records_are_encoded_one_after_the_other(case, encoder, batch):
    """Wherever a batch is cut, its parts, joined, are the records of the whole."""
    whole = case.records(encoder, batch)
    for cut in range(1, batch.num_rows):
        assert case.records(encoder, batch.slice(0, cut), batch.slice(cut)) == whole


def test_a_part_goes_on_in_another_process(case, batch):
    """What one encoder began, another continues with what was carried over; no header again."""
    first = case.encoder.start_part()
    second = pickle.loads(pickle.dumps(case.encoder)).resume_part(first.carry_over())  # noqa: S301 - ours
    start, rest = batch.slice(0, 4), batch.slice(4)
    assert bytes(second.encode(rest)) == bytes(first.encode(rest))
    assert case.records(first, start, rest) == case.records(second, start, rest)
    assert second.signature() == case.encoder.signature()


def test_a_slice_is_encoded_as_a_copy_of_it(encoder, batch):
    """Where a slice lies in its parent leaves no trace, even twice sliced."""
    piece = batch.slice(2, 7).slice(1, 3)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, piece.schema) as writer:
        writer.write_batch(piece)
    copy = pa.ipc.open_stream(stream.getvalue()).read_next_batch()
    assert bytes(encoder.encode(piece)) == bytes(encoder.encode(copy))


def test_every_record_has_bytes(encoder, batch):
    """No record, not even one of nulls, is written as nothing at all."""
    for row in range(batch.num_rows):
        assert len(bytes(encoder.encode(batch.slice(row, 1)))) > 0
    nulls = pa.record_batch([pa.nulls(2, field.type) for field in batch.schema], schema=batch.schema)
    assert len(bytes(encoder.encode(nulls))) >= 2


def test_large_batches_are_cut_into_pieces_without_a_trace(case, encoder, batch, monkeypatch):
    """The size of the internal pieces changes nothing."""
    whole = case.records(encoder, batch)
    monkeypatch.setattr("formats.text.lines._PIECE_ROWS", 2)
    monkeypatch.setattr("formats.text.lines._PIECE_BYTES", 64)
    assert case.records(encoder, batch) == whole


def test_text_that_grows_too_large_for_arrow_is_written_in_halves(encoder, batch, monkeypatch):
    """Reaching Arrow's limit for one column of text costs time, not data."""
    if not hasattr(encoder, "lines"):
        pytest.skip("does not write through Arrow's text columns")
    whole, lines = bytes(encoder.encode(batch)), type(encoder).lines

    def limited(encoder, piece):
        if piece.num_rows > 2:
            raise pa.ArrowCapacityError("too long")
        return lines(encoder, piece)

    monkeypatch.setattr(type(encoder), "lines", limited)
    assert bytes(encoder.encode(batch)) == whole


def test_pickling_keeps_bytes_and_signature(encoder, batch):
    """An encoder that travelled to a task is the encoder that was configured."""
    copy = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    assert bytes(copy.encode(batch)) == bytes(encoder.encode(batch))
    assert copy.signature() == encoder.signature()
    assert copy.header(batch.schema) == encoder.header(batch.schema)
    assert copy.extension == encoder.extension


def test_signatures_tell_options_apart(case):
    """Parts with different bytes are never continued by one another."""
    signatures = [case.encoder.signature(), *(other.signature() for other in case.others)]
    assert len(set(signatures)) == len(signatures)


def test_what_can_be_written_is_accepted(case, batch):
    """``check_schema`` refuses nothing that ``encode`` writes."""
    case.encoder.check_schema(batch.schema)


@pytest.mark.parametrize("kind", [pa.month_day_nano_interval(), pa.list_(pa.month_day_nano_interval())])
def test_what_has_no_text_is_refused_with_its_path(case, kind):
    """A type no format knows is refused before anything is written, naming the column."""
    if "per row" in case.encoder.signature():
        pytest.skip("a user's encoder takes what it takes")
    with pytest.raises(FormatError, match="'months") as error:
        case.encoder.check_schema(pa.schema([pa.field("months", kind)]))
    assert error.value.kind == "schema"


# What Java makes of them: one character for each longest beginning of one, and for half a surrogate pair.
NO_UTF_8 = {
    b"a\xffb": "a\ufffdb",
    b"\xed\xa0\x80x": "\ufffdx",
    b"\xed\xa9\xf0\x90": "\ufffd\ufffd",
    b"\xf0\x9f\x98": "\ufffd",
    b"\xc3": "\ufffd",
    b"\xa9": "\ufffd",  # with the one before it a character, if nothing were between them
    b"\xc0\x80": "\ufffd\ufffd",
    "é 漢 😀".encode(): "é 漢 😀",
}


def no_utf_8():
    """Strings as Spark makes them of any bytes with ``CAST(value AS STRING)``."""
    texts = pa.array(list(NO_UTF_8), pa.binary()).view(pa.string())
    return pa.record_batch({"id": pa.array(range(len(texts))), "s": texts})


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16-LE"])
def test_csv_is_text_whatever_its_strings_are(charset):
    """Spark's writer puts U+FFFD in the place of bytes that are no UTF-8."""
    text = bytes(Encoder.csv(charset=charset).encode(no_utf_8())).decode(charset)
    assert text == "".join(f"{place},{said}\n" for place, said in enumerate(NO_UTF_8.values()))


def test_json_is_text_whatever_its_strings_are():
    """At any depth, keys of maps too."""
    batch = no_utf_8()
    texts = batch.column("s")
    ends = pa.array(range(len(texts) + 1), pa.int32())
    batch = batch.append_column("m", pa.MapArray.from_arrays(ends, texts, texts))
    lines = [json.loads(line) for line in bytes(Encoder.json_lines().encode(batch)).decode().splitlines()]
    assert lines == [{"id": n, "s": said, "m": {said: said}} for n, said in enumerate(NO_UTF_8.values())]


def test_plain_text_keeps_its_bytes():
    """As Spark's writer of text does."""
    batch = no_utf_8().select(["s"])
    assert bytes(Encoder.simple_string_encoder().encode(batch)) == b"".join(b + b"\n" for b in NO_UTF_8)


@pytest.mark.parametrize(
    "factory", [XmlWriterFactory(), ExcelWriterFactory(), CompressWriterFactory(encoder=Encoder.csv())]
)
def test_other_text_is_text_whatever_its_strings_are(factory):
    """Nobody could read it otherwise."""
    batch, file = no_utf_8(), io.BytesIO()
    writer = factory.create(file, batch.schema)
    writer.write(batch)
    writer.finish()
    back = factory.open_reader(file, schema=batch.schema).read_all()
    assert back.column("s").to_pylist() == list(NO_UTF_8.values())
