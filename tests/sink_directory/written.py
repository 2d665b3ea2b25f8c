"""A path on disk that sinks have written to, each epoch with its version."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from filesink.buckets.assigner import BucketAssigner
from filesink.commit.layout_guard import OnOtherLayout
from filesink.inventory.names import DIRECTORY
from filesink.ledger.identity import batch_write
from filesink.ledger.record import BatchWrite, MicroBatch
from filesink.parts.file_format import BulkFormat
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from formats import ParquetWriterFactory
from tests.fakes import FakeJob, World, micro_batch, plan_of

SCHEMA = pa.schema([("k", pa.int32())]).append(pa.field("value", pa.string()))


@dataclass
class Written:
    """Parquet in partitions by ``k``, unless the world says otherwise."""

    base: Path
    format: Any = None
    partitions: tuple[str, ...] = ("k",)

    def __post_init__(self) -> None:
        form = self.format or BulkFormat(ParquetWriterFactory())
        assigner = BucketAssigner.base_path_bucket_assigner()
        if self.partitions:
            assigner = BucketAssigner.partition_bucket_assigner(*self.partitions)
        self.world = World(
            plan=replace(plan_of(form), assigner=assigner),
            open_store=StoreAddress(base_path=str(self.base)),
            on_other_layout=OnOtherLayout.ALLOW,
        )
        self.world.clock.now = 1_700_000_000_000
        self.world.store().prepare()
        self.batches: Counter[str] = Counter()

    def write(self, batch: pa.RecordBatch, *, uid: str = "u") -> None:
        """One micro-batch."""
        self.world.uid = uid
        self._run(batch, self.world.sink_id, micro_batch(self.batches[uid], query_id=f"query-{uid}"))
        self.batches[uid] += 1

    def overwrite(self, batch: pa.RecordBatch) -> None:
        """What is there is replaced."""
        self._run(batch, *batch_write(SaveMode.OVERWRITE, "u", "", self.world.ids))

    def forget_inventory(self) -> None:
        """As if an earlier release had written all that is there."""
        shutil.rmtree(self.base / DIRECTORY)

    def _run(self, batch: pa.RecordBatch, sink_id: str, cause: MicroBatch | BatchWrite) -> None:
        world = self.world
        world.clock.now += 1000
        world.driver(sink_id).run(cause, FakeJob([[batch]], world.clock, world.ids, schema=batch.schema))


def records(k: int, *values: str) -> pa.RecordBatch:
    """One record for each value."""
    return pa.RecordBatch.from_pydict({"k": [k] * len(values), "value": list(values)}, schema=SCHEMA)
