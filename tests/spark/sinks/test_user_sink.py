"""Anybody's sink, driven by the same engine: exactly once for two dozen lines of code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink.api import Sink, SinkCommitter, SinkWriter, WriterContext
from filesink.ledger.ledger import Ledger
from filesink.spark.engine import SparkEngine
from filesink.storage.open import open_store
from tests.spark import inputs
from tests.spark.checkpoints import forget

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 30


class JsonCodec:
    """Strings as JSON."""

    version = 1

    def encode(self, values: Sequence[str]) -> bytes:
        """See ``Codec``."""
        return json.dumps(values).encode()

    def decode(self, version: int, data: bytes) -> list[str]:
        """See ``Codec``."""
        assert version == self.version
        return list(json.loads(data))


class Ids(SinkWriter[None, str]):
    """Keeps the ids of its partition in memory; what it reports is all there is."""

    def __init__(self) -> None:
        self._ids: list[int] = []

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """See ``SinkWriter``."""
        context.metrics.add("batches", 1)
        self._ids += batch["id"].to_pylist()

    def prepare_commit(self, epoch: int) -> list[str]:
        """One committable: slot and ids."""
        return [json.dumps({"slot": epoch, "ids": self._ids})] if self._ids else []


@dataclass(frozen=True)
class Inbox(SinkCommitter[str]):
    """Puts each committable into a file named by its content, so that it may be put there again."""

    directory: Path

    def commit(self, committables: Sequence[str]) -> list[str]:
        """See ``SinkCommitter``."""
        for text in committables:
            value = json.loads(text)
            (self.directory / f"{value['slot']}-{min(value['ids'])}").write_text(text)
        return []


@dataclass(frozen=True)
class InboxSink(Sink[None, str, None]):
    """The whole sink."""

    directory: Path
    uid: str | None = None
    committable_codec = JsonCodec()

    def create_writer(self, context: WriterContext) -> Ids:
        """See ``Sink``."""
        del context
        return Ids()

    def create_committer(self) -> Inbox:
        """See ``Sink``."""
        return Inbox(self.directory / "inbox")

    def open_ledger(self, sink_id: str) -> Ledger:
        """See ``Sink``."""
        return Ledger(open_store(self.directory, {}), sink_id)


@pytest.fixture
def sink(tmp_path: Path) -> InboxSink:
    """A sink below the test's directory."""
    (tmp_path / "inbox").mkdir()
    return InboxSink(tmp_path)


def received(sink: InboxSink) -> list[int]:
    """The ids of all files of the inbox; sorted."""
    texts = [path.read_text() for path in (sink.directory / "inbox").iterdir()]
    return sorted(number for text in texts for number in json.loads(text)["ids"])


def test_a_batch_write(spark: SparkSession, sink: InboxSink) -> None:
    """Every row arrives, once, and a txn_id that comes back is known."""
    engine = SparkEngine(sink)
    outcome = engine.write(spark.range(0, 100, numPartitions=3), txn_id="a")
    assert received(sink) == list(range(100))
    assert (outcome.rows, outcome.metrics["batches"], len(outcome.committables)) == (100, 3, 3)
    assert SparkEngine(sink).write(spark.range(0, 100), txn_id="a").replayed
    assert received(sink) == list(range(100))


def test_a_stream_and_its_replay(spark: SparkSession, sink: InboxSink) -> None:
    """Two micro-batches arrive; when Spark forgets that the second was done, nothing comes twice."""
    source, checkpoint = sink.directory / "source", sink.directory / "checkpoint"
    for number in range(2):
        inputs.add_file(source, number, rows=ROWS)
    for replayed in ([False, False], [True]):
        query = SparkEngine(sink).start(
            inputs.flights(spark, source), checkpoint_location=str(checkpoint), available_now=True
        )
        query.awaitTermination()
        assert received(sink) == list(range(2 * ROWS))
        assert [outcome.replayed for outcome in query.reports] == replayed
        forget(checkpoint, "commits", 1)
