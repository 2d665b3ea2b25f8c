"""A writer that waits for answers which never come ends with its job, by itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from pyspark import InheritableThread

from filesink import FilesinkError, SparkSink
from filesink.api import SinkWriter, WriterContext
from tests.sinks.letters import Letters, LetterWriter
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
GROUP = "to be cancelled"


class Slow(LetterWriter):
    """Waits for a timer before it reports, long enough for many beats of the pulse."""

    def __init__(self, context: WriterContext) -> None:
        super().__init__()
        self._context = context

    def prepare_commit(self, epoch):
        done: list[int] = []
        self._context.timers.register(self._context.clock.now_ms() + 1_000, done.append)
        while not done:
            self._context.mailbox.yield_()
        return super().prepare_commit(epoch)


@dataclass(frozen=True)
class Patient(Letters):
    """Its writers take a second."""

    def create_writer(self, context):
        return Slow(context)


class Waiting(SinkWriter[None, str]):
    """Waits in ``write`` for a thread that never answers; notes what is called then."""

    def __init__(self, directory: Path) -> None:
        self._notes = directory
        self._stop = threading.Event()
        self._client = threading.Thread(target=self._stop.wait, name="client")
        self._client.start()

    def write(self, batch, context):
        del batch
        (self._notes / f"waiting-{os.getpid()}").touch()
        while True:
            context.mailbox.yield_()

    def prepare_commit(self, epoch):
        raise NotImplementedError

    def abort_prepare(self):
        (self._notes / "aborted").touch()

    def close(self):
        self._stop.set()
        self._client.join()
        left = [thread.name for thread in threading.enumerate() if thread.name == "client"]
        (self._notes / f"closed-{len(left)}").touch()


@dataclass(frozen=True)
class Silent(Letters):
    """Its writers wait for ever."""

    def create_writer(self, context):
        del context
        return Waiting(self.directory / "notes")


@pytest.fixture
def silent(tmp_path: Path) -> Silent:
    """A sink with a place for notes."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "box").mkdir()
    return Silent(tmp_path)


def waiting(sink: Silent) -> list[int]:
    """Process ids of the workers whose writers have begun to wait."""
    return [int(path.name.partition("-")[2]) for path in (sink.directory / "notes").glob("waiting-*")]


def check_ended(sink: Silent, cancel: Callable[[], object]) -> None:
    """When its writers wait, ``cancel``; each ends in order, not by a kill, and its process is gone."""
    outside.eventually(lambda: waiting(sink), seconds=120)
    cancel()
    notes = sink.directory / "notes"
    outside.eventually((notes / "closed-0").exists, seconds=60)
    assert (notes / "aborted").exists()
    outside.eventually(lambda: not any(map(psutil.pid_exists, waiting(sink))), seconds=60)


def test_a_batch_write_is_cancelled(spark: SparkSession, silent: Silent) -> None:
    """Spark alone would kill the worker seconds later, in the middle of what it does."""
    before = threading.active_count()
    raised: list[Exception] = []

    def write() -> None:
        spark.sparkContext.setJobGroup(GROUP, "a write")
        try:
            SparkSink(silent).write(spark.range(2, numPartitions=1))
        except Exception as error:  # noqa: BLE001 - looked at below
            raised.append(error)

    thread = InheritableThread(target=write)
    thread.start()
    check_ended(silent, lambda: spark.sparkContext.cancelJobGroup(GROUP))
    thread.join(60)
    assert "cancelled" in str(raised[0])
    assert not isinstance(raised[0], FilesinkError), "the task's own error is nobody's business"
    assert threading.active_count() == before


def test_a_stream_is_stopped(spark: SparkSession, silent: Silent) -> None:
    """``stop`` cancels the job of the batch; nothing of it is committed."""
    inputs.add_file(silent.directory / "source", 0, rows=2)
    query = SparkSink(silent).start(
        inputs.flights(spark, silent.directory / "source"),
        checkpoint_location=silent.directory / "checkpoint",
        available_now=True,
    )
    check_ended(silent, query.stop)
    assert not query.isActive
    assert silent.arrived() == []


def test_a_writer_that_waits_and_is_not_cancelled_is_not_disturbed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What it has asked Spark meanwhile is no result of its task."""
    (tmp_path / "box").mkdir()
    sink = Patient(tmp_path)
    df = spark.range(4, numPartitions=2).selectExpr("cast(id AS string) AS value")
    assert SparkSink(sink).write(df).rows == 4
    assert sink.arrived() == ["0", "1", "2", "3"]
