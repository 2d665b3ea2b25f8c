"""When Spark brings a micro-batch back: nothing is written twice, and other input is refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from filesink import FileSink
from tests.spark import inputs, outside
from tests.spark.checkpoints import forget
from tests.spark.programs.flights_stream import parquet_sink, text_sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 60
FILES = 3


class Stream:
    """One stream from a source of three files; ``run`` runs it to its end, as often as wanted."""

    def __init__(self, spark: SparkSession, directory: Path, *, text: bool = False) -> None:
        self.spark = spark
        self.source, self.base, self.checkpoint = (
            directory / name for name in ("source", "out", "checkpoint")
        )
        for number in range(FILES):
            inputs.add_file(self.source, number, rows=ROWS)
        self.sink = self.new_sink(text=text)
        self.shape: Callable[[DataFrame], DataFrame] = inputs.as_lines if text else lambda df: df

    def new_sink(self, *, text: bool = False) -> FileSink:
        """The sink as a restarted driver makes it."""
        return text_sink(self.base) if text else parquet_sink(self.base)

    def run(self) -> None:
        """Run to the end of the input."""
        df = self.shape(inputs.flights(self.spark, self.source))
        self.sink.start(df, checkpoint_location=self.checkpoint, available_now=True).awaitTermination()

    def run_by_function(self) -> None:
        """The same as the user starts it who calls the sink from foreachBatch."""
        df = inputs.flights(self.spark, self.source)
        writer = df.writeStream.foreachBatch(self.sink.foreach_batch).trigger(availableNow=True)
        writer.option("checkpointLocation", str(self.checkpoint)).start().awaitTermination()

    def forget(self, log: str, *numbers: int) -> None:
        """See ``checkpoints.forget``."""
        forget(self.checkpoint, log, *numbers)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    """A Parquet stream that has come to its end once."""
    stream = Stream(spark, tmp_path)
    stream.run()
    return stream


@pytest.mark.parametrize("numbers", [(FILES - 1,), (FILES - 1, FILES - 2)], ids=["one", "two"])
def test_a_lost_commit_entry_changes_nothing(stream: Stream, numbers: tuple[int, ...]) -> None:
    """Spark runs the batch again and not a byte below the base path changes, the ledger's included."""
    before = outside.everything(stream.base)
    stream.forget("commits", *numbers)
    stream.sink = stream.new_sink()
    stream.run()
    assert outside.everything(stream.base) == before
    assert (stream.checkpoint / "commits" / str(FILES - 1)).exists()


def test_a_replay_of_open_parts_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The same where rows of the batch lie in parts that were open then."""
    stream = Stream(spark, tmp_path, text=True)
    stream.run()
    before = outside.everything(stream.base)
    stream.forget("commits", FILES - 1)
    stream.sink = stream.new_sink(text=True)
    stream.run()
    assert outside.everything(stream.base) == before


def test_a_query_that_starts_again_in_the_same_process_replays(spark: SparkSession, tmp_path: Path) -> None:
    """The same sink object in foreachBatch: another run of the query is no second call for a batch."""
    stream = Stream(spark, tmp_path)
    stream.run_by_function()
    before = outside.everything(stream.base)
    stream.forget("commits", FILES - 1)
    stream.run_by_function()
    assert outside.everything(stream.base) == before
    assert outside.parquet_ids(stream.base) == list(range(FILES * ROWS))


def test_a_replay_with_other_partitions_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Neither names nor the recognition of a batch depend on how Spark cuts it."""
    stream = Stream(spark, tmp_path)
    before: dict[str, outside.Identity] = {}
    for partitions, adaptive in (("2", "false"), ("5", "false"), ("7", "true")):
        # Spark takes its own setting from the checkpoint, so the query says the number as well.
        stream.shape = lambda df, number=int(partitions): df.repartition(number, "id")
        with settings(
            spark,
            **{"spark.sql.shuffle.partitions": partitions, "spark.sql.adaptive.enabled": adaptive},
        ):
            stream.run()
        before = before or outside.everything(stream.base)
        assert outside.everything(stream.base) == before
        stream.forget("commits", FILES - 1)
    assert outside.parquet_ids(stream.base) == list(range(FILES * ROWS))


@pytest.mark.parametrize("kept", [1, 2])
def test_a_checkpoint_that_was_rolled_back_is_refused(stream: Stream, kept: int) -> None:
    """Other rows under a batch id that is taken are neither lost nor written: the query stops."""
    before = outside.everything(stream.base)
    for log in ("offsets", "commits"):
        stream.forget(log, *range(kept, FILES))
    inputs.add_file(stream.source, FILES, rows=ROWS)
    stream.sink = stream.new_sink()
    with pytest.raises(StreamingQueryException, match=r"CheckpointMismatchError: \[CHECKPOINT_MISMATCH\]"):
        stream.run()
    assert outside.everything(stream.base) == before


def test_a_replay_with_other_rows_is_refused(stream: Stream) -> None:
    """A query that was changed, or never was deterministic, does not lose rows in silence."""
    before = outside.everything(stream.base)
    stream.forget("commits", FILES - 1)
    stream.shape = lambda df: df.where(f"id <> {(FILES - 1) * ROWS}")
    with pytest.raises(StreamingQueryException, match=r"ReplayMismatchError: \[REPLAY_MISMATCH\]"):
        stream.run()
    assert outside.everything(stream.base) == before


def test_keep_first_keeps_what_was_committed_and_says_so(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """Who knows that the query is not deterministic gets the first result and a warning."""
    before = outside.everything(stream.base)
    stream.forget("commits", FILES - 1)
    stream.shape = lambda df: df.where(f"id <> {(FILES - 1) * ROWS}")
    stream.sink = (
        FileSink(stream.sink._builder.on_replay_mismatch("keep_first"))  # the very sink, but for this
    )
    with caplog.at_level(logging.WARNING, "filesink"):
        stream.run()
    assert f"was committed with {ROWS} rows, its replay has {ROWS - 1}" in caplog.text
    assert outside.everything(stream.base) == before


class settings:  # noqa: N801 - reads as a function
    """Settings of a session for the length of a block."""

    def __init__(self, spark: SparkSession, **values: str) -> None:
        self._spark = spark
        self._values = values
        self._before = {name: spark.conf.get(name) for name in values}

    def __enter__(self) -> None:
        for name, value in self._values.items():
            self._spark.conf.set(name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            self._spark.conf.set(name, str(value))
