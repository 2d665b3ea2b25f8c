"""What bulk writers let wait takes no more memory than a few times what they count."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from filesink.buckets.contract import split
from filesink.storage.bucket_ids import encode_ids
from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
    XmlWriterFactory,
)

ROWS, BATCHES = 10_000, 40


def batch(number: int) -> pa.RecordBatch:
    """All rows but the last in one bucket."""
    return pa.RecordBatch.from_pydict({"n": range(number, number + ROWS), "text": ["x" * 50] * ROWS})


@pytest.mark.parametrize("factory", [ParquetWriterFactory, OrcBulkWriterFactory, ArrowWriterFactory])
@pytest.mark.parametrize("rare", [1, 1500])
def test_a_few_rows_do_not_keep_their_batches(factory, rare):
    """The rows of a rare bucket lie together at the end of each batch, so that nothing has to be copied."""
    ids = pa.array(["big"] * (ROWS - rare) + ["rare"] * rare)
    writer = factory().create(io.BytesIO(), batch(0).schema)
    before = pa.total_allocated_bytes()
    for number in range(BATCHES):
        pieces = dict(split(batch(number), encode_ids(ids)))
        writer.write(pieces["rare"])
        del pieces
    assert writer.buffered_bytes > 0
    assert pa.total_allocated_bytes() - before < 4 * writer.buffered_bytes + batch(0).nbytes
    writer.finish()


@pytest.mark.parametrize(
    ("factory", "most"),
    [
        (ArrowWriterFactory(batch_size="2MiB"), 2 << 20),
        (CompressWriterFactory(encoder=Encoder.json_lines(), block_size="2MiB"), 2 << 20),
        (SequenceFileWriterFactory(key="n", block_size="2MiB"), 2 << 20),
        (XmlWriterFactory(block_size="2MiB"), 2 << 20),
        (AvroWriterFactory(compression="null"), 4 << 20),
    ],
    ids=lambda each: type(each).__name__,
)
def test_no_more_waits_than_the_option_says(factory, most):
    """What is enough is written, and one batch more never waits; before that nothing is."""
    output = io.BytesIO()
    writer = factory.create(output, batch(0).schema)
    for number in range(1, 1 + 2 * most // batch(0).nbytes):
        writer.write(batch(number))
        assert writer.buffered_bytes < most
        assert (output.tell() > 0) is (number * batch(0).nbytes >= most)
