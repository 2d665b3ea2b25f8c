"""A sink that drops what is too much by itself, as Spark drives it."""

from __future__ import annotations

import pytest

import filesink
from filesink import EpochComplete, FileSink, ParquetWriterFactory, Retention
from tests.spark import outside

pytestmark = pytest.mark.spark


def test_a_batch_and_a_stream_drop_by_themselves(spark, tmp_path):
    """After their first epoch, in one of its own, of which listeners hear."""
    events = []
    built = (
        FileSink.for_bulk_format(tmp_path / "out", ParquetWriterFactory())
        .with_retention(Retention(keep=1))
        .with_listener(events.append)
        .with_uid("u")
    )
    report = built.build().write(spark.range(0, 10, numPartitions=3))
    assert (len(report.files), len(outside.visible(tmp_path / "out"))) == (3, 1)
    source = tmp_path / "in"
    spark.range(0, 10, numPartitions=2).write.parquet(str(source))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(source))
    sink = built.build()
    query = sink.start(stream, checkpoint_location=str(tmp_path / "cp"), available_now=True)
    query.awaitTermination()
    assert len(outside.visible(tmp_path / "out")) == 2  # of the second batch, within the same hour
    kinds = [event.kind for event in events if isinstance(event, EpochComplete)]
    assert kinds == ["batch-write", "operation", "micro-batch", "operation", "micro-batch"]
    assert filesink.fsck(tmp_path / "out").is_good
