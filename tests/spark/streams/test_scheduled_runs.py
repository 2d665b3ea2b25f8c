"""A job that runs every hour, takes what is there and ends: its small files wait for the next run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink import (
    BucketAssigner,
    ConfigError,
    EpochReport,
    FileSink,
    FileSinkBuilder,
    OutputFileConfig,
    RollingPolicy,
    StateError,
)
from filesink.parts.file_format import RowFormat
from filesink.spark.query import SinkQuery
from formats import Encoder, ParquetWriterFactory
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 20
FLAT = BucketAssigner.base_path_bucket_assigner()


class Job:
    """One checkpoint and one directory of input, to which every run adds a file unless it is told not to."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self.base = directory / "out"
        self._source = directory / "source"
        self._checkpoint = directory / "checkpoint"
        self.files = 0

    def add(self) -> Job:
        """One more file of input."""
        inputs.add_file(self._source, self.files, rows=ROWS)
        self.files += 1
        return self

    def run(self, builder: FileSinkBuilder, **options: str) -> list[EpochReport]:
        """One run to the end of the input; its reports."""
        query = self.start(builder, available_now=True, **options)
        query.awaitTermination()
        return list(query.reports)

    def start(self, builder: FileSinkBuilder, **options: Any) -> SinkQuery[EpochReport]:
        """A run, of a sink of its own, as in a new process."""
        df = inputs.flights(self._spark, self._source)
        if isinstance(builder.format, RowFormat):
            df = df.selectExpr("lpad(id, 9, '0') AS value")
        return builder.build().start(df, checkpoint_location=self._checkpoint, **options)


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    """A job that has not run yet."""
    return Job(spark, tmp_path)


def merging(job: Job, strategy: FileCompactStrategy) -> FileSinkBuilder:
    """Parquet files that wait."""
    builder = FileSink.for_bulk_format(job.base, ParquetWriterFactory()).with_bucket_assigner(FLAT)
    return builder.with_uid("hourly").enable_compact(strategy, FileCompactor.record_wise_file_compactor())


def lines(job: Job, policy: RollingPolicy) -> FileSinkBuilder:
    """Lines in parts that stay open."""
    builder = FileSink.for_row_format(job.base, Encoder.simple_string_encoder()).with_bucket_assigner(FLAT)
    builder = builder.with_output_file_config(OutputFileConfig(part_suffix=".txt"))
    return builder.with_uid("hourly").with_rolling_policy(policy)


def test_three_hourly_runs_make_one_file(job: Job) -> None:
    """What waits is taken over by the next run, until the strategy says that it is enough."""
    sink = merging(job, FileCompactStrategy(checkpoints=3))
    for hour in (1, 2):
        (report,) = job.add().run(sink, at_end="keep")
        assert (report.rows, report.visible_rows, report.waiting_rows) == (ROWS, 0, hour * ROWS)
        assert outside.visible(job.base) == {}
    (report,) = job.add().run(sink, at_end="keep")
    assert (report.rows, report.visible_rows, report.waiting_rows) == (ROWS, 3 * ROWS, 0)
    assert outside.parquet_ids(job.base) == list(range(3 * ROWS))
    assert len(outside.visible(job.base)) == 1
    assert outside.hidden(job.base) == []


def test_age_counts_across_runs(job: Job) -> None:
    """What is old enough when a run ends is published by it, though no new data has come."""
    job.add().run(merging(job, FileCompactStrategy(max_age="1 h")), at_end="keep")
    assert outside.visible(job.base) == {}
    (report,) = job.run(merging(job, FileCompactStrategy(max_age=1)), at_end="keep")
    assert (report.rows, report.batch_id, report.visible_rows) == (0, None, ROWS)
    assert outside.parquet_ids(job.base) == list(range(ROWS))


def test_parts_stay_open_across_runs(job: Job) -> None:
    """A part of three runs becomes one file by inactivity, or when somebody says that it is the end."""
    patient = RollingPolicy.default_rolling_policy(rollover_interval="1 d", inactivity_interval="1 d")
    impatient = RollingPolicy.default_rolling_policy(rollover_interval="1 d", inactivity_interval=1)
    for run in (1, 2, 3):
        (report,) = job.add().run(lines(job, patient), at_end="keep")
        assert report.open_rows == run * ROWS
    assert outside.visible(job.base) == {}
    (closed,) = job.run(lines(job, impatient), at_end="keep")
    assert [file.rows for file in closed.files] == [3 * ROWS]
    job.add().run(lines(job, patient), at_end="keep")
    assert len(outside.visible(job.base)) == 1
    finished = lines(job, patient).build().finish()
    assert finished is not None
    assert (finished.visible_rows, finished.open_rows) == (ROWS, 0)
    expected = [f"{number:09}" for number in range(4 * ROWS)]
    assert outside.lines(job.base, ".txt") == expected


def test_the_end_of_input_publishes_unless_told_otherwise(job: Job) -> None:
    """A last run without the word makes all visible that earlier ones have kept."""
    sink = merging(job, FileCompactStrategy(size_threshold="1GiB"))
    job.add().run(sink, at_end="keep")
    job.add().run(sink)
    assert outside.parquet_ids(job.base) == list(range(2 * ROWS))
    assert len(outside.visible(job.base)) == 1


def test_a_sink_without_compaction_is_told_before_it_starts(job: Job) -> None:
    """Also if no data has come: not when the run is over, and the next one just the same."""
    job.add().run(merging(job, FileCompactStrategy(checkpoints=3)), at_end="keep")
    plain = FileSink.for_bulk_format(job.base, ParquetWriterFactory()).with_bucket_assigner(FLAT)
    with pytest.raises(StateError, match="disable_compact") as refused:
        job.start(plain.with_uid("hourly"), available_now=True, at_end="keep")
    assert refused.value.code == "COMPACTION_OFF"
    job.run(plain.with_uid("hourly").disable_compact())
    assert outside.parquet_ids(job.base) == list(range(ROWS))


def test_a_query_that_does_not_end_has_no_end_to_choose(job: Job) -> None:
    """With any other trigger the word would mean nothing."""
    sink = merging(job.add(), FileCompactStrategy(checkpoints=3))
    for trigger in ({"processing_time": "1 second"}, {}):
        with pytest.raises(ConfigError, match="at_end='keep'") as refused:
            job.start(sink, at_end="keep", **trigger)
        assert refused.value.code == "CONFLICT"


def test_the_word_is_checked(job: Job) -> None:
    """Anything else is refused before a query starts."""
    with pytest.raises(ConfigError, match="at_end must be 'publish' or 'keep', got 'kept'"):
        job.add().run(merging(job, FileCompactStrategy(checkpoints=3)), at_end="kept")
