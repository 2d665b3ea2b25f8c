"""``format("filesink")``: batch and stream, replays, failures, and what is refused."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import duckdb
import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

import filesink
from filesink import FileSink
from tests.spark import inputs, outside
from tests.spark.breakable import BreakableDataSource, noted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 30


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, with the data source."""
    filesink.register(spark)
    spark.dataSource.register(BreakableDataSource)
    return spark


class Stream:
    """A stream from files of thirty rows, one per batch; ``run`` runs it to its end."""

    def __init__(
        self, spark: SparkSession, directory: Path, *, name: str = "filesink", files: int = 3
    ) -> None:
        self.spark, self.name = spark, name
        self.source, self.base, self.checkpoint = (
            directory / part for part in ("source", "out", "checkpoint")
        )
        self.options: dict[str, str] = {}
        for number in range(files):
            self.add(number)

    def add(self, number: int) -> None:
        """One more file, and so one more batch."""
        inputs.add_file(self.source, number, rows=ROWS)

    def run(self) -> None:
        """Run to the end of the input, as a driver that has just started."""
        df = inputs.flights(self.spark, self.source)
        self._start(df).awaitTermination()

    def failure(self) -> str:
        """Run and fail; the text of the error."""
        with pytest.raises(StreamingQueryException) as failed:
            self.run()
        return str(failed.value)

    def _start(self, df: DataFrame):
        stream = df.writeStream.format(self.name).options(**self.options)
        stream = stream.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        return stream.start(str(self.base))

    def forget_commit(self, number: int) -> None:
        """As after a crash between the sink's commit and Spark's note of it."""
        (self.checkpoint / "commits" / str(number)).unlink()
        (self.checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)

    def expect(self, files: int) -> None:
        """Every row of so many files, once, and nothing hidden."""
        assert outside.parquet_ids(self.base) == list(range(ROWS * files))
        assert outside.hidden(self.base) == []


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    """A stream that has come to its end once."""
    stream = Stream(spark, tmp_path)
    stream.run()
    return stream


def write(df: DataFrame, base: Path, **options: str) -> None:
    """Append a batch."""
    df.write.format("filesink").mode("append").options(**options).save(str(base))


def last_line(error: PySparkException) -> str:
    """Our sentence inside Spark's error."""
    return next(line for line in str(error).splitlines() if line.startswith("filesink.errors."))


# --- batch


def test_a_batch_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """Every row, in directories that DuckDB takes for partitions; a second write adds to it."""
    df = spark.range(0, 300, numPartitions=3).selectExpr("id", "id % 3 AS k")
    write(df, tmp_path, bucketColumns="k")
    write(spark.range(300, 310, numPartitions=1).selectExpr("id", "9L AS k"), tmp_path, bucketColumns="k")
    query = "SELECT k, count(*), min(id) FROM read_parquet(?, hive_partitioning = true) GROUP BY k ORDER BY k"
    found = duckdb.execute(query, [f"{tmp_path}/**/*.parquet"]).fetchall()
    assert found == [(0, 100, 0), (1, 100, 1), (2, 100, 2), (9, 10, 300)]
    assert outside.hidden(tmp_path) == []


@pytest.mark.parametrize("condition", ["1 = 0", "id < 0"], ids=["optimised away", "empty partitions"])
def test_zero_rows(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    """An empty input is an epoch without files."""
    write(spark.range(0, 10, numPartitions=2).where(condition), tmp_path)
    assert outside.visible(tmp_path) == {}
    assert outside.hidden(tmp_path) == []


def test_a_txn_id_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """The second write with a txnId changes nothing at all; another id adds."""
    df = spark.range(0, 10, numPartitions=2)
    write(df, tmp_path, txnId="monday")
    before = outside.everything(tmp_path)
    write(df, tmp_path, txnId="monday")
    assert outside.everything(tmp_path) == before
    write(df, tmp_path, txnId="tuesday")
    assert outside.parquet_ids(tmp_path) == sorted([*range(10), *range(10)])


def test_a_repeated_txn_id_with_other_data(spark: SparkSession, tmp_path: Path) -> None:
    """Another number of rows is refused or passed over, as was said; either way nothing is written."""
    write(spark.range(0, 10, numPartitions=2), tmp_path, txnId="monday")
    before = outside.everything(tmp_path)
    more = spark.range(0, 11, numPartitions=2)
    with pytest.raises(Exception, match="OTHER_DATA"):
        write(more, tmp_path, txnId="monday")
    write(more, tmp_path, txnId="monday", onRepeatedTxn="skip")
    assert outside.everything(tmp_path) == before


def test_both_doors_share_a_uid(spark: SparkSession, tmp_path: Path) -> None:
    """A FileSink with the same uid goes on in the same ledger."""
    write(spark.range(0, 10, numPartitions=1), tmp_path, uid="u")
    from formats import ParquetWriterFactory

    other = FileSink.for_bulk_format(tmp_path, ParquetWriterFactory()).with_uid("u").build()
    assert other.write(spark.range(10, 20, numPartitions=1)).epoch == 1
    write(spark.range(20, 30, numPartitions=1), tmp_path, uid="u")
    assert outside.parquet_ids(tmp_path) == list(range(30))


def test_rows_per_part(spark: SparkSession, tmp_path: Path) -> None:
    """``maxRows`` rolls inside a task; prefix and suffix name the parts."""
    df = spark.range(0, 25, numPartitions=1)
    write(df, tmp_path, format="csv", header="true", maxRows="10", partPrefix="n", partSuffix=".txt")
    texts = sorted(path.read_text() for path in outside.files(tmp_path) if path.name.startswith("n-"))
    assert sorted(text.count("\n") for text in texts) == [6, 11, 11]
    assert all(text.startswith("id\n") for text in texts)
    assert all(path.endswith(".txt") for path in outside.visible(tmp_path))


def test_bytes_per_part(spark: SparkSession, tmp_path: Path) -> None:
    """``partSize`` rolls at the record that crosses it."""
    df = spark.range(100, 200, numPartitions=1).selectExpr("string(id) AS value")
    write(df, tmp_path, format="text", partSize="39")
    assert {found.size for found in outside.visible(tmp_path).values()} == {40}


@pytest.mark.parametrize(
    ("options", "days"),
    [
        ({"bucketColumns": "ts"}, {"ts=2024-01-01 22%3A00%3A00"}),
        ({"bucketTimeFormat": "yyyy-MM-dd", "bucketTimeColumn": "ts"}, {"2024-01-01"}),
        (
            {"bucketTimeFormat": "yyyy-MM-dd", "bucketTimeColumn": "ts", "timeZone": "Asia/Tokyo"},
            {"2024-01-02"},
        ),
        ({"bucketColumns": "ts", "timeZone": "Asia/Tokyo"}, {"ts=2024-01-02 07%3A00%3A00"}),
    ],
    ids=str,
)
def test_buckets_by_time(spark: SparkSession, tmp_path: Path, options, days) -> None:
    """The zone of the session, or the one that was asked for."""
    df = spark.range(1).selectExpr("id", "timestamp'2024-01-01 22:00:00' AS ts")
    write(df, tmp_path, **options)
    assert {str(Path(path).parent) for path in outside.visible(tmp_path)} == days


def test_a_failing_batch_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """One partition fails after the other has reported: both are gone, and no row is visible."""
    base, reported = tmp_path / "out", tmp_path / "reported"
    df = spark.range(0, 100, numPartitions=2).mapInArrow(fails_after(reported), "id bigint")
    with ThreadPoolExecutor(1) as beside:
        watching = beside.submit(outside.eventually, lambda: tasks_done(spark) == 1, seconds=300)
        watching.add_done_callback(lambda _: reported.touch())
        with pytest.raises(PySparkException, match="99 is too much"):
            write(df, base)
        watching.result()
    assert outside.visible(base) == {}
    assert outside.hidden(base) == []


def fails_after(file: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Fails in the partition that holds the id 99, as soon as ``file`` is there."""

    def fail_at_99(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 99 in batch.column(0).to_pylist():
                outside.eventually(file.exists, seconds=300)
                raise ValueError("99 is too much")
            yield batch

    return fail_at_99


def tasks_done(spark: SparkSession) -> int:
    """How many tasks of the stages that run now have ended well."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage)


# --- streams


def test_a_stream_is_written_once(stream: Stream) -> None:
    """Every batch, also over a restart."""
    stream.expect(3)
    stream.add(3)
    stream.run()
    stream.expect(4)


def test_a_lost_commit_entry_changes_nothing(stream: Stream) -> None:
    """Spark runs the batch again and not a byte below the base path changes."""
    before = outside.everything(stream.base)
    stream.forget_commit(2)
    stream.run()
    assert outside.everything(stream.base) == before
    stream.add(3)
    stream.run()
    stream.expect(4)


def test_a_replay_with_other_rows_is_refused(stream: Stream) -> None:
    """The file of the last batch has changed meanwhile: nothing is written, and the query stops."""
    before = outside.everything(stream.base)
    stream.forget_commit(2)
    inputs.add_file(stream.source, 2, rows=ROWS // 2)
    assert "ReplayMismatchError: [REPLAY_MISMATCH] batch 2 was committed with 30 rows" in stream.failure()
    assert outside.everything(stream.base) == before
    stream.options["onReplayMismatch"] = "keep_first"
    stream.run()
    assert outside.everything(stream.base) == before


def test_a_new_checkpoint_is_refused(stream: Stream) -> None:
    """Another query would read the source from its start; with ``onNewQuery`` it may."""
    before = outside.everything(stream.base)
    stream.checkpoint = stream.checkpoint.with_name("other")
    assert "[NEW_QUERY_OLD_DATA]" in stream.failure()
    assert outside.everything(stream.base) == before
    stream.options["onNewQuery"] = "append"
    stream.run()
    assert outside.parquet_ids(stream.base) == sorted([*range(3 * ROWS), *range(3 * ROWS)])


def test_a_new_checkpoint_may_replace_all_that_is_there(stream: Stream) -> None:
    """The tasks of its first batch write before the old files go; an old checkpoint is refused then."""
    stream.options |= {"uid": "refreshed", "onNewQuery": "replace"}
    stream.base, first = stream.base.with_name("refreshed"), stream.checkpoint.with_name("first")
    stream.checkpoint = first
    stream.run()
    before = outside.visible(stream.base)
    stream.checkpoint = first.with_name("second")
    stream.run()
    assert outside.parquet_ids(stream.base) == list(range(3 * ROWS))
    assert not before.keys() & outside.visible(stream.base).keys()
    assert outside.hidden(stream.base) == []
    stream.checkpoint = first
    stream.forget_commit(2)
    assert "[NEW_QUERY_OLD_DATA]" in stream.failure()
    assert outside.parquet_ids(stream.base) == list(range(3 * ROWS))


def test_a_base_path_from_an_old_backup_is_refused(stream: Stream, tmp_path: Path) -> None:
    """The checkpoint has gone on without it: the batches between are missing, and the query stops."""
    backup = tmp_path / "backup"
    shutil.copytree(stream.base, backup)
    for number in (3, 4):
        stream.add(number)
    stream.run()
    shutil.rmtree(stream.base)
    backup.rename(stream.base)
    stream.add(5)
    assert "[BATCHES_MISSING]" in stream.failure()
    stream.expect(3)


def test_output_mode_complete_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that are written anew by every batch are not what files are for."""
    stream = Stream(spark, tmp_path)
    counts = inputs.flights(spark, stream.source).groupBy("carrier").count()
    query = counts.writeStream.format("filesink").outputMode("complete").trigger(availableNow=True)
    query = query.option("checkpointLocation", str(stream.checkpoint)).start(str(stream.base))
    with pytest.raises(StreamingQueryException, match="OUTPUT_MODE"):
        query.awaitTermination()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"rolloverInterval": "1 min"}, "USE_FILESINK"),
        ({"txnId": "x"}, "CONFLICT"),
        ({"roll_size": "1MiB"}, "UNKNOWN_OPTION"),
        ({"bucketColumns": "nowhere"}, "BUCKET_COLUMN"),
        ({"format": "text"}, "TYPE"),
    ],
    ids=str,
)
def test_bad_options_of_a_stream(spark: SparkSession, tmp_path: Path, options, code) -> None:
    """The query fails with our sentence before a row is read or a file is made."""
    stream = Stream(spark, tmp_path, files=1)
    stream.options = options
    assert f"[{code}]" in stream.failure()
    assert not stream.base.exists()


# --- failures


def test_abort_after_a_failed_commit_deletes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Spark calls abort, in a process of its own, for a batch that is decided and not yet published."""
    stream = Stream(spark, tmp_path, name="breakable", files=2)
    broken = Path(f"{stream.base}.no-publish")
    broken.touch()
    assert "another file stands there" in stream.failure()
    publish, abort = noted(stream.base)[0], noted(stream.base)[-1]
    assert (publish[0], abort[0]) == ("publish", "abort")
    assert publish[1] != abort[1]
    assert outside.visible(stream.base) == {}
    assert len(outside.hidden(stream.base)) == 1
    broken.unlink()
    stream.run()
    stream.expect(2)


@pytest.mark.parametrize("killed", ["in the first batch", "in a later batch"])
def test_a_task_that_is_killed_leaves_nothing_after_the_next_good_epoch(
    spark: SparkSession, tmp_path: Path, killed: str
) -> None:
    """A worker that dies with closed files leaves them; the epoch that succeeds removes them.

    Also where it writes to other directories than the attempt that died.
    """
    stream = Stream(spark, tmp_path, name="breakable", files=1)
    stream.options["bucketTimeFormat"] = "HH-mm-ss-SSS"
    files = 1
    if killed == "in a later batch":
        stream.run()
        stream.add(files)
        files += 1
    deadly = Path(f"{stream.base}.kill")
    deadly.touch()
    stream.failure()
    assert "kill" in {what for what, _ in noted(stream.base)}
    assert len(outside.hidden(stream.base)) == 2  # two attempts
    deadly.unlink()
    stream.run()
    stream.expect(files)


# --- what is refused


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_save_modes_that_spark_refuses(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Spark's own message, also for the default; the documentation quotes it."""
    message = 'cannot be written in the ".*" mode. Please use either the "Append" or "Overwrite" mode'
    with pytest.raises(AnalysisException, match=message):
        spark.range(1).write.format("filesink").mode(mode).save(str(tmp_path / "out"))


def test_a_missing_path_is_our_error(spark: SparkSession) -> None:
    """``saveAsTable`` and a bare ``save`` name no path."""
    writer = spark.range(1).write.format("filesink").mode("append")
    for call in (writer.save, lambda: writer.saveAsTable("nowhere")):
        with pytest.raises(AnalysisException) as refused:
            call()
        assert "ConfigError: [PATH_REQUIRED]" in last_line(refused.value)


def test_a_session_whose_zone_was_unset(spark: SparkSession, tmp_path: Path) -> None:
    """Spark tells tasks only settings that were set. A TIMESTAMP says its zone, and none is guessed."""
    times = spark.range(1).selectExpr("id", "timestamp'2025-12-31 23:30:00 UTC' AS t")
    spark.conf.unset("spark.sql.session.timeZone")
    try:
        with pytest.raises(PySparkException, match=r"NO_TIME_ZONE.*filesink\.register"):
            write(spark.range(1), tmp_path, bucketTimeFormat="yyyy")
        write(spark.range(1), tmp_path / "given", bucketTimeFormat="yyyy", timeZone="UTC")
        write(spark.range(1), tmp_path / "plain")
        write(times, tmp_path / "times", bucketTimeFormat="yyyy", bucketTimeColumn="t")
        zone = ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone")))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert outside.parquet_ids(tmp_path / "plain") == [0]
    year = datetime(2025, 12, 31, 23, 30, tzinfo=UTC).astimezone(zone).year
    assert [path.name for path in (tmp_path / "times").iterdir() if path.name[0] != "_"] == [str(year)]
