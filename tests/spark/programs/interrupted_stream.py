"""A stream whose driver is stopped at a chosen step of one epoch. Started twice by tests.

    python -m tests.spark.programs.interrupted_stream <query> <kill|block> <decide|commit> <directory>

At the chosen step of its third epoch the first run of the program either kills itself, with its JVM,
or waits until the test has made the file ``go-on``. Says ``blocked`` and ``done``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filesink import BucketAssigner, FileSink
from filesink.api import (
    EpochContext,
    PreCommitStage,
    Prepared,
    Sink,
    SinkCommitter,
    SinkWriter,
    WriterContext,
)
from filesink.spark.engine import SparkEngine
from formats import ParquetWriterFactory
from tests.spark import inputs, sessions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

INTERRUPTED = 2  # epochs before it


@dataclass(frozen=True)
class Interruption:
    """Stops the driver once per directory."""

    how: str
    directory: Path

    def __call__(self) -> None:
        """Kill this process, or wait for the test; only the first caller does."""
        try:
            (self.directory / "interrupted").touch(exist_ok=False)
        except FileExistsError:
            return
        sessions.say("blocked")
        if self.how == "kill":
            os.killpg(0, signal.SIGKILL)
        while not (self.directory / "go-on").exists():
            time.sleep(0.05)


class StoppingCommitter(SinkCommitter[Any]):
    """Publishes half of an epoch and stops."""

    def __init__(self, inner: SinkCommitter[Any], stop: Interruption) -> None:
        self._inner, self._stop = inner, stop
        self._epochs = 0

    def commit(self, committables: Sequence[Any]) -> list[Any]:
        """Publish the first half, stop, publish all: a committer may be called again with the same."""
        if self._epochs == INTERRUPTED:
            self._inner.commit(committables[: len(committables) // 2])
            self._stop()
        self._epochs += 1
        return self._inner.commit(committables)

    def abort(self, committables: Sequence[Any]) -> None:
        """See ``SinkCommitter.abort``."""
        self._inner.abort(committables)


class StoppingStage(PreCommitStage[Any, Any]):
    """Stops when all files are ready and nothing is decided."""

    def __init__(self, stop: Interruption) -> None:
        self._stop = stop

    def prepare(self, epoch: EpochContext, prepared: Prepared[Any, Any]) -> Prepared[Any, Any]:
        """Change nothing."""
        if epoch.slot == INTERRUPTED:
            self._stop()
        return prepared


@dataclass(frozen=True)
class StoppingSink(Sink[Any, Any, Any]):
    """A file sink that is stopped at a step of its choice."""

    inner: Sink[Any, Any, Any]
    step: str
    stop: Interruption

    def create_writer(self, context: WriterContext) -> SinkWriter[Any, Any]:
        """See ``Sink.create_writer``."""
        return self.inner.create_writer(context)

    def restore_writer(self, context: WriterContext, states: Sequence[Any]) -> SinkWriter[Any, Any]:
        """See ``Sink.restore_writer``."""
        return self.inner.restore_writer(context, states)

    def create_committer(self) -> SinkCommitter[Any]:
        """The committer, or one that stops."""
        committer = self.inner.create_committer()
        return StoppingCommitter(committer, self.stop) if self.step == "commit" else committer

    def pre_commit_stages(self) -> Sequence[PreCommitStage[Any, Any]]:
        """The stages, and one that stops."""
        stages = tuple(self.inner.pre_commit_stages())
        return (*stages, StoppingStage(self.stop)) if self.step == "decide" else stages

    def open_ledger(self, sink_id: str) -> Any:
        """See ``Sink.open_ledger``."""
        return self.inner.open_ledger(sink_id)

    @property
    def committable_codec(self) -> Any:
        """See ``Sink.committable_codec``."""
        return self.inner.committable_codec

    @property
    def state_codec(self) -> Any:
        """See ``Sink.state_codec``."""
        return self.inner.state_codec

    def derived_columns(self) -> Mapping[str, str]:
        """See ``Sink.derived_columns``."""
        return self.inner.derived_columns()

    def prepare(self, schema: pa.Schema) -> None:
        """See ``Sink.prepare``."""
        self.inner.prepare(schema)

    def sweep(self, record: Any, touched: Sequence[Any] | None) -> int:
        """See ``Sink.sweep``."""
        return self.inner.sweep(record, touched)


def flights(spark: SparkSession, source: Path) -> DataFrame:
    """The rows as they come."""
    return inputs.flights(spark, source).repartition(2)


def counts(spark: SparkSession, source: Path) -> DataFrame:
    """Ten rows a day; a day is counted, and written once, when the watermark has passed it."""
    events = inputs.flights(spark, source).selectExpr("timestamp_seconds(86400 * (1 + id div 10)) AS at")
    grouped = events.withWatermark("at", "0 seconds").groupBy("at")
    return grouped.count().selectExpr("unix_date(cast(at AS date)) AS id", "`count` AS flights")


QUERIES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {"flights": flights, "counts": counts}


def main(query: str, how: str, step: str, directory: Path) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start(
        spark__sql__streaming__stateStore__providerClass=(
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        spark__sql__streaming__stateStore__checkpointFormatVersion="2",
    )
    files = (
        FileSink.for_bulk_format(directory / "out", ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    stop = Interruption(how, directory)
    at_work = threading.Lock()
    engine: SparkEngine[Any, Any, Any] = SparkEngine(StoppingSink(files._tiers, step, stop))

    def foreach_batch(df: DataFrame, batch_id: int) -> None:
        with at_work:
            engine.foreach_batch(df, batch_id)

    stream = QUERIES[query](spark, directory / "source").writeStream.foreachBatch(foreach_batch)
    stream = stream.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    try:
        stream.start().awaitTermination()
    finally:
        # Without its JVM this thread is free at once, while the other may still be at work.
        with at_work:
            pass
    sessions.say("done")


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
