"""What every bulk format promises, whatever it writes."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from formats import FormatError


class Output:
    """Memory that counts how it was used."""

    closed = False

    def __init__(self):
        self.data = bytearray()

    def write(self, data, /):
        self.data += memoryview(data).cast("B")
        return memoryview(data).nbytes

    def tell(self):
        return len(self.data)

    def flush(self):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def output():
    """An empty output."""
    return Output()


def test_nothing_is_written_before_the_first_flush(factory, output, rows):
    """Thousands of writers may wait without touching their outputs."""
    writer = factory.create(output, rows.schema)
    assert output.tell() == 0
    assert writer.buffered_bytes == 0
    writer.flush()
    assert output.tell() == 0


def test_finish_leaves_the_output_open(factory, output, rows):
    """The owner closes; dropping the writer does not close either."""
    writer = factory.create(output, rows.schema)
    writer.write(rows)
    writer.finish()
    del writer
    assert not output.closed


def test_flush_empties_the_buffer(factory, output, rows):
    """After a flush nothing waits in memory, and the bytes are in the output."""
    writer = factory.create(output, rows.schema)
    writer.write(rows)
    writer.flush()
    assert writer.buffered_bytes == 0
    size = output.tell()
    assert size > 0
    writer.flush()
    assert output.tell() == size


def test_batches_stay_as_they_were(factory, output, rows):
    """The writer never changes what it was given."""
    before = str(rows.to_pylist())
    writer = factory.create(output, rows.schema)
    for row in range(rows.num_rows):
        writer.write(rows.slice(row, 1))
    writer.finish()
    assert str(rows.to_pylist()) == before


def test_pickling_keeps_the_signature(factory):
    """A factory that travelled to a task is the factory that was configured."""
    copy = pickle.loads(pickle.dumps(factory))  # noqa: S301 - our own bytes
    assert copy.signature() == factory.signature()
    assert copy.extension == factory.extension


def test_what_can_be_written_is_accepted(factory, rows):
    """``check_schema`` refuses nothing that can be written."""
    factory.check_schema(rows.schema)


def test_what_cannot_be_written_is_refused_with_its_path(bulk):
    """The innermost column that does not fit is named."""
    for kind, path in bulk.refused:
        with pytest.raises(FormatError) as error:
            bulk.factory.check_schema(pa.schema([pa.field("ok", pa.int32()), pa.field("c", kind)]))
        assert f"column {path!r} " in error.value.message
        assert error.value.kind == "schema"


def test_no_column_at_all_is_refused(factory):
    """Nothing would be left of the records, not even their number."""
    with pytest.raises(FormatError, match="at least one column"):
        factory.check_schema(pa.schema([]))
