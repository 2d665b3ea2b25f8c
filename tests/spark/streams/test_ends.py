"""How streams end, and what a sink that has no data does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from filesink import BucketAssigner, EpochReport, FileSink, FileSinkBuilder, RollingPolicy
from filesink.durations import Duration
from filesink.spark.query import SinkQuery
from formats import Encoder
from tests.spark import outside

pytestmark = pytest.mark.spark


def lines(base: Path, *, rollover: Duration = "1 h") -> FileSinkBuilder:
    """A sink of lines whose parts stay open."""
    sink = FileSink.for_row_format(base, Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    policy = RollingPolicy.default_rolling_policy(rollover_interval=rollover, inactivity_interval="1 h")
    return sink.with_rolling_policy(policy)


def source(spark: SparkSession, directory: Path, *rows: str) -> DataFrame:
    """A stream over a directory that holds ``rows``."""
    directory.mkdir(exist_ok=True)
    if rows:
        (directory / f"{rows[0]}.txt").write_text("\n".join(rows) + "\n")
    return spark.readStream.text(str(directory))


def visible(base: Path) -> list[str]:
    """The lines that a reader sees."""
    parts = [path for path in base.iterdir() if path.name[0] not in "._"]
    return sorted(line for part in parts for line in part.read_text().splitlines())


def eventually(claim: Callable[[], bool]) -> bool:
    """Whether ``claim`` comes true within a minute."""
    for _ in range(300):
        if claim():
            return True
        time.sleep(0.2)
    return False


def test_a_run_without_new_data_ends_well(spark: SparkSession, tmp_path: Path) -> None:
    """A scheduled job whose source is idle is not a failure, with or without a uid."""
    for builder in (lines(tmp_path / "a"), lines(tmp_path / "b").with_uid("b")):
        checkpoint = tmp_path / f"checkpoint-{builder.uid}"
        for _ in range(2):
            stream = source(spark, tmp_path / "in", "x")
            query = builder.build().start(stream, checkpoint_location=checkpoint, available_now=True)
            query.awaitTermination()
    assert visible(tmp_path / "a") == visible(tmp_path / "b") == ["x"]


def test_finish_after_a_batch_write_closes_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Open parts of a sink's stream are closed by finish(), whatever else the sink has written."""
    stream = source(spark, tmp_path / "in", "streamed")
    first = lines(tmp_path / "out").with_uid("u").build()
    query = first.start(stream, checkpoint_location=tmp_path / "checkpoint", processing_time="0 seconds")
    query.processAllAvailable()
    query.stop()
    sink = lines(tmp_path / "out").with_uid("u").build()
    sink.write(spark.createDataFrame([("batch",)], "value string"), txn_id="t")
    assert visible(tmp_path / "out") == ["batch"]
    sink.finish()
    assert visible(tmp_path / "out") == ["batch", "streamed"]


def test_open_parts_are_closed_after_a_restart_without_data(spark: SparkSession, tmp_path: Path) -> None:
    """Age closes parts of an earlier run although no batch ever comes."""
    stream = source(spark, tmp_path / "in", "x")
    for interval in (3_600_000, 1_000):
        builder = lines(tmp_path / "out", rollover=interval).with_bucket_check_interval(200)
        query = builder.build().start(
            stream, checkpoint_location=tmp_path / "checkpoint", processing_time="0 seconds"
        )
        query.processAllAvailable()
        if interval > 1_000:
            query.stop()
            assert visible(tmp_path / "out") == []
    try:
        assert eventually(lambda: visible(tmp_path / "out") == ["x"])
    finally:
        query.stop()


def test_a_query_that_somebody_else_stops_keeps_its_parts_open(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever stops all queries of a session does not end the input; the next run does."""
    stopped = tmp_path / "stopped"
    rows = [str(number) for number in range(6)]
    for row in rows:
        source(spark, tmp_path / "in", row)

    def run() -> SinkQuery[EpochReport]:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
        stream = stream.mapInArrow(waits_at_3_for(stopped), stream.schema)
        sink = lines(tmp_path / "out").build()
        return sink.start(stream, checkpoint_location=tmp_path / "checkpoint", available_now=True)

    query = run()
    assert eventually(lambda: bool(query.reports))
    for one in spark.streams.active:
        one.stop()
    stopped.touch()
    query.awaitTermination()
    assert visible(tmp_path / "out") == []
    run().awaitTermination()
    assert visible(tmp_path / "out") == rows


def waits_at_3_for(file: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """All rows as they are; that of "3" not before ``file`` is there."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if "3" in batch.column(0).to_pylist():
                outside.eventually(file.exists, seconds=300)
            yield batch

    return run
