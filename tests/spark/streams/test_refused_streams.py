"""Streams that cannot be exactly-once are refused with a typed error, and nothing is written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from filesink import (
    BucketAssigner,
    ConfigError,
    FileSink,
    FileSinkBuilder,
    InternalError,
    SchemaError,
)
from filesink.errors import StateCorruptError
from formats import ParquetWriterFactory
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 20


def parquet_sink(base: Path) -> FileSinkBuilder:
    """Everything below the base path itself."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(
        BucketAssigner.base_path_bucket_assigner()
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two files, two batches."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    return tmp_path / "source"


def test_calls_that_cannot_be_exactly_once_are_refused(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Each with its own code, and without a trace on the disk."""
    sink = parquet_sink(tmp_path / "out").build()
    stream, batch = inputs.flights(spark, source), spark.range(1)
    checkpoint = tmp_path / "checkpoint"
    refused: dict[str, Callable[[], object]] = {
        "STREAMING": lambda: sink.write(stream),
        "BATCH": lambda: sink.start(batch, checkpoint_location=checkpoint),
        "CHECKPOINT": lambda: sink.start(stream, checkpoint_location=""),
        "NO_STREAM": sink.finish,
    }
    for code, call in refused.items():
        with pytest.raises(ConfigError) as raised:
            call()
        assert raised.value.code == code
    for trigger in (
        {"continuous": "1 second"},
        {"real_time": "5 minutes"},
        {"once": True, "available_now": True},
    ):
        with pytest.raises(ConfigError, match="TRIGGER"):
            sink.start(stream, checkpoint_location=checkpoint, **trigger)
    assert not (tmp_path / "out").exists()
    assert not checkpoint.exists()


def test_a_bucket_expression_that_makes_several_records_of_one_is_refused(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """By either door; the rows would be written once for each."""
    assigner = BucketAssigner.expression_bucket_assigner("explode(array('a', 'b'))")
    sink = parquet_sink(tmp_path / "out").with_bucket_assigner(assigner).build()
    stream = inputs.flights(spark, source)
    with pytest.raises(SchemaError, match="EXPRESSION"):
        sink.start(stream, checkpoint_location=tmp_path / "checkpoint")
    assert "SchemaError: [EXPRESSION]" in failure(stream, sink, tmp_path / "checkpoint")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mode", ["complete", "update"])
def test_output_modes_that_repeat_rows_are_refused(
    spark: SparkSession, source: Path, tmp_path: Path, mode: str
) -> None:
    """Spark would take them for foreachBatch, the sink does not."""
    counts = inputs.flights(spark, source).groupBy("carrier").count()
    sink = parquet_sink(tmp_path / "out").build()
    message = failure(counts, sink, tmp_path / "checkpoint", mode=mode)
    assert "ConfigError: [OUTPUT_MODE]" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("trigger", [{"continuous": "1 second"}, {"realTime": "5 minutes"}])
def test_triggers_without_micro_batches_are_refused(
    spark: SparkSession, source: Path, tmp_path: Path, trigger: Mapping[str, str]
) -> None:
    """By Spark itself, where the sink cannot: foreachBatch has no such triggers, nor 4.1 the second."""
    sink = parquet_sink(tmp_path / "out").build()
    stream = inputs.flights(spark, source).writeStream.foreachBatch(sink.foreach_batch)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises((PySparkException, TypeError)):
        stream.trigger(**trigger).start().awaitTermination()
    assert not (tmp_path / "out").exists()


def test_a_call_from_elsewhere_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Outside foreachBatch there is no query whose batch this could be."""
    with pytest.raises(InternalError, match="NO_QUERY_ID"):
        parquet_sink(tmp_path / "out").build().foreach_batch(spark.range(1), 0)
    assert not (tmp_path / "out").exists()


def test_asynchronous_progress_tracking_is_refused(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """Its offset log does not tell what a batch was, so the first batch is refused already."""
    sink = parquet_sink(tmp_path / "out").build()
    message = failure(
        inputs.flights(spark, source),
        sink,
        tmp_path / "checkpoint",
        trigger={"processingTime": "0 seconds"},
        asyncProgressTrackingEnabled="true",
        _asyncProgressTrackingOverrideSinkSupportCheck="true",  # else Spark refuses it by itself
    )
    assert "ConfigError: [TRIGGER]" in message


def test_a_second_dataframe_in_a_batch_is_refused(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """The first call's rows stay; those of the second would be lost at a replay."""
    sink = parquet_sink(tmp_path / "out").build()

    def twice(df: DataFrame, batch_id: int) -> None:
        sink.foreach_batch(df, batch_id)
        sink.foreach_batch(df, batch_id)

    stream = inputs.flights(spark, source).writeStream.foreachBatch(twice)
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException, match=r"ConfigError: \[SECOND_CALL\]"):
        query.awaitTermination()
    assert outside.parquet_ids(tmp_path / "out") == list(range(ROWS))


def failure(
    df: DataFrame,
    sink: FileSink,
    checkpoint: Path,
    *,
    mode: str = "append",
    trigger: Mapping[str, Any] | None = None,
    **options: str,
) -> str:
    """What ends a stream through the foreachBatch door."""
    stream = df.writeStream.foreachBatch(sink.foreach_batch).outputMode(mode).options(**options)
    stream = stream.option("checkpointLocation", str(checkpoint)).trigger(
        **(trigger or {"availableNow": True})
    )
    query = stream.start()
    try:
        with pytest.raises(StreamingQueryException) as raised:
            query.awaitTermination(120)
    finally:
        query.stop()
    return str(raised.value)


# --- whose files these are


class Written:
    """A base path with the rows of one stream, and what is tried on it afterwards."""

    def __init__(self, spark: SparkSession, directory: Path, *, uid: str | None) -> None:
        self.directory, self.base = directory, directory / "out"
        self.spark, self.uid = spark, uid
        for number in range(2):
            inputs.add_file(directory / "source", number, rows=ROWS)
        self.run("checkpoint")
        self.before = outside.everything(self.base)

    def sink(self, base: Path | None = None) -> FileSinkBuilder:
        """A new sink object of the same uid."""
        builder = parquet_sink(base or self.base)
        return builder.with_uid(self.uid) if self.uid else builder

    def run(self, checkpoint: str, sink: FileSinkBuilder | None = None) -> None:
        """Run the stream to its end."""
        df = inputs.flights(self.spark, self.directory / "source")
        query = (
            (sink or self.sink())
            .build()
            .start(df, checkpoint_location=self.directory / checkpoint, available_now=True)
        )
        query.awaitTermination()

    def is_refused(self, error: str, checkpoint: str, sink: FileSinkBuilder | None = None) -> bool:
        """Whether the stream ends with ``error`` and nothing was touched."""
        with pytest.raises(StreamingQueryException, match=re.escape(error)):
            self.run(checkpoint, sink)
        return outside.everything(self.base) == self.before


@pytest.fixture(params=[None, "flights"], ids=["without uid", "with uid"])
def written(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Written:
    """Two committed batches."""
    return Written(spark, tmp_path, uid=request.param)


def test_a_new_checkpoint_is_refused_until_it_is_allowed(written: Written) -> None:
    """It would read the source from its start; who wants that says so and gets the rows again."""
    assert written.is_refused("IdentityError: [NEW_QUERY_OLD_DATA]", "new-checkpoint")
    written.run("another-checkpoint", written.sink().on_new_query("append"))
    assert outside.parquet_ids(written.base) == sorted([*range(2 * ROWS)] * 2)
    assert written.before.items() <= outside.everything(written.base).items()


def test_a_deleted_checkpoint_is_refused(written: Written) -> None:
    """The same under the same path."""
    shutil.rmtree(written.directory / "checkpoint")
    assert written.is_refused("IdentityError: [NEW_QUERY_OLD_DATA]", "checkpoint")


def test_a_checkpoint_that_has_written_elsewhere_is_refused(written: Written) -> None:
    """An empty base path is no new beginning for a query that is at batch 2: a mount may be missing."""
    inputs.add_file(written.directory / "source", 2, rows=ROWS)
    elsewhere = written.directory / "elsewhere"
    assert written.is_refused("IdentityError: [NO_LEDGER]", "checkpoint", written.sink(elsewhere))
    assert outside.visible(elsewhere) == {}


def test_a_damaged_record_stops_the_sink(written: Written) -> None:
    """An unreadable ledger is not an absent one."""
    record = max(written.base.glob("_filesink/*/*.record"))
    data = bytearray(record.read_bytes())
    data[len(data) // 2] ^= 1
    record.write_bytes(data)
    written.before = outside.everything(written.base)
    inputs.add_file(written.directory / "source", 2, rows=ROWS)
    # With a uid, its ledger is read before the query is started.
    with pytest.raises((StreamingQueryException, StateCorruptError), match=r"\[CHECKSUM\]"):
        written.run("checkpoint")
    assert outside.everything(written.base) == written.before
