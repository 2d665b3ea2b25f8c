"""What every row format promises, whatever it writes."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from formats import FormatError


def test_records_are_encoded_one_after_the_other(case, batch):
    """Wherever a batch is cut, the bytes of its parts, joined, are the bytes of the whole."""
    whole = bytes(case.encoder.encode(batch))
    for cut in range(1, batch.num_rows):
        first, second = batch.slice(0, cut), batch.slice(cut)
        assert bytes(case.encoder.encode(first)) + bytes(case.encoder.encode(second)) == whole


def test_a_slice_is_encoded_as_a_copy_of_it(case, batch):
    """Where a slice lies in its parent leaves no trace, even twice sliced."""
    piece = batch.slice(2, 7).slice(1, 3)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, piece.schema) as writer:
        writer.write_batch(piece)
    copy = pa.ipc.open_stream(stream.getvalue()).read_next_batch()
    assert bytes(case.encoder.encode(piece)) == bytes(case.encoder.encode(copy))


def test_every_record_has_bytes(case, batch):
    """No record, not even one of nulls, is written as nothing at all."""
    for row in range(batch.num_rows):
        assert len(bytes(case.encoder.encode(batch.slice(row, 1)))) > 0
    nulls = pa.record_batch([pa.nulls(2, field.type) for field in batch.schema], schema=batch.schema)
    assert len(bytes(case.encoder.encode(nulls))) >= 2


def test_large_batches_are_cut_into_pieces_without_a_trace(case, batch, monkeypatch):
    """The size of the internal pieces does not change a byte."""
    whole = bytes(case.encoder.encode(batch))
    monkeypatch.setattr("formats.lines._PIECE_ROWS", 2)
    monkeypatch.setattr("formats.lines._PIECE_BYTES", 64)
    assert bytes(case.encoder.encode(batch)) == whole


def test_text_that_grows_too_large_for_arrow_is_written_in_halves(case, batch, monkeypatch):
    """Reaching Arrow's limit for one column of text costs time, not data."""
    if not hasattr(case.encoder, "lines"):
        pytest.skip("does not write through Arrow's text columns")
    whole, lines = bytes(case.encoder.encode(batch)), type(case.encoder).lines

    def limited(encoder, piece):
        if piece.num_rows > 2:
            raise pa.ArrowCapacityError("too long")
        return lines(encoder, piece)

    monkeypatch.setattr(type(case.encoder), "lines", limited)
    assert bytes(case.encoder.encode(batch)) == whole


def test_pickling_keeps_bytes_and_signature(case, batch):
    """An encoder that travelled to a task is the encoder that was configured."""
    copy = pickle.loads(pickle.dumps(case.encoder))  # noqa: S301 - our own bytes
    assert bytes(copy.encode(batch)) == bytes(case.encoder.encode(batch))
    assert copy.signature() == case.encoder.signature()
    assert copy.header(batch.schema) == case.encoder.header(batch.schema)
    assert copy.extension == case.encoder.extension


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
