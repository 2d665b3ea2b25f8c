"""``FileSource`` with Spark: claims of Flink's FileSourceTextLinesITCase, and what Spark adds to them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import Row
from pyspark.sql.types import StructType

import filesink
from filesink import (
    ConfigError,
    Encoder,
    FileEnumerator,
    FilesinkError,
    FileSource,
    FileSourceBuilder,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    RecursiveFileEnumerator,
    StreamFormat,
)
from filesink.data_source.reading.options import parse_read_options
from filesink.data_source.reading.readers import StreamReader
from tests.spark import outside
from tests.spark.to_the_end import run_to_end
from tests.spark.versions import needs_limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATHS = [
    "text.2",
    "nested1/text.1",
    "text.1",
    "text.3",
    "nested2/nested21/text",
    "nested1/text.2",
    "nested2/text",
]
JUNK = [
    *("_something", ".junk", "nested1/.somefile", "othernested/_ignoredfile", "_nested/file"),
    "nested1/.intermediate/somefile",
]
LINES = {path: [f"{path}, line {number}" for number in range(5)] for path in PATHS}
ALL = sorted(line for lines in LINES.values() for line in lines)


def write(base: Path, path: str, *, packed: bool = False) -> None:
    """One of the files, at once; its last line has no end."""
    target = base / (f"{path}.gz" if packed else path)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = "\n".join(LINES[path]).encode()
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.write_bytes(gzip.compress(data) if packed else data)
    unfinished.rename(target)


class Lines:
    """Directories of one test, and a source of lines of text."""

    def __init__(self, base: Path) -> None:
        self.source, self.state, self.out, self.checkpoint = (
            base / name for name in ("in", "state", "out", "checkpoint")
        )
        self.source.mkdir()

    def builder(self) -> FileSourceBuilder:
        """Of the source, for batches and streams."""
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), self.source)
        return lines.monitor_continuously(0).with_state_location(self.state)

    def start(self, df: DataFrame, **trigger: Any) -> Any:
        """Start the query that copies ``df``."""
        stream = df.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        return stream.trigger(**(trigger or {"availableNow": True})).start(str(self.out))

    def copy(self, df: DataFrame) -> list[int]:
        """Run the query to its end; the number of rows of each batch."""
        query = run_to_end(lambda: self.start(df))
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    def copied(self, spark: SparkSession) -> list[str]:
        """What readers of Spark's log see of the copy."""
        if not (self.out / "_spark_metadata").exists():
            return []
        return sorted(row[0] for row in spark.read.schema("value STRING").parquet(str(self.out)).collect())


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, with the data source."""
    filesink.register(spark)
    return spark


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    """An empty source."""
    return Lines(tmp_path)


@pytest.fixture
def full(lines: Lines) -> Lines:
    """All files, every second one compressed, among junk."""
    for number, path in enumerate(PATHS):
        write(lines.source, path, packed=number % 2 == 1)
    for path in JUNK:
        (lines.source / path).parent.mkdir(parents=True, exist_ok=True)
        (lines.source / path).write_text("junk\n")
    return lines


def values(df: DataFrame) -> list[str]:
    """The only column, sorted."""
    return sorted(row[0] for row in df.collect())


def _id(row: Row) -> int:
    return row.id


def failing_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first attempt of each task dies when it has read half of its input."""
    for number, batch in enumerate(batches):
        if number == 0 and TaskContext.get().attemptNumber() == 0:  # type: ignore[union-attr]
            raise RuntimeError("as was planned")
        yield batch


# --- bounded


def test_bounded_text(spark: SparkSession, full: Lines) -> None:
    """Every line of every visible file once, and nothing of hidden ones."""
    assert values(full.builder().build().read(spark)) == ALL


def test_bounded_text_with_a_task_that_fails(spark: SparkSession, full: Lines) -> None:
    """Attempts that died in the middle add nothing."""
    df = full.builder().build().read(spark)
    assert values(df.mapInArrow(failing_once, df.schema)) == ALL


def test_bounded_text_with_another_driver(spark: SparkSession, full: Lines) -> None:
    """A driver that begins again lists again, and reads the same."""
    source = full.builder().build()
    assert values(source.read(spark.newSession())) == values(source.read(spark)) == ALL


# --- continuous


def test_continuous_text(spark: SparkSession, lines: Lines) -> None:
    """Files that come while the query runs are read as they come, each once."""
    write(lines.source, PATHS[0])
    query = lines.start(lines.builder().build().read_stream(spark), processingTime="0 seconds")
    try:
        outside.eventually(lambda: len(lines.copied(spark)) == len(LINES[PATHS[0]]))
        for path in PATHS[1:]:
            write(lines.source, path)
        outside.eventually(lambda: len(lines.copied(spark)) >= len(ALL))
    finally:
        query.stop()
    assert lines.copied(spark) == ALL


@pytest.mark.nightly
def test_continuous_text_with_a_task_that_fails(spark: SparkSession, full: Lines) -> None:
    """Its second attempt reads the same splits."""
    df = full.builder().build().read_stream(spark)
    full.copy(df.mapInArrow(failing_once, df.schema))
    assert full.copied(spark) == ALL


@needs_limits
def test_continuous_text_with_drivers_that_follow_one_another(spark: SparkSession, lines: Lines) -> None:
    """Each run ends with what was there when it began, and the next goes on; most have nothing to do."""
    builder = lines.builder().with_max_files_per_trigger(2)
    batches = []
    for some in (PATHS[:3], PATHS[3:], []):
        for path in some:
            write(lines.source, path)
        batches += lines.copy(builder.build().read_stream(spark))
    assert lines.copied(spark) == ALL
    assert batches == [10, 5, 10, 10]


@pytest.mark.nightly
def test_a_hundred_restarts_end(spark: SparkSession, lines: Lines) -> None:
    """Whether or not there is something new, each run of ``Trigger.AvailableNow`` ends."""
    for number in range(100):
        if number % 15 == 0:
            write(lines.source, PATHS[number // 15])
        lines.copy(lines.builder().build().read_stream(spark))
    assert lines.copied(spark) == ALL


@needs_limits
def test_a_batch_that_is_run_again(spark: SparkSession, full: Lines) -> None:
    """Spark's note of a batch is lost: it comes with the files it had, whatever has come since."""
    builder = full.builder().with_max_files_per_trigger(3)
    seen: list[list[str]] = []

    def note(df: DataFrame, batch_id: int) -> None:
        seen[batch_id:] = [values(df)]

    def run() -> None:
        stream = builder.build().read_stream(spark).writeStream.foreachBatch(note)
        run_to_end(stream.option("checkpointLocation", str(full.checkpoint)).trigger(availableNow=True).start)

    run()
    before, last = list(seen), len(seen) - 1
    for name in (str(last), f".{last}.crc"):
        (full.checkpoint / "commits" / name).unlink(missing_ok=True)
    (full.source / "late").write_text("late\n")
    run()
    assert seen == [*before, ["late"]]


@pytest.mark.nightly
def test_a_static_set_of_files(spark: SparkSession, lines: Lines) -> None:
    """Without monitoring a stream reads what is there when it starts, as in Flink; the next run what came."""
    write(lines.source, PATHS[0])
    source = lines.builder().process_static_file_set().build()
    query = lines.start(source.read_stream(spark), processingTime="0 seconds")
    try:
        outside.eventually(lambda: len(lines.copied(spark)) == 5)
        write(lines.source, PATHS[1])
        query.processAllAvailable()
    finally:
        query.stop()
    assert len(lines.copied(spark)) == 5
    lines.copy(source.read_stream(spark))
    assert len(lines.copied(spark)) == 10


@pytest.mark.nightly
def test_files_go_when_they_were_read(spark: SparkSession, full: Lines) -> None:
    """And when the checkpoint has them: those of the last batch with the next run."""
    builder = full.builder().after_reading("delete")
    full.copy(builder.build().read_stream(spark))
    full.copy(builder.build().read_stream(spark))
    assert full.copied(spark) == ALL
    left = sorted(str(path.relative_to(full.source)) for path in full.source.rglob("*") if path.is_file())
    assert left == sorted(JUNK)


# --- what is chosen


class OnlyNested(FileEnumerator):
    """A user's own choice of files."""

    def enumerate_files(self, roots):
        everything = RecursiveFileEnumerator().enumerate_files(roots)
        return (file for file in everything if "nested" in file.path)


def test_an_enumerator_of_ones_own(spark: SparkSession, full: Lines) -> None:
    """It is sent to where Spark lists, and decides there."""
    found = values(full.builder().set_file_enumerator(OnlyNested()).build().read(spark))
    assert found == [line for line in ALL if line.startswith("nested")]


def test_parquet_orc_json_and_csv(spark: SparkSession, tmp_path: Path) -> None:
    """Types of columns are those that Spark itself finds, or those that are given."""
    df = spark.range(100).selectExpr(
        "id", "cast(id AS string) AS name", "timestamp_seconds(id) AS t", "cast(id AS decimal(10,2)) AS d",
        "array(id) AS a", "named_struct('x', id) AS s", "map('k', id) AS m", "date_from_unix_date(id) AS day",
    )  # fmt: skip
    df.write.parquet(str(tmp_path / "parquet"))
    without_times = df.drop("t")  # Spark's ORC has local times, which are none of its TIMESTAMP
    without_times.write.orc(str(tmp_path / "orc"))
    for code, written in ((ParquetWriterFactory(), df), (OrcBulkWriterFactory(), without_times)):
        path = tmp_path / code.extension[1:]
        found = FileSource.for_bulk_file_format(code, path).build().read(spark)
        assert found.schema.simpleString() == written.schema.simpleString()
        assert sorted(found.collect(), key=_id) == sorted(written.collect(), key=_id)
    flat = df.select("id", "name", "day")
    flat.write.json(str(tmp_path / "json"))
    flat.write.csv(str(tmp_path / "csv"), header=True)
    for name, encoder in {"json": Encoder.json_lines(), "csv": Encoder.csv(header=True)}.items():
        builder = FileSource.for_record_stream_format(encoder, tmp_path / name).with_schema(flat.schema)
        assert builder.build().read(spark).exceptAll(flat).count() == 0


def test_columns_beside_those_of_the_files(spark: SparkSession, tmp_path: Path) -> None:
    """Where a record comes from, and what could not be read, behind the columns that were given."""
    (tmp_path / "a.json").write_text('{"id": 1}\nno\n')
    builder = FileSource.for_record_stream_format(Encoder.json_lines(), tmp_path).with_schema("id BIGINT")
    df = builder.with_metadata_columns("_file").on_bad_record("PERMISSIVE").build().read(spark)
    assert [tuple(row) for row in df.collect()] == [
        (1, str(tmp_path / "a.json"), None),
        (None, str(tmp_path / "a.json"), "no"),
    ]


# --- the door


def test_the_door_reads_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Options are Spark's texts; partitions are columns of a type that fits all values, or that is given."""
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"id": [day]}), tmp_path / f"day={day}" / "x.parquet")
    (tmp_path / "day=1" / "y.txt").write_text("no parquet")
    door = spark.read.format("filesink").option("pathGlobFilter", "*.parquet")
    found = door.option("metadataColumns", "_bucket").load(str(tmp_path))
    assert sorted(map(tuple, found.collect())) == [(1, 1, "day=1"), (2, 2, "day=2")]
    typed = door.schema("day STRING, id BIGINT").load([str(tmp_path / "day=1"), str(tmp_path)])
    assert sorted(map(tuple, typed.collect())) == [("1", 1), ("2", 2)]  # below both paths, and read once


@needs_limits
def test_the_door_reads_a_stream(spark: SparkSession, full: Lines) -> None:
    """With its limits, in batches that are no larger than they may be."""
    door = spark.readStream.format("filesink").option("format", "text")
    door = door.option("stateLocation", str(full.state)).option("maxFilesPerTrigger", 3)
    assert full.copy(door.load(str(full.source))) == [15, 15, 5]
    assert full.copied(spark) == ALL


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"nothing": "1"}, "UNKNOWN_OPTION"),
        ({"uid": "x"}, "UNKNOWN_OPTION"),
        ({"mode": "BEST_EFFORT"}, "BAD_VALUE"),
        ({"delimiter": ";"}, "CONFLICT"),
        ({"format": "parquet", "delimiter": ";"}, "CONFLICT"),
        ({"metadataColumns": "_row"}, "BAD_VALUE"),
        ({"modifiedAfter": "yesterday"}, "BAD_VALUE"),
        ({"versionAsOf": "1", "timestampAsOf": "2026-01-01"}, "CONFLICT"),
        ({"startingVersion": "-1"}, "BAD_VALUE"),
        ({"maxFilesPerTrigger": "0"}, "BAD_VALUE"),
    ],
)
def test_options_that_are_refused(options: dict[str, str], code: str) -> None:
    """Before anything is looked at."""
    with pytest.raises(FilesinkError) as error:
        parse_read_options({"path": "/data", **options})
    assert error.value.code == code


@pytest.mark.parametrize(("options", "code"), [({"uid": "x"}, "UNKNOWN_OPTION"), ({}, "NO_FILES")])
def test_the_door_refuses(spark: SparkSession, tmp_path: Path, options: dict[str, str], code: str) -> None:
    """By a code that is in the text of Spark's exception, before any job runs."""
    with pytest.raises(AnalysisException, match=code):
        spark.read.format("filesink").options(**options).load(str(tmp_path))


def test_a_stream_without_a_state_location(spark: SparkSession, tmp_path: Path) -> None:
    """It is refused: by the builder at once, by the door when the query starts."""
    (tmp_path / "a.txt").write_text("x\n")
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path)
    of_door = StreamReader(parse_read_options({"path": str(tmp_path)}), StructType().add("value", "string"))
    for ask in (lambda: builder.build().read_stream(spark), of_door.initialOffset):
        with pytest.raises(ConfigError) as error:
            ask()
        assert error.value.code == "STATE_LOCATION"
