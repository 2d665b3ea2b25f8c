"""An inventory of three epochs, whose files are in ``tests/golden`` and in ``docs/inventory.md``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from filesink.inventory.entry import AddedFile, Cause, Draft, Entry
from filesink.inventory.mark import Mark, MarkKind, Segment, digest
from filesink.inventory.schemas import schema_id
from filesink.ports import Who

GOLDEN = Path(__file__).parents[1] / "golden"
BASE_ID = "00000000-0000-4000-8000-00000000000b"
COLUMNS = pa.schema([("day", pa.date32()), ("origin", pa.string())]).serialize().to_pybytes()

FIRST = Entry(
    version=1,
    base_id=BASE_ID,
    epoch=Draft(
        sink="uid-flights",
        slot=7,
        nonce="00000000-0000-4000-8000-00000000000a",
        cause=Cause(kind="micro-batch", query_id="q", batch_id=5),
        decided_ms=1_700_000_000_000,
        visible_ms=1_700_000_000_250,
        rows=11,
        size=3000,
        who=Who(application="flights", user="ada", host="node-1"),
        source='{"offset":11}',
        schema=schema_id(COLUMNS),
        added=(
            AddedFile(
                path="day=2026-01-31/part-0123abcd-0000-8007-8000-00000000000a-0.parquet", size=2000, rows=8
            ),
            AddedFile(
                path="day=2026-02-01/part-0123abcd-0000-8007-8000-00000000000b-0.parquet",
                size=1000,
                rows=3,
                statistics='{"origin":{"min":"EWR"}}',
            ),
        ),
    ),
)
SECOND = Entry(
    version=2,
    base_id=BASE_ID,
    epoch=Draft(
        sink="exclusive",
        slot=0,
        nonce="00000000-0000-4000-8000-00000000000c",
        cause=Cause(kind="batch-write", mode="overwrite_partitions", txn_id="t"),
        decided_ms=1_700_000_001_000,
        visible_ms=1_700_000_001_250,
        rows=3,
        size=900,
        added=(
            AddedFile(
                path="day=2026-02-01/part-89abcdef-0000-8000-8000-00000000000d-0.parquet", size=900, rows=None
            ),
        ),
        removed=(
            "day=2026-02-01/part-0123abcd-0000-8007-8000-00000000000b-0.parquet",
            "day=2026-02-01/part-0123abcd-0000-8007-8000-00000000000e-0.parquet",
        ),
    ),
)


def golden(name: str) -> bytes:
    """The bytes of a file of the first release that had inventories."""
    return (GOLDEN / f"inventory-{name}-1").read_bytes()


def segment(name: str, *, rows: int) -> Segment:
    """What a mark says of a segment there."""
    data = golden(name)
    return Segment(
        name=f"000001-00000000-0000-4000-8000-00000000000f.{name}",
        kind="files" if name == "files" else "epochs",
        level=0,
        rows=rows,
        first=1,
        last=2,
        visible_ms=0 if name == "files" else 1_700_000_001_250,
        size=len(data),
        sha256=digest(data),
    )


def mark() -> Mark:
    """The mark that has folded both entries."""
    return Mark(
        number=1,
        previous=digest(b"the bytes of 000000.mark"),
        version=2,
        folded_ms=1_700_000_002_000,
        base_id=BASE_ID,
        kind=MarkKind.FOLD,
        horizon=0,
        segments=(segment("epochs", rows=2), segment("files", rows=4)),
    )
