"""Bad input is refused with a typed error that names a way out, before anything is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from filesink import (
    BucketAssigner,
    BucketError,
    CheckpointRollingPolicy,
    ConfigError,
    EncoderError,
    FileSink,
    FileSinkBuilder,
    FilesinkError,
    FileSource,
    ListenerPolicy,
    PartFileInfo,
    PartitionCommit,
    RollingPolicy,
    SchemaError,
)
from filesink.buckets.contract import BucketContext
from formats import Encoder, ParquetWriterFactory, RowEncoder
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 20


def parquet_sink(base: object) -> FileSinkBuilder:
    """Everything below the base path itself."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(  # type: ignore[arg-type]
        BucketAssigner.base_path_bucket_assigner()
    )


def row_sink(base: Path, encoder: Encoder | RowEncoder) -> FileSinkBuilder:
    """The same for a row format."""
    return FileSink.for_row_format(base, encoder).with_bucket_assigner(
        BucketAssigner.base_path_bucket_assigner()
    )


# --- when the sink is built

BUILT: dict[str, tuple[str, Callable[[], object]]] = {
    "no path": ("PATH_REQUIRED", lambda: parquet_sink("")),
    "a path of None": ("PATH_REQUIRED", lambda: parquet_sink(None)),
    "a path with NUL": ("BAD_VALUE", lambda: parquet_sink("/data/a\0b")),
    "an unknown scheme": ("SCHEME", lambda: parquet_sink("foo://bucket/x")),
    "credentials": ("CREDENTIALS", lambda: parquet_sink("s3://user:pa55word@bucket/x")),
    "a format by name": ("BAD_VALUE", lambda: FileSink.for_bulk_format("/x", "parquet")),  # type: ignore[arg-type]
    "a policy by name": ("BAD_VALUE", lambda: parquet_sink("/x").with_rolling_policy("128MiB")),  # type: ignore[arg-type]
    "a part size of 0": ("BAD_VALUE", lambda: RollingPolicy.default_rolling_policy(part_size=0)),
    "a negative part size": ("BAD_VALUE", lambda: RollingPolicy.default_rolling_policy(part_size=-1)),
    "a part size in words": ("BAD_VALUE", lambda: RollingPolicy.default_rolling_policy(part_size="large")),
    "an infinite part size": ("BAD_VALUE", lambda: RollingPolicy.default_rolling_policy(part_size="1e400")),
    "an interval in words": (
        "BAD_VALUE",
        lambda: RollingPolicy.default_rolling_policy(rollover_interval="soon"),
    ),
    "no check interval": ("BAD_VALUE", lambda: parquet_sink("/x").with_bucket_check_interval(0)),
    "no records a part": ("BAD_VALUE", lambda: RollingPolicy.on_checkpoint_rolling_policy(max_rows=0)),
    "a bulk format over epochs": (
        "CONFLICT",
        lambda: parquet_sink("/x").with_rolling_policy(RollingPolicy.default_rolling_policy()),
    ),
    "a uid with a slash": ("BAD_VALUE", lambda: parquet_sink("/x").with_uid("a/b")),
    "no partition columns": ("BAD_VALUE", BucketAssigner.partition_bucket_assigner),
    "an empty expression": ("BAD_VALUE", lambda: BucketAssigner.expression_bucket_assigner(" ")),
    "an unknown zone": ("TIME_ZONE", lambda: BucketAssigner.date_time_bucket_assigner("yyyy", "Mars/Base")),
    "an unknown action": ("BAD_VALUE", lambda: parquet_sink("/x").on_new_query("ignore")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("code", "build"), BUILT.values(), ids=BUILT)
def test_a_sink_that_cannot_work_is_not_built(code: str, build: Callable[[], object]) -> None:
    """Options are wrong from the first line, and no secret comes back in the message."""
    with pytest.raises(ConfigError) as raised:
        build()
    assert raised.value.code == code
    assert "pa55word" not in str(raised.value)


# --- when a DataFrame comes

COLUMNS: dict[str, tuple[str, list[str], BucketAssigner]] = {
    "a missing column": ("BUCKET_COLUMN", ["1 AS id"], BucketAssigner.partition_bucket_assigner("day")),
    "columns that differ by case": (
        "DUPLICATE_COLUMN",
        ["1 AS id", "2 AS Day", "3 AS DAY"],
        BucketAssigner.partition_bucket_assigner("day"),
    ),
    "a column twice": (
        "DUPLICATE_COLUMN",
        ["1 AS id", "2 AS id"],
        BucketAssigner.base_path_bucket_assigner(),
    ),
    "columns that are one to Spark": (
        "DUPLICATE_COLUMN",
        ["1 AS a", "2 AS A"],
        BucketAssigner.base_path_bucket_assigner(),
    ),
    "a map as a bucket": (
        "BUCKET_TYPE",
        ["1 AS id", "map('a', 1) AS m"],
        BucketAssigner.partition_bucket_assigner("m"),
    ),
    "only bucket columns": ("NO_DATA_COLUMNS", ["1 AS id"], BucketAssigner.partition_bucket_assigner("id")),
    "a bucket by time that is none": (
        "BUCKET_TYPE",
        ["1 AS id"],
        BucketAssigner.date_time_bucket_assigner("yyyy", column="id"),
    ),
    "an expression Spark cannot resolve": (
        "EXPRESSION",
        ["1 AS id"],
        BucketAssigner.expression_bucket_assigner("concat(nowhere, 'x')"),
    ),
    "an expression that is several records": (
        "EXPRESSION",
        ["1 AS id"],
        BucketAssigner.expression_bucket_assigner("explode(array('a', 'b'))"),
    ),
    "an expression over other records": (
        "EXPRESSION",
        ["1 AS id"],
        BucketAssigner.expression_bucket_assigner("string(row_number() OVER (ORDER BY id))"),
    ),
    "an expression that leaves out records without a time": (
        "EXPRESSION",
        ["timestamp'2026-01-01' AS ts"],
        BucketAssigner.expression_bucket_assigner("date_format(window(ts, '1 hour').start, 'HH')"),
    ),
    "an expression of all records": (
        "EXPRESSION",
        ["1 AS id"],
        BucketAssigner.expression_bucket_assigner("string(max(id))"),
    ),
    "a column that the assigner adds": (
        "RESERVED_COLUMN",
        ["1 AS id", "'mine' AS __filesink_bucket"],
        BucketAssigner.expression_bucket_assigner("string(id)"),
    ),
    "a column with a name of ours": (
        "RESERVED_COLUMN",
        ["1 AS id", "'mine' AS __filesink_record"],
        BucketAssigner.base_path_bucket_assigner(),
    ),
    "an expression that is not text": (
        "BUCKET_TYPE",
        ["1 AS id"],
        BucketAssigner.expression_bucket_assigner("id"),
    ),
    "a type Parquet has not": (
        "TYPE",
        ["1 AS id", "parse_json('1') AS v"],
        BucketAssigner.base_path_bucket_assigner(),
    ),
    "an array of nothing": (
        "TYPE",
        ["1 AS id", "array() AS a"],
        BucketAssigner.base_path_bucket_assigner(),
    ),
    "a type Arrow has not": (
        "TYPE",
        ["1 AS id", "INTERVAL '1' MONTH AS i"],
        BucketAssigner.base_path_bucket_assigner(),
    ),
}


@pytest.mark.parametrize(("code", "select", "assigner"), COLUMNS.values(), ids=COLUMNS)
def test_columns_that_do_not_fit_are_refused(
    spark: SparkSession, tmp_path: Path, code: str, select: list[str], assigner: BucketAssigner
) -> None:
    """The schema is looked at before any job runs, and not even a directory is made."""
    df = spark.range(3).selectExpr(*select)
    with pytest.raises(SchemaError) as raised:
        parquet_sink(tmp_path / "out").with_bucket_assigner(assigner).build().write(df)
    assert raised.value.code == code
    assert not (tmp_path / "out").exists()


def test_intervals_are_written_where_spark_renders_them_and_refused_elsewhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Python would give an ``INTERVAL DAY`` the text of another type, of which Spark makes null."""
    df = spark.range(1).selectExpr("id", "INTERVAL '3' DAY AS d").coalesce(1)
    flat = BucketAssigner.base_path_bucket_assigner()
    sink = FileSink.for_row_format(tmp_path / "json", Encoder.json_lines()).with_bucket_assigner(flat).build()
    sink.write(df)
    assert [row.d.days for row in spark.read.schema(df.schema).json(str(tmp_path / "json")).collect()] == [3]
    sink = FileSink.for_row_format(tmp_path / "text", Encoder.simple_string_encoder())
    with pytest.raises(SchemaError, match=r"\[TYPE\] column 'd' of type INTERVAL DAY would be"):
        sink.with_bucket_assigner(flat).build().write(df.select("d"))
    assert not (tmp_path / "text").exists()


def test_a_base_path_that_is_a_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """And the file is left as it is."""
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ConfigError, match="PATH_NOT_DIR"):
        parquet_sink(file).build().write(spark.range(1))
    assert file.read_text() == "mine"


def test_a_base_path_that_cannot_be_made_is_refused(spark: SparkSession) -> None:
    """The kernel's own file system takes nobody's directories, not even those of root."""
    with pytest.raises(FilesinkError) as raised:
        parquet_sink("/proc/filesink-test").build().write(spark.range(1))
    assert "/proc/filesink-test" in str(raised.value)


# --- code of the user's


class Failing(RowEncoder):
    """Raises for one record."""

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """Fail in the second partition."""
        if row["id"] == ROWS - 1:
            raise KeyError("no such carrier")
        return b"x\n"


class NotBytes(RowEncoder):
    """Returns text."""

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """The wrong type."""
        return str(row)  # type: ignore[return-value]


class Locked(RowEncoder):
    """Holds what cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """Never called."""
        raise NotImplementedError


class FailingPolicy(CheckpointRollingPolicy):
    """A policy with a bug."""

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """Fail."""
        del part
        raise ZeroDivisionError


class Buckets(BucketAssigner):
    """Gives every record the same answer, or fails."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> Any:
        """The answer, as often as there are records."""
        del context
        if isinstance(self._answer, str | None):
            return pa.array([self._answer] * len(batch), pa.string())
        if isinstance(self._answer, Exception):
            raise self._answer
        raise LookupError


@pytest.mark.parametrize("encoder", [Failing(), NotBytes()], ids=["raises", "returns text"])
def test_an_encoder_that_fails_in_a_task_is_named_on_the_driver(
    spark: SparkSession, tmp_path: Path, encoder: RowEncoder
) -> None:
    """The error has its type back, says what the encoder has said, and nothing is visible or left."""
    with pytest.raises(EncoderError) as raised:
        row_sink(tmp_path, encoder).build().write(spark.range(0, ROWS, numPartitions=2))
    assert type(encoder).__name__ in raised.value.message
    assert isinstance(encoder, NotBytes) or "KeyError: 'no such carrier'" in raised.value.message
    assert outside.visible(tmp_path) == {}


BUCKETS = {
    "hidden": ("HIDDEN", "_x"),
    "upwards": ("RELATIVE", "a/../../b"),
    "null": ("NULL", None),
}


@pytest.mark.parametrize(("code", "bucket"), BUCKETS.values(), ids=BUCKETS)
def test_a_bucket_that_is_no_directory_is_refused(
    spark: SparkSession, tmp_path: Path, code: str, bucket: str | None
) -> None:
    """The task fails with the reason, and no directory is made anywhere."""
    sink = parquet_sink(tmp_path / "out").with_bucket_assigner(Buckets(bucket)).build()
    with pytest.raises(BucketError) as raised:
        sink.write(spark.range(0, ROWS, numPartitions=1))
    assert raised.value.code == code
    assert outside.everything(tmp_path) == {}


def test_an_assigner_or_policy_that_fails_is_named_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """User code of every kind raises the same kind of error."""
    assigner = parquet_sink(tmp_path).with_bucket_assigner(Buckets(1))
    policy = parquet_sink(tmp_path).with_rolling_policy(FailingPolicy())
    for builder, name in ((assigner, "Buckets"), (policy, "FailingPolicy")):
        with pytest.raises(EncoderError, match=name):
            builder.build().write(spark.range(0, ROWS, numPartitions=1))
    assert outside.visible(tmp_path) == {}


def test_code_that_cannot_be_sent_to_the_tasks_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Before the base path exists."""
    with pytest.raises(ConfigError, match="NOT_PICKLABLE"):
        row_sink(tmp_path / "out", Locked()).build().write(spark.range(1))
    assert not (tmp_path / "out").exists()


def test_several_lines_of_a_task_s_error_arrive(spark: SparkSession, tmp_path: Path) -> None:
    """An error of ours that user code raises in a task is the same on the driver, to its last line."""
    said = "first line\n\n  second line\nat the end"
    assigner = Buckets(EncoderError(said, code="MINE"))
    with pytest.raises(EncoderError) as raised:
        parquet_sink(tmp_path).with_bucket_assigner(assigner).build().write(spark.range(1))
    assert (raised.value.code, raised.value.message) == ("MINE", said)


def failing_listener(_partition: object) -> None:
    """A listener with a bug."""
    raise PermissionError(13, "Permission denied", "/reports")


def test_a_stream_shows_what_user_code_has_raised(spark: SparkSession, tmp_path: Path) -> None:
    """In the very text of Spark's exception: assigner, encoder, policy and listener."""
    inputs.add_file(tmp_path / "source", 0, rows=5)
    announcing = PartitionCommit(policies=[ListenerPolicy(failing_listener)])
    builders = {
        "KeyError: 'no such carrier'": parquet_sink(tmp_path / "1").with_bucket_assigner(
            Buckets(KeyError("no such carrier"))
        ),
        "Permission denied": parquet_sink(tmp_path / "2").with_partition_commit(announcing),
    }
    for number, (words, builder) in enumerate(builders.items()):
        df = inputs.flights(spark, tmp_path / "source")
        checkpoint = tmp_path / f"checkpoint-{number}"
        query = builder.build().start(df, checkpoint_location=checkpoint, available_now=True)
        with pytest.raises(StreamingQueryException) as raised:
            query.awaitTermination()
        ours = [line for line in str(raised.value).splitlines() if line.startswith("filesink.errors.")]
        assert words in ours[-1]
        assert words in str(raised.value.__cause__)
        assert "failed" in repr(query)


# --- arguments of the wrong type


def test_what_is_no_dataframe_is_refused(tmp_path: Path) -> None:
    """Through every door; a list of rows is told how to become one."""
    sink = parquet_sink(tmp_path / "out").build()
    for refused in ([1], None, "SELECT 1", pa.table({"a": [1]})):
        for call in (
            lambda: sink.write(refused),  # type: ignore[arg-type] # noqa: B023 - called at once
            lambda: sink.start(refused, checkpoint_location=tmp_path),  # type: ignore[arg-type] # noqa: B023
            lambda: sink.foreach_batch(refused, 0),  # type: ignore[arg-type] # noqa: B023
        ):
            with pytest.raises(ConfigError, match="takes a DataFrame of Spark, got") as raised:
                call()
            assert raised.value.code == "BAD_VALUE"
    assert not (tmp_path / "out").exists()


STARTED: dict[str, tuple[str, dict[str, Any]]] = {
    "no checkpoint": ("CHECKPOINT", {"checkpoint_location": None}),
    "an empty checkpoint": ("CHECKPOINT", {"checkpoint_location": ""}),
    "a number as checkpoint": ("CHECKPOINT", {"checkpoint_location": 5}),
    "bytes as checkpoint": ("CHECKPOINT", {"checkpoint_location": b"/x"}),
    "a store Spark has not": ("CHECKPOINT", {"checkpoint_location": "nowhere://x/y"}),
    "a number as interval": ("TRIGGER", {"processing_time": 5}),
    "words as interval": ("TRIGGER", {"processing_time": "five"}),
    "false as trigger": ("TRIGGER", {"available_now": False}),
    "text as trigger": ("TRIGGER", {"once": "yes"}),
    "a name of ours as trigger": ("TRIGGER", {"report": 3}),
    "a number as name": ("BAD_VALUE", {"query_name": 3}),
    "an empty name": ("BAD_VALUE", {"query_name": ""}),
}


@pytest.mark.parametrize(("code", "arguments"), STARTED.values(), ids=STARTED)
def test_a_query_that_cannot_be_started_is_refused(
    spark: SparkSession, tmp_path: Path, code: str, arguments: dict[str, Any]
) -> None:
    """With an error of ours, whoever finds out; nothing is written."""
    df = spark.readStream.format("rate").load()
    with pytest.raises(ConfigError) as raised:
        parquet_sink(tmp_path / "out").build().start(
            df, **{"checkpoint_location": tmp_path / "checkpoint", **arguments}
        )
    assert raised.value.code == code
    assert outside.everything(tmp_path) == {}


def test_a_checkpoint_of_the_wrong_type_is_refused_by_recover(tmp_path: Path) -> None:
    """As it is by start."""
    with pytest.raises(ConfigError) as raised:
        parquet_sink(tmp_path / "out").build().recover(lost="rewrite", checkpoint_location=5)  # type: ignore[arg-type]
    assert raised.value.code == "CHECKPOINT"


@pytest.mark.parametrize(
    "method", ["write", "start", "foreach_batch", "finish", "recover", "plan_sweep", "sweep"]
)
def test_a_builder_says_that_it_is_none(method: str) -> None:
    """Who forgets build() is told so."""
    with pytest.raises(ConfigError, match=rf"builder\.build\(\)\.{method}\(…\)") as raised:
        getattr(parquet_sink("/x"), method)("df", 0, checkpoint_location="/y")
    assert raised.value.code == "NOT_BUILT"


@pytest.mark.parametrize("method", ["read", "read_stream"])
def test_a_builder_of_a_source_says_that_it_is_none(method: str) -> None:
    """As that of a sink does."""
    builder = FileSource.for_bulk_file_format(ParquetWriterFactory(), "/x")
    with pytest.raises(ConfigError, match=rf"{method}\(\) is a method of the source.*build\(\)") as raised:
        getattr(builder, method)("session")
    assert raised.value.code == "NOT_BUILT"
