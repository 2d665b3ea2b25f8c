"""The directory of a sink, read with Spark: by Spark's own reader as a batch, and followed as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

import filesink
from filesink import FileSource, FileSourceBuilder, ParquetWriterFactory
from tests.source.sink_site import SinkSite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, with the data source."""
    filesink.register(spark)
    return spark


@pytest.fixture
def site(tmp_path: Path) -> SinkSite:
    """A directory with two epochs, and what is no file of an epoch."""
    site = SinkSite(tmp_path / "base of a sink")
    site.epoch([1], [2])
    site.epoch([3])
    pq.write_table(pa.table({"id": [99]}), site.base / "foreign.parquet")
    return site


def builder(site: SinkSite) -> FileSourceBuilder:
    """A source of the directory, of Parquet."""
    return FileSource.for_bulk_file_format(ParquetWriterFactory(), site.base)


def ids(df: DataFrame) -> list[int]:
    """The column of that name, sorted."""
    return sorted(row.id for row in df.select("id").collect())


def physical_plan(df: DataFrame) -> str:
    """What Spark does."""
    return str(df._jdf.queryExecution().executedPlan())


def test_a_batch_goes_to_sparks_own_reader(spark: SparkSession, site: SinkSite) -> None:
    """Of the files of the snapshot, with pushdown; what comes later is not seen by the same DataFrame."""
    df = builder(site).build().read(spark)
    site.epoch([4])
    assert ids(df) == [1, 2, 3]
    plan = physical_plan(df.where("id > 2"))
    assert "MetadataLogFileIndex" in plan
    assert "GreaterThan(id,2)" in plan
    assert ids(builder(site).as_of(1).build().read(spark)) == [1, 2]
    assert ids(builder(site).build().read(spark)) == [1, 2, 3, 4]


def test_partitions_are_pruned_and_typed(spark: SparkSession, tmp_path: Path) -> None:
    """Columns of directories have the types that the sink has noted, and choose among files."""
    site = SinkSite(tmp_path / "a%b=c d" / "base")
    columns = pa.schema([("id", pa.int64()), ("k", pa.string())])
    for value in ("007", "a%2Fb"):
        site.epoch([len(value)], bucket=f"k={value}", columns=columns)
    df = builder(site).build().read(spark)
    assert df.schema.simpleString() == "struct<id:bigint,k:string>"
    assert sorted(map(tuple, df.collect())) == [(3, "007"), (5, "a/b")]
    assert "PartitionFilters: [isnotnull(k" in physical_plan(df.where("k = '007'"))


def test_what_sparks_reader_cannot_do_is_read_in_python(spark: SparkSession, site: SinkSite) -> None:
    """Columns that tell where a record comes from: the version is that which made it visible."""
    df = builder(site).with_metadata_columns("_version", "_file").build().read(spark)
    assert [(row.id, row._version) for row in sorted(df.collect())] == [(1, 1), (2, 1), (3, 2)]
    assert "MetadataLogFileIndex" not in physical_plan(df)


def test_a_stream_follows_a_sink(spark: SparkSession, site: SinkSite, tmp_path: Path) -> None:
    """Run after run, each row once, whatever was merged in between; without a state location."""

    def run() -> None:
        df = builder(site).monitor_continuously(0).with_max_files_per_trigger(1).build().read_stream(spark)
        stream = df.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
        stream.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    run()
    site.compact(*(str(path.relative_to(site.base)) for path in site.base.glob("part-*.parquet")))
    run()
    site.epoch([4], [5])
    run()
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == [1, 2, 3, 4, 5]
    newest = max((tmp_path / "cp" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert newest.read_text().splitlines()[-1] == '{"version": 4, "index": 0}'


def test_the_door_of_a_sink(spark: SparkSession, site: SinkSite, tmp_path: Path) -> None:
    """Versions and starts are options."""
    door = spark.read.format("filesink")
    assert ids(door.load(str(site.base))) == [1, 2, 3]
    assert ids(door.option("versionAsOf", 1).load(str(site.base))) == [1, 2]
    stream = spark.readStream.format("filesink").option("startingVersion", 2).load(str(site.base))
    out = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
    out.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == [3]


def test_errors_name_the_version(spark: SparkSession, site: SinkSite, tmp_path: Path) -> None:
    """In what Spark raises: a version that is none, and an overwrite under a stream."""
    with pytest.raises(AnalysisException, match=r"\[NO_VERSION\]"):
        spark.read.format("filesink").option("versionAsOf", 9).load(str(site.base))
    df = spark.readStream.format("filesink").load(str(site.base))

    def run() -> None:
        stream = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "cp"))
        stream.trigger(availableNow=True).start().awaitTermination()

    run()
    site.epoch([7], kind="batch-write", mode="overwrite", removed=("part-0-1.parquet",))
    with pytest.raises(StreamingQueryException, match=r"\[OVERWRITTEN\] version 3"):
        run()
