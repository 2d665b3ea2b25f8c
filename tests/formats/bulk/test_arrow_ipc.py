"""Arrow files, by the marks that other programs know their buffers by."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from formats import ArrowWriterFactory

FRAMES = {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}  # how each of them begins


@pytest.mark.parametrize("codec", [None, "zstd", "lz4", "none"])
def test_buffers_are_compressed_by_the_codec_of_the_file(codec):
    """It is zstd unless said otherwise, and the file of equal texts is so much smaller."""
    batch = pa.record_batch({"t": ["x" * 20] * 10_000})
    output = io.BytesIO()
    factory = ArrowWriterFactory() if codec is None else ArrowWriterFactory(compression=codec)
    writer = factory.create(output, batch.schema)
    writer.write(batch)
    writer.finish()
    found = [name for name, begins in FRAMES.items() if begins in output.getvalue()]
    assert found == ([] if codec == "none" else [codec or "zstd"])
    assert (output.tell() < batch.nbytes / 4) is (codec != "none")
