"""An epoch as readers see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Epoch:
    """What has become visible at one version.

    Attributes:
        version: its place among all epochs of the path: 1, 2, 3 …
        sink: id of the chain that it belongs to, see ``SinkState``; ``""`` for an adoption.
        slot: its place in that chain, the ``epoch`` of an ``EpochReport``.
        kind: ``micro-batch``, ``batch-write``, ``upkeep``, ``finish``, ``offline-compaction``,
            ``taken-back``, ``adopted``; or an operation, ``retain``,
            ``rollback`` or ``erase``.
        query_id, batch_id: of a micro-batch; ``None`` for any other kind.
        mode, txn_id: of a batch write; ``None`` for any other kind, ``txn_id`` also if there was none.
        decided, visible: when it was decided, and when all its files were visible; in UTC.
        rows: number of rows that came in. Rows of parts that stay open become visible with a later epoch.
        bytes: size of the files that became visible.
        files: number of these files.
        removed: number of files that it removed or replaced.
        application, user, host: whose program it was; each ``""`` if that is not known.
        source: Spark's text of the offsets of its input, or ``""``.
        schema: id of the columns of its input, see ``SinkDirectory.schemas``; ``""`` if they are not known.
    """

    version: int
    sink: str
    slot: int
    kind: str
    query_id: str | None
    batch_id: int | None
    mode: str | None
    txn_id: str | None
    decided: datetime
    visible: datetime
    rows: int
    bytes: int
    files: int
    removed: int
    application: str
    user: str
    host: str
    source: str
    schema: str

    def __repr__(self) -> str:
        which = "" if self.batch_id is None else f" {self.batch_id}"
        return (
            f"<Epoch {self.version}: {self.kind}{which} of '{self.sink}', {self.rows:,} rows in, "
            f"{self.files:,} files, {self.removed:,} removed>"
        )


def epochs_in(rows: pa.Table) -> Iterator[Epoch]:
    """The epochs of ``rows``, as ``filesink.inventory.rows.epochs`` has them."""
    for batch in rows.to_batches(max_chunksize=1000):
        yield from map(_epoch, batch.to_pylist())


def _epoch(row: dict[str, Any]) -> Epoch:
    values = dict(row)
    del values["nonce"]
    return Epoch(
        decided=moment(values.pop("decided_ms")),
        visible=moment(values.pop("visible_ms")),
        bytes=values.pop("size"),
        query_id=values.pop("query_id") or None,
        mode=values.pop("mode") or None,
        txn_id=values.pop("txn_id") or None,
        **values,
    )


def moment(ms: int) -> datetime:
    """A time in milliseconds since 1970 UTC."""
    return datetime.fromtimestamp(ms / 1000, tz=UTC)
