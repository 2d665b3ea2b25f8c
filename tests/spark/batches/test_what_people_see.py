"""How a sink shows itself: in the log, in Spark's list of jobs, and where a notebook prints it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink import BucketAssigner, FileSink, FileSinkBuilder
from filesink.spark.runner import SparkRunner
from formats import ParquetWriterFactory
from tests.spark import inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
DESCRIPTION = "spark.job.description"


def builder(base: Path) -> FileSinkBuilder:
    """All below the base path."""
    made = FileSink.for_bulk_format(base, ParquetWriterFactory())
    return made.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


def descriptions(spark: SparkSession) -> list[str]:
    """Of all jobs of the session, as its UI shows them."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(place).description() for place in range(jobs.size())]
    return [str(one.get()) for one in found if one.isDefined()]


def test_jobs_and_log_name_the_sink_and_the_epoch(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each batch is one line in the log, and a job with a name; what the thread had before stays."""
    context = spark.sparkContext
    sink = builder(tmp_path).with_uid("flights").build()
    with caplog.at_level(logging.INFO, logger="filesink"):
        sink.write(spark.range(3))
        context.setLocalProperty(DESCRIPTION, "the daily load")
        try:
            sink.write(spark.range(4))
            assert context.getLocalProperty(DESCRIPTION) == "the daily load"
        finally:
            context.setLocalProperty(DESCRIPTION, None)  # type: ignore[arg-type] # takes it away
    assert f"filesink {tmp_path}, a batch write" in descriptions(spark)
    assert f"filesink {tmp_path}, a batch write; the daily load" in descriptions(spark)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert [line.partition(" rows")[0] for line in lines] == [
        f"filesink {tmp_path}: epoch 0: 3",
        f"filesink {tmp_path}: epoch 1: 4",
    ]


def test_a_stream_has_a_line_for_each_batch_and_one_for_its_end(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And jobs with Spark's own description behind ours; the query itself is a line with its state."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=5)
    sink = builder(tmp_path / "out").enable_compact(
        FileCompactStrategy(size_threshold="1MiB"), FileCompactor.record_wise_file_compactor()
    )
    df = inputs.flights(spark, tmp_path / "source")
    with caplog.at_level(logging.INFO, logger="filesink"):
        query = sink.build().start(
            df, checkpoint_location=tmp_path / "cp", query_name="flights", available_now=True
        )
        assert "flights: active" in repr(query) or "flights: ended" in repr(query)
        query.awaitTermination()
    assert repr(query) == f"<SinkQuery filesink {tmp_path / 'out'}, query flights: ended>"
    epochs = [record.getMessage() for record in caplog.records if ": epoch " in record.getMessage()]
    assert [line.rpartition(": ")[0].rpartition(": ")[0] for line in epochs] == [
        f"filesink {tmp_path / 'out'}: epoch {what}" for what in ("0, batch 0", "1, batch 1", "2")
    ]
    ours = [
        text for text in descriptions(spark) if text.startswith(f"filesink {tmp_path / 'out'}, epoch 1; ")
    ]
    assert len(ours) == 1
    assert "batch = 1" in ours[0]


def test_a_merge_in_spark_has_a_name(spark: SparkSession) -> None:
    """Large merges are jobs of their own."""
    SparkRunner(spark, "filesink /data/x").run(str, [1, 2])
    assert "filesink /data/x, a merge of 2 items" in descriptions(spark)


def test_sinks_and_builders_are_one_short_line() -> None:
    """Path, uid, and the kinds of all that was chosen."""
    made = builder(Path("/data/x")).with_uid("flights").with_storage_options()
    parts = "'/data/x' uid='flights' ParquetWriterFactory BasePathBucketAssigner OnCheckpointRollingPolicy"
    assert (repr(made), repr(made.build())) == (f"<FileSinkBuilder {parts}>", f"<FileSink {parts}>")
