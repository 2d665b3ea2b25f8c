"""What ``filesink.spark.query_internals`` relies on, of Spark's private parts, in the installed version.

Found the same on Spark 4.1.4 and 4.3.0. Run these first with a new version.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from filesink.errors import StorageError
from filesink.spark.input.job import typed
from filesink.spark.query_internals import QueryRun, current_ids, ended_by_itself, is_active, open_run
from tests.spark import inputs
from tests.spark.checkpoints import forget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from filesink.ledger.record import MicroBatch

pytestmark = pytest.mark.spark


class Watched:
    """A stream of two batches that notes what a sink could see while they run."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark, self._directory = spark, directory
        for number in range(2):
            inputs.add_file(directory / "source", number, rows=5)
        self.runs: list[QueryRun] = []
        self.active: list[bool] = []
        self.batches: list[MicroBatch] = []

    def run(self) -> StreamingQuery:
        """Run to the end."""
        df = inputs.flights(self._spark, self._directory / "source")
        stream = df.writeStream.foreachBatch(self._look).trigger(availableNow=True)
        query = stream.option("checkpointLocation", str(self.checkpoint)).start()
        query.awaitTermination()
        return query

    @property
    def checkpoint(self) -> Path:
        """Where Spark keeps its logs."""
        return self._directory / "checkpoint"

    def _look(self, df: DataFrame, batch_id: int) -> None:
        run = open_run(df, current_ids(df))
        self.runs.append(run)
        self.active.append(is_active(df.sparkSession, run.ids.query_id))
        self.batches.append(run.micro_batch(batch_id)[0])


def test_a_batch_knows_its_query(spark: SparkSession, tmp_path: Path) -> None:
    """Ids, checkpoint and whether the query is active are those that Spark's own handle tells."""
    watched = Watched(spark, tmp_path)
    query = watched.run()
    assert {run.ids.query_id for run in watched.runs} == {query.id}
    assert {run.ids.run_id for run in watched.runs} == {query.runId}
    assert {run.checkpoint for run in watched.runs} == {watched.checkpoint.as_uri().replace("///", "/")}
    assert watched.active == [True, True]
    assert not is_active(spark, query.id)


def test_the_offsets_of_a_batch_stand_before_it_runs_and_stay_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A fingerprint tells batches apart, and a replay gives the same, also under other settings."""
    watched = Watched(spark, tmp_path)
    watched.run()
    assert [batch.batch_id for batch in watched.batches] == [0, 1]
    assert len({batch.fingerprint for batch in watched.batches}) == 2
    forget(watched.checkpoint, "commits", 1)
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        watched.run()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert watched.batches[2] == watched.batches[1]
    assert watched.runs[2].ids.query_id == watched.runs[1].ids.query_id
    assert watched.runs[2].ids.run_id != watched.runs[1].ids.run_id


def test_an_offset_log_that_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """A damaged entry is an error of ours that names it, with what Java says, and no raw one of Java's."""

    class Damaging(Watched):
        """Damages the entry of each batch before it is read."""

        def _look(self, df: DataFrame, batch_id: int) -> None:
            checksum = self.checkpoint / "offsets" / f".{batch_id}.crc"
            checksum.write_bytes(checksum.read_bytes()[:-4] + b"none")
            super()._look(df, batch_id)

    with pytest.raises(
        StreamingQueryException, match=r"filesink\.errors\.StorageError: \[OFFSET_LOG\]"
    ) as raised:
        Damaging(spark, tmp_path).run()
    ours = typed(raised.value)
    assert isinstance(ours, StorageError)
    assert "offsets/0' cannot be read: org.apache.hadoop.fs.ChecksumException" in ours.message


def asleep(batches):
    """A task that takes longer than any test."""
    time.sleep(600)
    yield from batches


@pytest.mark.parametrize("trigger", ["availableNow", "once"])
def test_an_end_is_told_from_a_stop(spark: SparkSession, tmp_path: Path, trigger: str) -> None:
    """A query that is stopped while it works has not ended by itself; that which goes on from there has."""
    inputs.add_file(tmp_path / "source", 0, rows=5)
    at_work = threading.Event()

    def run(function: Callable[[DataFrame, int], object]) -> StreamingQuery:
        df = inputs.flights(spark, tmp_path / "source")
        stream = df.writeStream.foreachBatch(function).trigger(**{trigger: True})
        return stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def work(df: DataFrame, _batch_id: int) -> None:
        at_work.set()
        df.mapInArrow(asleep, df.schema).collect()

    stopped = run(work)
    assert at_work.wait(60)
    stopped.stop()
    stopped.awaitTermination()
    assert not ended_by_itself(stopped)
    for _ in range(2):  # with a batch that is left, and without any
        ended = run(lambda _df, _batch_id: None)
        ended.awaitTermination()
        assert ended_by_itself(ended)
