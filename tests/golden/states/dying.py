"""The drivers that leave the frozen states behind: those that are stopped, and those that die.

    python -m tests.golden.states.dying <state> <directory>

runs the last driver of a state: it ends by ``os._exit`` in the midst of its work. See ``make_states``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

import compaction.offline.finished
from compaction import compact
from filesink import FileSink, FileSinkBuilder
from filesink.spark.engine import SparkEngine
from filesink.storage.address import StoreAddress
from filesink.storage.api import Store
from filesink.storage.faulty import FaultyStore
from formats import ParquetWriterFactory
from tests.golden.states.pieces import FIRST_OF_TWO, STREAMS, Stream, named, parquet, rows
from tests.spark import sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DIED = 9  # exit status of a driver that died where it was to die
MANY = 130  # micro-batches: more than a chain keeps


@dataclass(frozen=True)
class DyingAddress:
    """Opens a store that ends the process at one call: that of ``operation`` after ``before`` others."""

    address: Callable[[], Store]
    operation: str
    before: int = 0
    path: str = ""  # how it ends
    seen: list[str] = field(default_factory=list)

    def __call__(self) -> Store:
        """See ``StoreAddress``."""
        return FaultyStore(self.address(), self._plan)

    def _plan(self, operation: str, path: str) -> None:
        if operation == self.operation and path.endswith(self.path):
            self.seen.append(path)
            if len(self.seen) > self.before:
                os._exit(_DIED)


def dying(builder: FileSinkBuilder, operation: str, **where: object) -> FileSink:
    """A sink whose driver dies in the midst of its next epoch."""
    sink = builder.build()
    sink._tiers = replace(sink._tiers, address=DyingAddress(sink._tiers.address, operation, **where))
    sink._engine = SparkEngine(sink._tiers)
    return sink


def one_batch(sink: FileSink, df: DataFrame, checkpoint: Path) -> None:
    """One micro-batch, after which the input has not ended: what is open stays open."""
    query = df.writeStream.foreachBatch(sink.foreach_batch).trigger(once=True)
    query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


def run(spark: SparkSession, directory: Path, stream: Stream, times: int = 1) -> None:
    """So many starts of a query, with one micro-batch each."""
    for _ in range(times):
        if stream.options is not None:
            stream.through_data_source(spark, directory)
            continue
        sink = stream.sink(directory / "base").build()
        one_batch(sink, stream.frame(spark), directory / "checkpoint")


class _EnoughError(Exception):
    """The query has done what it was to do."""


def run_many(spark: SparkSession, directory: Path, stream: Stream) -> None:
    """``MANY`` micro-batches in one run, which fails in the next: that is planned, and no more."""
    sink = stream.sink(directory / "base").build()

    def write(df: DataFrame, batch_id: int) -> None:
        if batch_id == MANY:
            raise _EnoughError
        sink.foreach_batch(df, batch_id)

    query = stream.frame(spark).writeStream.foreachBatch(write)
    try:
        query.option("checkpointLocation", str(directory / "checkpoint")).start().awaitTermination()
    except StreamingQueryException as failed:
        if _EnoughError.__name__ not in str(failed):
            raise


# --- the deaths: each in a process of its own


def die_in_stream(spark: SparkSession, directory: Path, name: str, operation: str, **where: object) -> None:
    """In a micro-batch of a state's query."""
    sink = dying(STREAMS[name].sink(directory / "base"), operation, **where)
    one_batch(sink, STREAMS[name].frame(spark), directory / "checkpoint")


def die_as_first(spark: SparkSession, directory: Path) -> None:
    """In the first micro-batch of the first of two queries."""
    sink = dying(FIRST_OF_TWO.sink(directory / "base"), "publish")
    one_batch(sink, FIRST_OF_TWO.frame(spark), directory / "first-checkpoint")


def die_in_append(
    spark: SparkSession, directory: Path, sink: Callable[[Path], FileSinkBuilder], txn_id: str | None = None
) -> None:
    """In a batch write that replaces nothing."""
    dying(sink(directory / "base"), "publish").write(rows(spark, 4, 8), txn_id=txn_id)


def die_in_overwrite(spark: SparkSession, directory: Path, operation: str) -> None:
    """In an overwrite with a ``txn_id``."""
    dying(named(directory / "base"), operation).write(rows(spark, 4, 8), mode="overwrite", txn_id="a")


def die_in_compaction(spark: SparkSession, directory: Path) -> None:
    """In an offline compaction."""
    del spark
    compaction.offline.finished.StoreAddress = lambda **where: DyingAddress(StoreAddress(**where), "publish")
    compact(directory / "base", ParquetWriterFactory())


HALF_PUBLISHED = {"operation": "publish", "before": 2}
DEATHS: dict[str, Callable[[SparkSession, Path], None]] = {
    "stream-decided": partial(die_in_stream, name="stream-decided", operation="publish"),
    "stream-half-published": partial(die_in_stream, name="stream-half-published", **HALF_PUBLISHED),
    "stream-taken-back": partial(die_in_stream, name="stream-taken-back", **HALF_PUBLISHED),
    "announcements-decided": partial(
        die_in_stream, name="announcements-decided", operation="put_if_absent", path="_SUCCESS"
    ),
    "two-queries-folded": die_as_first,
    "batch-plain-decided": partial(die_in_append, sink=parquet),
    "batch-with-uid-decided": partial(die_in_append, sink=named),
    "txn-decided": partial(die_in_append, sink=named, txn_id="b"),
    "overwrite-decided": partial(die_in_overwrite, operation="publish"),
    "overwrite-half-done": partial(die_in_overwrite, operation="delete_if_unchanged"),
    "overwrite-taken-back": partial(die_in_overwrite, operation="publish"),
    "compaction-decided": die_in_compaction,
}


def die(directory: Path, name: str) -> None:
    """Have a driver die; returns when it is dead, and its JVM with it."""
    command = [sys.executable, "-m", "tests.golden.states.dying", name, str(directory)]
    process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - this program
    status = process.wait()
    with suppress(ProcessLookupError):  # it was gone already
        os.killpg(process.pid, signal.SIGKILL)
    if status != _DIED:
        raise RuntimeError(f"the driver of '{name}' was to die and ended with {status}")


def lose_hidden(base: Path) -> None:
    """Somebody removes files that are decided and not published."""
    for path in base.rglob(".*.inprogress.*"):
        if path.stat().st_nlink == 1:
            path.unlink()


if __name__ == "__main__":
    DEATHS[sys.argv[1]](sessions.start(), Path(sys.argv[2]))
