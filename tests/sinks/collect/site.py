"""A path of ``CollectSink``, with drivers of its epochs that need no Spark, and clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from filesink import CollectPosition, CollectResults, CollectSink
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.ledger.identity import COLLECTED, append_sink_id, stream_sink_id
from filesink.ledger.record import BatchWrite
from filesink.ports import Ports, SerialRunner
from filesink.sinks.collect.marks import Marks
from filesink.sinks.collect.results import Acknowledge, Taking, beginning
from filesink.sinks.collect.stored import Stored
from filesink.storage.api import Store
from filesink.storage.open import open_store
from filesink.system import SystemClock, SystemIds
from tests.fakes import QUERY, FakeJob, micro_batch

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@dataclass
class SteppingClock:
    """Time passes only while somebody sleeps, and then ``meanwhile`` happens."""

    meanwhile: Callable[[], object] = lambda: None
    now: int = 0

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(1, round(seconds * 1000))
        self.meanwhile()


def in_turn(*steps: Callable[[], object]) -> Callable[[], None]:
    """Does the next step each time it is called."""
    left = iter(steps)

    def do_next() -> None:
        next(left)()

    return do_next


def rows(*ids: int) -> pa.RecordBatch:
    """One record for each id."""
    return pa.RecordBatch.from_pydict({"id": list(ids), "name": [f"n{one}" for one in ids]}, SCHEMA)


@dataclass
class Site:
    """The path, or its URI, and how its sink is made."""

    path: Any
    options: dict[str, Any] = field(default_factory=dict)
    clock: Any = field(default_factory=SystemClock)

    def sink(self) -> CollectSink:
        """As any process makes it."""
        return CollectSink(self.path, **self.options)

    def loop(self, sink_id: str = stream_sink_id(COLLECTED, QUERY)) -> EpochLoop[Any, Any, Any]:
        """A driver that knows nothing of others."""
        tiers = self.sink()._sink
        tiers.prepare(SCHEMA)
        return EpochLoop(tiers, tiers.open_ledger(sink_id), ports=self.ports(), options=EpochOptions())

    def ports(self) -> Ports:
        """The world of a driver."""
        return Ports(clock=self.clock, ids=SystemIds(), runner=SerialRunner())

    def stream(self, batch: int, *tasks: Sequence[int], **of_job: Any) -> Outcome[Any]:
        """A micro-batch, with a task for each sequence of ids."""
        job = replace(self.job([rows(*ids)] for ids in tasks), **of_job)
        return self.loop().run(micro_batch(batch), job)

    def batch(self, *tasks: Sequence[int]) -> Outcome[Any]:
        """A batch write."""
        cause = BatchWrite(writer=f"batch-{SystemIds().uuid()}")
        return self.loop(append_sink_id(COLLECTED)).run(cause, self.job([rows(*ids)] for ids in tasks))

    def job(self, partitions: Any) -> FakeJob:
        """An input whose partitions have these batches."""
        found = [*partitions]
        schema = found[0][0].schema if found else SCHEMA
        return FakeJob(found, self.clock, SystemIds(), schema=schema, run_id=SystemIds().uuid())  # type: ignore[arg-type]

    def marks(self) -> Marks:
        """What client and query have told each other."""
        return Marks(self.store())

    def store(self) -> Store:
        """That of the path."""
        return open_store(str(self.path), self.options.get("storage_options", {}))

    def client(
        self, after: CollectPosition | None = None, *, clock: Any, wait_ms: int | None = None
    ) -> CollectResults:
        """A client by another clock; as ``results`` makes it, but that it acknowledges nothing."""
        store = self.store()
        stored = Stored(store, clock, str(self.path))
        taking = Taking(wait_ms=wait_ms, acknowledge=Acknowledge.ASKED)
        begin = beginning(stored, Marks(store), after)
        return CollectResults(store, stored, clock, after=begin, taking=taking)

    def new(self, after: Any = None) -> CollectResults:
        """What is there now."""
        return self.sink().results(after, wait=False)

    def files(self) -> list[Path]:
        """What readers of the directory see."""
        return sorted(self.path.glob("*.arrow"))


def ids(results: Any) -> list[int]:
    """Of rows, or of record batches."""
    found: list[int] = []
    for one in results:
        found += one["id"].to_pylist() if isinstance(one, pa.RecordBatch) else [one["id"]]
    return found
