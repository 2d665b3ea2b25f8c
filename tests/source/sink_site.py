"""The directory of a sink, epoch by epoch, without a sink: Parquet files, and what an inventory says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.inventory.appending import Inventory
from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.inventory.schemas import schema_id
from filesink.naming import LEDGER_ROOT
from filesink.source.directories import root_of
from filesink.source.reading.plan import Reading
from filesink.source.source_plan import Following, SourcePlan
from filesink.storage.open import open_store
from filesink.system import SystemIds
from tests.fakes import SettableClock

COLUMNS = pa.schema([("id", pa.int64())])


@dataclass
class SinkSite:
    """A base path that a sink has begun to write to. Each epoch moves the clock by a minute."""

    base: Path
    clock: SettableClock = field(default_factory=lambda: SettableClock(now=1_700_000_000_000))
    history_ms: int = 30 * 24 * 3_600_000
    written: int = 0

    def __post_init__(self) -> None:
        (self.base / LEDGER_ROOT / "uid-u").mkdir(parents=True)
        (self.base / LEDGER_ROOT / "uid-u" / "begun").touch()

    def epoch(
        self,
        *files: list[int],
        kind: str = "micro-batch",
        removed: tuple[str, ...] = (),
        columns: pa.Schema = COLUMNS,
        bucket: str = "",
        sink: str = "uid-u",
        **cause: Any,
    ) -> list[str]:
        """One epoch, each of whose files has some ids; the paths of these files."""
        made = [self._write(ids, bucket, columns) for ids in files]
        schema = b"" if kind == "offline-compaction" else columns.serialize().to_pybytes()
        if kind == "micro-batch":
            cause |= {"query_id": "q", "batch_id": self.written}
        draft = Draft(
            sink=sink,
            slot=self.written,
            nonce=SystemIds().uuid(),
            cause=Cause(kind=kind, **cause),
            decided_ms=self.clock.now,
            visible_ms=self.clock.now,
            rows=sum(map(len, files)),
            size=sum(file.size for file in made),
            schema=schema_id(schema),
            columns=schema,
            added=tuple(made),
            removed=removed,
        )
        inventory = self._inventory()
        assert inventory.append(draft, floor=inventory.newest()) is not None
        self.clock.now += 60_000
        self.written += 1
        return [file.path for file in made]

    def compact(self, *paths: str) -> str:
        """Merge visible files, as offline compaction does; the path of the new one."""
        ids = [one for path in paths for one in pq.read_table(self.base / path)["id"].to_pylist()]
        (path,) = self.epoch(ids, kind="offline-compaction", removed=paths)
        for old in paths:
            (self.base / old).unlink()
        return path

    def plan(self, *, reading: Reading | None = None, following: Following | None = None) -> SourcePlan:
        """A source of the path."""
        return SourcePlan(
            roots=(root_of(self.base, {}),),
            reading=reading or Reading(),
            following=following or Following(),
        )

    def _inventory(self) -> Inventory:
        store = open_store(self.base, {})
        return Inventory(store, clock=self.clock, ids=SystemIds(), fold_every=3, history_ms=self.history_ms)

    def _write(self, ids: list[int], bucket: str, columns: pa.Schema) -> AddedFile:
        path = f"{bucket}/part-{self.written}-{ids[0]}.parquet".lstrip("/")
        target = self.base / path
        target.parent.mkdir(exist_ok=True)
        in_file = pa.schema([one for one in columns if f"{one.name}=" not in bucket])
        arrays = {one.name: pa.array(ids).cast(one.type) for one in in_file}
        pq.write_table(pa.table(arrays, schema=in_file), target)
        return AddedFile(path=path, size=target.stat().st_size, rows=len(ids))
