"""A path on disk that sinks have written to, each epoch with its version."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from filesink.buckets.assigner import BucketAssigner
from filesink.commit.layout_guard import OnOtherLayout
from filesink.inventory.appending import Inventory, first_mark
from filesink.inventory.drafts import draft_of
from filesink.inventory.mark import MarkKind
from filesink.inventory.names import mark_path
from filesink.parts.file_format import BulkFormat
from filesink.storage.address import StoreAddress
from formats import ParquetWriterFactory
from tests.fakes import FakeJob, World, micro_batch, plan_of

SCHEMA = pa.schema([("k", pa.int32()), ("value", pa.string())])


@dataclass
class Written:
    """Parquet in partitions by ``k``, unless the world says otherwise."""

    base: Path
    format: Any = None
    partitions: tuple[str, ...] = ("k",)
    has_inventory: bool = True

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
        if self.has_inventory:  # as the first epoch begins it, before it is complete
            begun = first_mark(MarkKind.FRESH, now_ms=self.world.clock.now, base_id=self.world.ids.uuid())
            self.world.store().put_if_absent(mark_path(0), begun.to_bytes())

    def inventory(self) -> Inventory:
        """That of a driver which has just started."""
        return Inventory(self.world.store(), clock=self.world.clock, ids=self.world.ids)

    def write(self, batch: pa.RecordBatch, *, uid: str = "u", removed: tuple[str, ...] = ()) -> int | None:
        """One epoch; its version. It removes files of these paths, too."""
        world = self.world
        world.uid = uid
        world.clock.now += 1000
        job = FakeJob([[batch]], world.clock, world.ids, schema=batch.schema)
        driver = world.driver()
        driver.run(micro_batch(self.batches[uid], query_id=f"query-{uid}"), job)
        self.batches[uid] += 1
        head = world.ledger().head()
        assert head is not None
        files = head.record.committables.decode(world.tiers().committable_codec)
        draft = draft_of(head.record, files, visible_ms=world.clock.now)
        for path in removed:
            (self.base / path).unlink()
        return self.inventory().append(replace(draft, removed=removed), floor=0)


def records(k: int, *values: str) -> pa.RecordBatch:
    """One record for each value."""
    return pa.RecordBatch.from_pydict({"k": [k] * len(values), "value": list(values)}, schema=SCHEMA)
