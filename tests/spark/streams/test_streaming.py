"""Streams through ``start`` and ``foreach_batch``: what is visible when, and what the query says."""

from __future__ import annotations

import random
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from filesink import BucketAssigner, FileSink, FileSinkBuilder, OutputFileConfig, RollingPolicy
from formats import Encoder, ParquetWriterFactory
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 50


def text_sink(base: Path) -> FileSinkBuilder:
    """Parts that stay open until somebody or something closes them."""
    return (
        FileSink.for_row_format(base, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(
            RollingPolicy.default_rolling_policy(rollover_interval="1 h", inactivity_interval="1 h")
        )
        .with_output_file_config(OutputFileConfig(part_suffix=".txt"))
    )


def parquet_sink(base: Path) -> FileSinkBuilder:
    """Files that end with every epoch."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(
        BucketAssigner.base_path_bucket_assigner()
    )


def expected(files: int) -> list[str]:
    """The lines of the first files of the source."""
    return [line for number in range(files) for line in lines_of(number)]


def lines_of(number: int) -> list[str]:
    """The ids of one file of the source, as text."""
    return [f"{i:09}" for i in range(number * ROWS, (number + 1) * ROWS)]


def ids_as_lines(df: DataFrame) -> DataFrame:
    """One id per line."""
    return df.selectExpr("lpad(id, 9, '0') AS value")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source with two files."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    return tmp_path / "source"


@pytest.mark.parametrize(("trigger", "batches"), [("available_now", 2), ("once", 1)])
def test_the_end_of_input_leaves_nothing_open(
    spark: SparkSession, source: Path, tmp_path: Path, trigger: str, batches: int
) -> None:
    """Parts that no policy would close are visible when awaitTermination returns."""
    base = tmp_path / "out"
    df = ids_as_lines(inputs.flights(spark, source))
    query = (
        text_sink(base)
        .build()
        .start(df, checkpoint_location=tmp_path / "checkpoint", query_name="to_the_end", **{trigger: True})
    )
    assert query.name == "to_the_end"
    assert query.awaitTermination() is None
    assert not query.isActive
    assert query.exception() is None
    assert outside.lines(base, ".txt") == expected(2)
    assert outside.hidden(base) == []
    assert [report.batch_id for report in query.reports] == [*range(batches), None]
    assert [report.rows for report in query.reports] == [*[2 * ROWS // batches] * batches, 0]
    assert {file.path for report in query.reports for file in report.files} == set(outside.visible(base))


def test_a_running_query_says_so_and_a_stopped_one_too(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """A timeout of awaitTermination tells whether the end was reached; after stop() nothing runs."""
    query = (
        parquet_sink(tmp_path / "out")
        .build()
        .start(inputs.flights(spark, source), checkpoint_location=str(tmp_path / "checkpoint"))
    )
    assert query.awaitTermination(0.05) is False
    assert query.isActive
    assert [found.id for found in spark.streams.active if found.id == query.id] == [query.id]
    outside.eventually(lambda: len(query.reports) == 2)
    query.stop()
    assert not query.isActive
    assert query.awaitTermination(60) is True
    assert outside.parquet_ids(tmp_path / "out") == list(range(2 * ROWS))


def test_a_stopped_stream_keeps_its_parts_hidden_and_the_next_start_goes_on_with_them(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Rows of two runs end up in one part, which is visible only once finish() is called."""
    base, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for batches in (2, 3):
        sink = text_sink(base).build()
        query = sink.start(ids_as_lines(inputs.flights(spark, source)), checkpoint_location=checkpoint)
        outside.eventually(lambda query=query: bool(query.reports), seconds=120)
        outside.eventually(lambda query=query, last=batches - 1: query.reports[-1].batch_id == last)
        query.stop()
        assert outside.visible(base) == {}
        assert outside.hidden(base)
        inputs.add_file(source, batches, rows=ROWS)
    report = sink.finish()
    assert report is not None
    assert [file.rows for file in report.files] == [3 * ROWS]
    assert outside.lines(base, ".txt") == expected(3)
    assert outside.hidden(base) == []
    assert sink.finish() is None


def test_stops_at_random_moments_lose_and_double_nothing(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """stop() interrupts Spark's jobs wherever they are; every later start goes on from there."""
    base, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for number in range(2, 10):
        inputs.add_file(source, number, rows=ROWS)
    seed = time_ns()
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    policy = RollingPolicy.default_rolling_policy(part_size=300)
    df = ids_as_lines(inputs.flights(spark, source).repartition(2))
    for run in range(5):
        query = text_sink(base).with_rolling_policy(policy).build().start(df, checkpoint_location=checkpoint)
        if run == 0:
            outside.eventually(lambda query=query: bool(query.reports))  # that the others go on from
        query.awaitTermination(moments.uniform(0, 1))
        query.stop()
    query = text_sink(base).build().start(df, checkpoint_location=checkpoint, available_now=True)
    query.awaitTermination()
    assert outside.lines(base, ".txt") == expected(10), f"seed {seed}"
    text_sink(base).build().recover()
    assert outside.hidden(base) == []


def test_inactivity_closes_a_part_while_the_query_is_idle(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """No further data comes, and still the part becomes visible; the query goes on running."""
    base = tmp_path / "out"
    sink = (
        text_sink(base)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(inactivity_interval=300))
        .with_bucket_check_interval(100)
        .build()
    )
    query = sink.start(
        ids_as_lines(inputs.flights(spark, source)),
        checkpoint_location=tmp_path / "checkpoint",
        processing_time="100 milliseconds",
    )
    try:
        outside.eventually(lambda: outside.lines(base, ".txt") == expected(2))
        assert query.isActive
        outside.eventually(lambda: outside.hidden(base) == [])
        inputs.add_file(source, 2, rows=ROWS)
        outside.eventually(lambda: outside.lines(base, ".txt") == expected(3))
        assert None in [report.batch_id for report in query.reports]
    finally:
        query.stop()


def test_the_foreach_batch_door_and_finish(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """With a bare foreachBatch it is the user who says that the input has ended."""
    base = tmp_path / "out"
    sink = text_sink(base).build()
    stream = ids_as_lines(inputs.flights(spark, source)).writeStream.foreachBatch(sink.foreach_batch)
    query = (
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert outside.visible(base) == {}
    sink.finish()
    assert outside.lines(base, ".txt") == expected(2)
    assert outside.hidden(base) == []


def test_a_sink_with_a_uid_is_finished_by_another_process(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """A new sink object knows the parts of its uid, as after a restart of the driver."""
    base = tmp_path / "out"
    sink = text_sink(base).with_uid("lines").build()
    stream = ids_as_lines(inputs.flights(spark, source)).writeStream.foreachBatch(sink.foreach_batch)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream.trigger(availableNow=True).start().awaitTermination()
    text_sink(base).with_uid("lines").build().finish()
    assert outside.lines(base, ".txt") == expected(2)


def test_a_failing_query_raises_and_leaves_what_was_committed(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """The error of a task reaches awaitTermination; the next start goes on where it failed."""
    base, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch["id"][0].as_py() >= ROWS:
                raise ValueError("no more")
            yield batch

    sink = parquet_sink(base).build()
    df = inputs.flights(spark, source)
    query = sink.start(df.mapInArrow(fail, df.schema), checkpoint_location=checkpoint, available_now=True)
    with pytest.raises(StreamingQueryException, match="no more"):
        query.awaitTermination()
    assert not query.isActive
    assert query.exception() is not None
    first = outside.visible(base)
    assert outside.parquet_ids(base) == list(range(ROWS))

    sink.start(df, checkpoint_location=checkpoint, available_now=True).awaitTermination()
    assert outside.parquet_ids(base) == list(range(2 * ROWS))
    assert first.items() <= outside.visible(base).items()
    assert outside.hidden(base) == []


def test_batches_without_rows_write_nothing(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """Neither partitions without rows nor a batch that is optimised away make a file."""
    for name, condition in (("none", "false"), ("empty", "id < 0"), ("some", f"id >= {ROWS}")):
        base = tmp_path / name
        query = (
            parquet_sink(base)
            .build()
            .start(
                inputs.flights(spark, source).where(condition),
                checkpoint_location=tmp_path / f"checkpoint-{name}",
                available_now=True,
            )
        )
        query.awaitTermination()
        assert len(query.reports) == 2
        assert outside.parquet_ids(base) == (list(range(ROWS, 2 * ROWS)) if name == "some" else [])
        assert len(outside.visible(base)) == (1 if name == "some" else 0)


def test_a_small_part_size_rolls_within_and_across_batches(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Parts of a row format exceed their size by at most the last record, whatever batches bring."""
    base = tmp_path / "out"
    policy = RollingPolicy.default_rolling_policy(part_size=120)  # twelve lines fill it exactly
    sink = text_sink(base).with_rolling_policy(policy).build()
    df = ids_as_lines(inputs.flights(spark, source).coalesce(1))
    sink.start(df, checkpoint_location=tmp_path / "checkpoint", available_now=True).awaitTermination()
    assert outside.lines(base, ".txt") == expected(2)
    assert sorted(found.size for found in outside.visible(base).values()) == [90, *[130] * 7]
