"""Batch writes of real DataFrames that replace what is there, or refuse to."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import filesink
from filesink import (
    BucketAssigner,
    ConcurrentDriverError,
    ConfigError,
    FileSink,
    FileSinkBuilder,
    FilesinkError,
)
from filesink.save_mode import SaveMode
from filesink.spark.engine import SparkEngine
from formats import ParquetWriterFactory
from tests.spark import outside
from tests.spark.sinks.test_user_sink import InboxSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
OVERWRITE = "spark.sql.sources.partitionOverwriteMode"


def sink(base: Path) -> FileSinkBuilder:
    """Buckets by the column ``half``."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(
        BucketAssigner.partition_bucket_assigner("half")
    )


def numbers(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Ids in two buckets: below ten, and from ten on."""
    return spark.range(first, end, numPartitions=2).selectExpr("id", "if(id < 10, 'low', 'high') AS half")


def test_overwrite_replaces_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Only the rows of the last write are there, for a reader by names and for Spark; nothing is left."""
    sink(tmp_path).build().write(numbers(spark, 0, 20))
    before = set(outside.visible(tmp_path))
    report = sink(tmp_path).with_uid("u").build().write(numbers(spark, 8, 12), mode="overwrite")
    assert set(report.replaced) == before
    assert outside.parquet_ids(tmp_path) == [8, 9, 10, 11]
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path)).collect()) == [8, 9, 10, 11]
    assert outside.hidden(tmp_path) == []


def test_overwrite_partitions_keeps_the_others(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark's dynamic partition overwrite: only buckets that get data are replaced."""
    sink(tmp_path).build().write(numbers(spark, 0, 20))
    sink(tmp_path).build().write(numbers(spark, 100, 103), mode="overwrite_partitions")
    assert outside.parquet_ids(tmp_path) == [*range(10), 100, 101, 102]


def test_a_path_may_be_overwritten_from_itself(spark: SparkSession, tmp_path: Path) -> None:
    """The old files are there until the new ones are, so a DataFrame may read what it replaces."""
    sink(tmp_path).build().write(numbers(spark, 0, 20))
    cleaned = spark.read.parquet(str(tmp_path)).where("id % 2 = 0")
    sink(tmp_path).build().write(cleaned, mode="overwrite")
    assert outside.parquet_ids(tmp_path) == list(range(0, 20, 2))


def test_error_if_data_exists(spark: SparkSession, tmp_path: Path) -> None:
    """The second write is refused before its job runs, and leaves nothing; its txn_id is free."""
    built = sink(tmp_path).build()
    built.write(numbers(spark, 0, 4), mode="error_if_data_exists", txn_id="first")
    before = outside.everything(tmp_path)
    with pytest.raises(ConfigError) as refused:
        built.write(numbers(spark, 4, 8), mode="error_if_data_exists", txn_id="second")
    assert refused.value.code == "DATA_EXISTS"
    assert outside.everything(tmp_path) == before
    again = built.write(numbers(spark, 0, 4), mode="error_if_data_exists", txn_id="first")
    assert again.already_committed


def test_an_overwrite_with_a_txn_id_happens_once(spark: SparkSession, tmp_path: Path) -> None:
    """Repeated after others have appended, it changes nothing."""
    sink(tmp_path).build().write(numbers(spark, 0, 4), mode="overwrite", txn_id="day")
    sink(tmp_path).build().write(numbers(spark, 4, 8))
    again = sink(tmp_path).build().write(numbers(spark, 0, 4), mode="overwrite", txn_id="day")
    assert again.already_committed
    assert outside.parquet_ids(tmp_path) == list(range(8))


def test_two_overwrites_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    """One of them, or one after the other; never the rows of both."""
    built = sink(tmp_path).build()
    start = Barrier(2)
    refused: list[FilesinkError] = []

    def overwrite(first: int) -> None:
        start.wait()
        try:
            built.write(numbers(spark, first, first + 3), mode="overwrite")
        except ConcurrentDriverError as error:
            refused.append(error)

    threads = [Thread(target=overwrite, args=(first,)) for first in (0, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outside.parquet_ids(tmp_path) in ([0, 1, 2], [10, 11, 12])
    assert len(refused) < 2
    built.write(numbers(spark, 20, 22), mode="overwrite")
    assert outside.parquet_ids(tmp_path) == [20, 21]
    assert outside.hidden(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "expected"), [({}, [12]), ({"partitionOverwriteMode": "DYNAMIC"}, [0, 1, 2, 12])]
)
def test_the_data_source_overwrites(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], expected: list[int]
) -> None:
    """``.mode("overwrite")`` is Spark's static overwrite; the option makes it dynamic."""
    filesink.register(spark)
    door = numbers(spark, 0, 12).write.format("filesink").option("bucketColumns", "half")
    door.mode("append").save(str(tmp_path))
    sink(tmp_path).build().write(numbers(spark, 0, 3), mode="overwrite_partitions")
    door = numbers(spark, 12, 13).write.format("filesink").option("bucketColumns", "half")
    door.options(**options).mode("overwrite").save(str(tmp_path))
    assert outside.parquet_ids(tmp_path) == expected
    assert outside.hidden(tmp_path) == []


@pytest.mark.parametrize(
    ("setting", "options", "expected"),
    [
        ("dynamic", {}, [0, 1, 2, 12]),
        ("DYNAMIC", {"partitionOverwriteMode": "static"}, [12]),
        ("static", {"partitionOverwriteMode": "dynamic"}, [0, 1, 2, 12]),
    ],
)
def test_the_data_source_overwrites_as_the_session_has_it(
    spark: SparkSession, tmp_path: Path, setting: str, options: dict[str, str], expected: list[int]
) -> None:
    """One day of several is replaced, as by Spark's own formats; an option goes before the setting."""
    filesink.register(spark)
    sink(tmp_path).build().write(numbers(spark, 0, 12))
    sink(tmp_path).build().write(numbers(spark, 0, 3), mode="overwrite_partitions")
    spark.conf.set(OVERWRITE, setting)
    try:
        for condition in ("id < 0", "id >= 0"):  # no rows replace nothing, or everything
            door = numbers(spark, 12, 13).where(condition).write.format("filesink")
            door.option("bucketColumns", "half").options(**options).mode("overwrite").save(str(tmp_path))
    finally:
        spark.conf.unset(OVERWRITE)
    assert outside.parquet_ids(tmp_path) == expected


def test_an_empty_overwrite_replaces_what_the_session_says(spark: SparkSession, tmp_path: Path) -> None:
    """An input that Spark optimises away has no partitions: nothing goes under dynamic overwrite."""
    filesink.register(spark)
    sink(tmp_path).build().write(numbers(spark, 0, 12))
    spark.conf.set(OVERWRITE, "dynamic")
    try:
        door = numbers(spark, 12, 13).where("1 = 0").write.format("filesink")
        door.option("bucketColumns", "half").mode("overwrite").save(str(tmp_path))
    finally:
        spark.conf.unset(OVERWRITE)
    assert outside.parquet_ids(tmp_path) == list(range(12))


def test_the_data_source_overwrites_once_by_txn_id(spark: SparkSession, tmp_path: Path) -> None:
    """The same txn_id through either door is the same write."""
    sink(tmp_path).build().write(numbers(spark, 0, 3), mode="overwrite", txn_id="day")
    sink(tmp_path).build().write(numbers(spark, 3, 5))
    filesink.register(spark)
    door = numbers(spark, 0, 3).write.format("filesink").option("bucketColumns", "half")
    door.option("txnId", "day").mode("overwrite").save(str(tmp_path))
    assert outside.parquet_ids(tmp_path) == list(range(5))


def test_a_bad_overwrite_option_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Before anything is removed."""
    filesink.register(spark)
    door = spark.range(1).write.format("filesink").option("partitionOverwriteMode", "all")
    with pytest.raises(AnalysisException, match=r"BAD_VALUE.*'static' or 'dynamic'"):
        door.mode("overwrite").save(str(tmp_path))


def test_a_stream_never_overwrites(spark: SparkSession, tmp_path: Path) -> None:
    """Each of its micro-batches would replace the last."""
    stream = spark.readStream.format("rate").load()
    built = sink(tmp_path / "out").build()
    with pytest.raises(ConfigError) as refused:
        built.start(stream, checkpoint_location=tmp_path / "checkpoint", mode="overwrite")
    assert refused.value.code == "SAVE_MODE"
    with pytest.raises(ConfigError) as refused:
        built.write(stream, mode="overwrite")
    assert refused.value.code == "STREAMING"


@pytest.mark.parametrize("mode", ["Overwrite", "ignore", ""])
def test_an_unknown_mode_is_refused(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """The message names those that there are."""
    with pytest.raises(ConfigError, match="'overwrite_partitions'"):
        sink(tmp_path).build().write(spark.range(1), mode=mode)  # type: ignore[arg-type]


def test_a_sink_of_ones_own_has_the_modes_it_says(spark: SparkSession, tmp_path: Path) -> None:
    """A user's sink appends unless it says more; nothing is appended by mistake."""
    (tmp_path / "inbox").mkdir()
    with pytest.raises(ConfigError) as refused:
        SparkEngine(InboxSink(tmp_path)).write(spark.range(1), mode=SaveMode.OVERWRITE)
    assert refused.value.code == "SAVE_MODE"
    assert list((tmp_path / "inbox").iterdir()) == []
