"""The directory of a sink, read with Spark: by Spark's own reader as a batch, and followed as a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException

import compaction
import filesink
from filesink import (
    BucketAssigner,
    Encoder,
    FileSink,
    FileSource,
    FileSourceBuilder,
    ParquetWriterFactory,
    StreamFormat,
)
from filesink.errors import StorageError
from tests.spark.to_the_end import run_to_end
from tests.spark.versions import needs_limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, with the data source."""
    filesink.register(spark)
    return spark


def write(spark: SparkSession, base: Path, *numbers: int, **options: str) -> None:
    """One epoch of a sink, with a file for each of ``numbers``, which follow one another."""
    df = spark.range(numbers[0], numbers[-1] + 1, numPartitions=len(numbers))
    FileSink.for_bulk_format(base, ParquetWriterFactory()).build().write(df, **options)


@pytest.fixture
def base(spark: SparkSession, tmp_path: Path) -> Path:
    """A directory with two epochs, and what is no file of an epoch."""
    base = tmp_path / "base of a sink"
    write(spark, base, 1, 2)
    write(spark, base, 3)
    pq.write_table(pa.table({"id": [99]}), base / "foreign.parquet")
    return base


def builder(base: Path) -> FileSourceBuilder:
    """A source of the directory, of Parquet."""
    return FileSource.for_bulk_file_format(ParquetWriterFactory(), base)


def ids(df: DataFrame) -> list[int]:
    """The column of that name, sorted."""
    return sorted(row.id for row in df.select("id").collect())


def physical_plan(df: DataFrame) -> str:
    """What Spark does."""
    return str(df._jdf.queryExecution().executedPlan())


def test_a_batch_goes_to_sparks_own_reader(spark: SparkSession, base: Path) -> None:
    """Of the files of the snapshot, with pushdown; what comes later is not seen by the same DataFrame."""
    df = builder(base).build().read(spark)
    write(spark, base, 4)
    assert ids(df) == [1, 2, 3]
    plan = physical_plan(df.where("id > 2"))
    assert "MetadataLogFileIndex" in plan
    assert "GreaterThan(id,2)" in plan
    assert ids(builder(base).as_of(1).build().read(spark)) == [1, 2]
    assert ids(builder(base).build().read(spark)) == [1, 2, 3, 4]


def test_partitions_are_pruned_and_typed(spark: SparkSession, tmp_path: Path) -> None:
    """Columns of directories have the types that the sink has noted, and choose among files."""
    base = tmp_path / "a%b=c d" / "base"
    sink = FileSink.for_bulk_format(base, ParquetWriterFactory())
    by_k = sink.with_bucket_assigner(BucketAssigner.partition_bucket_assigner("k")).build()
    by_k.write(spark.createDataFrame([(3, "007"), (5, "a/b")], "id bigint, k string"))
    df = builder(base).build().read(spark)
    assert df.schema.simpleString() == "struct<id:bigint,k:string>"
    assert sorted(map(tuple, df.collect())) == [(3, "007"), (5, "a/b")]
    assert "PartitionFilters: [isnotnull(k" in physical_plan(df.where("k = '007'"))


def test_what_sparks_reader_cannot_do_is_read_in_python(spark: SparkSession, base: Path) -> None:
    """Columns that tell where a record comes from: the version is that which made it visible."""
    df = builder(base).with_metadata_columns("_version", "_file").build().read(spark)
    assert [(row.id, row._version) for row in sorted(df.collect())] == [(1, 1), (2, 1), (3, 2)]
    assert "MetadataLogFileIndex" not in physical_plan(df)


@needs_limits
def test_a_stream_follows_a_sink(spark: SparkSession, base: Path, tmp_path: Path) -> None:
    """Run after run, each row once, whatever was merged in between; without a state location."""

    def run() -> None:
        df = builder(base).monitor_continuously(0).with_max_files_per_trigger(1).build().read_stream(spark)
        stream = df.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
        run_to_end(lambda: stream.trigger(availableNow=True).start(str(tmp_path / "out")))

    run()
    assert compaction.compact(base, ParquetWriterFactory()) is not None
    run()
    write(spark, base, 4, 5)
    run()
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == [1, 2, 3, 4, 5]
    newest = max((tmp_path / "cp" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    offset = json.loads(newest.read_text().splitlines()[-1])
    assert offset.pop("began") == {"version": 2, "index": 0, "snapshot": True}
    assert (offset.pop("inventory"), offset) == (
        filesink.open(base).inventory_id[:8],
        {"version": 4, "index": 0},
    )


def test_a_first_batch_that_fails(spark: SparkSession, base: Path, tmp_path: Path) -> None:
    """It is repeated as it was, whatever has come since: Spark does not remember where it began."""
    seen: list[list[int]] = []

    def note(df: DataFrame, batch_id: int) -> None:
        seen.append(ids(df))
        if batch_id == 0 and len(seen) == 1:
            raise RuntimeError("as was planned")

    def run() -> None:
        df = builder(base).monitor_continuously(0).with_max_files_per_trigger(2).build().read_stream(spark)
        stream = df.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path / "cp"))
        stream.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="as was planned"):
        run()
    write(spark, base, 4)
    run()
    run()  # Spark 4.1 ends a run after one batch
    assert seen[0] == seen[1]
    assert sorted(number for numbers in seen[1:] for number in numbers) == [1, 2, 3, 4]


def test_the_door_of_a_sink(spark: SparkSession, base: Path, tmp_path: Path) -> None:
    """Versions and starts are options."""
    door = spark.read.format("filesink")
    assert ids(door.load(str(base))) == [1, 2, 3]
    assert ids(door.option("versionAsOf", 1).load(str(base))) == [1, 2]
    stream = spark.readStream.format("filesink").option("startingVersion", 2).load(str(base))
    out = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
    run_to_end(lambda: out.trigger(availableNow=True).start(str(tmp_path / "out")))
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == [3]


def test_errors_name_the_version(spark: SparkSession, base: Path, tmp_path: Path) -> None:
    """In what Spark raises: a version that is none, and an overwrite under a stream."""
    with pytest.raises(AnalysisException, match=r"\[NO_VERSION\]"):
        spark.read.format("filesink").option("versionAsOf", 9).load(str(base))
    write(spark, base, 7, mode="overwrite")
    df = spark.readStream.format("filesink").option("startingVersion", 1).load(str(base))
    stream = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "cp"))
    with pytest.raises(StreamingQueryException, match=r"\[OVERWRITTEN\] version 3"):
        run_to_end(stream.trigger(availableNow=True).start)


def test_lines_of_a_stream_are_read_back(spark: SparkSession, tmp_path: Path) -> None:
    """As lines of text, by the versions of the sink, once its last part is finished."""
    base, source = tmp_path / "base", tmp_path / "in"
    spark.range(1, 4).selectExpr("cast(id AS string) AS value").write.text(str(source))
    sink = FileSink.for_row_format(base, Encoder.simple_string_encoder()).build()
    lines = spark.readStream.text(str(source))
    sink.start(lines, checkpoint_location=tmp_path / "cp", available_now=True).awaitTermination()
    (base / "foreign.txt").write_text("99\n")
    read = FileSource.for_record_stream_format(StreamFormat.text_line_format(), base).build().read(spark)
    assert sorted(row.value for row in read.collect()) == ["1", "2", "3"]


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}], ids=str)
def test_a_consumer_that_was_deployed_first(
    spark: SparkSession, tmp_path: Path, trigger: dict[str, Any]
) -> None:
    """Its query runs before the sink has begun, and follows it from the first version; the door's as well."""
    base, out = tmp_path / "base", str(tmp_path / "out")
    base.mkdir()

    def reader() -> DataFrame:
        if "availableNow" in trigger:
            door = spark.readStream.format("filesink").option("stateLocation", str(tmp_path / "state"))
            return door.option("format", "parquet").schema("id bigint").load(str(base))
        waiting = builder(base).monitor_continuously(0).with_schema("id bigint")
        return waiting.with_state_location(tmp_path / "state").build().read_stream(spark)

    def start() -> StreamingQuery:
        stream = reader().writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp"))
        return stream.trigger(**trigger).start(out)

    def caught_up(query: StreamingQuery) -> list[int]:
        query.awaitTermination() if "availableNow" in trigger else query.processAllAvailable()
        return ids(spark.read.schema("id bigint").parquet(out))

    query = start()
    assert caught_up(query) == []
    write(spark, base, 1, 2)
    query = query if query.isActive else start()
    assert caught_up(query) == [1, 2]
    query.stop()
    compaction.compact(base, ParquetWriterFactory())
    write(spark, base, 3)
    query = start()
    assert caught_up(query) == [1, 2, 3]
    query.stop()
    assert ids(builder(base).as_of(1).on_missing_file("ignore").build().read(spark)) == []


def test_a_version_that_was_overwritten(spark: SparkSession, base: Path) -> None:
    """Whatever chooses it, the error says that its snapshot is gone; an emptied path has no rows."""
    write(spark, base, 7, mode="overwrite")
    with pytest.raises(PythonException, match=r"\[SNAPSHOT_GONE\]"):
        spark.read.format("filesink").option("versionAsOf", 1).load(str(base)).count()
    with pytest.raises(StorageError, match="of version 1 is not there any more") as raised:
        builder(base).as_of(1).build().read(spark)  # by Spark's own reader, which would not say why
    assert raised.value.code == "SNAPSHOT_GONE"
    assert ids(builder(base).as_of(1).on_missing_file("ignore").build().read(spark)) == []
    chosen = builder(base).as_of(1).with_metadata_columns("_version").build()
    with pytest.raises(PythonException, match=r"\[SNAPSHOT_GONE\]"):
        chosen.read(spark).count()
    sink = FileSink.for_bulk_format(base, ParquetWriterFactory()).build()
    sink.write(spark.range(0), mode="overwrite")
    for df in (builder(base).build().read(spark), spark.read.format("filesink").load(str(base))):
        assert (df.columns, df.collect()) == (["id"], [])
