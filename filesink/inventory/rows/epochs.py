"""Rows of epochs, as segments hold them: what an entry says, without the names of its files. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from filesink.inventory.entry import Entry
from formats.arrow import pc

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
#: The columns of an ``.epochs`` segment; ``files`` and ``removed`` are numbers of paths.
EPOCHS: Final = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("sink", _WORD),
        pa.field("slot", pa.int64()),
        pa.field("nonce", pa.string()),
        pa.field("kind", _WORD),
        pa.field("query_id", _WORD),
        pa.field("batch_id", pa.int64()),
        pa.field("mode", _WORD),
        pa.field("txn_id", pa.string()),
        pa.field("decided_ms", pa.int64()),
        pa.field("visible_ms", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("removed", pa.int64()),
        pa.field("application", _WORD),
        pa.field("user", _WORD),
        pa.field("host", _WORD),
        pa.field("source", pa.string()),
        pa.field("schema", _WORD),
    ]
)


def epochs_of(entries: Sequence[Entry]) -> pa.Table:
    """One row for each of ``entries``, in their order."""
    return table_of([row_of(entry) for entry in entries])


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """What ``row_of`` has made, as a table."""
    return pa.Table.from_pylist(list(rows), schema=EPOCHS)


def row_of(entry: Entry) -> dict[str, Any]:
    """The columns of one epoch, by name."""
    epoch, cause = entry.epoch, entry.epoch.cause
    return {
        "version": entry.version,
        "sink": epoch.sink,
        "slot": epoch.slot,
        "nonce": epoch.nonce,
        "kind": cause.kind,
        "query_id": cause.query_id,
        "batch_id": cause.batch_id,
        "mode": cause.mode,
        "txn_id": cause.txn_id,
        "decided_ms": epoch.decided_ms,
        "visible_ms": epoch.visible_ms,
        "rows": epoch.rows,
        "size": epoch.size,
        "files": len(epoch.added),
        "removed": len(epoch.removed),
        "application": epoch.who.application,
        "user": epoch.who.user,
        "host": epoch.who.host,
        "source": epoch.source,
        "schema": epoch.schema,
    }


def in_order(pieces: Sequence[pa.Table]) -> pa.Table:
    """All rows, by version. No version is in two of ``pieces``."""
    rows = pa.concat_tables([*pieces, EPOCHS.empty_table()])
    return rows.unify_dictionaries().combine_chunks().sort_by("version")


def latest(rows: pa.Table) -> int:
    """When the last of ``rows`` to become visible did, in milliseconds since 1970 UTC."""
    return int(pc.max(rows["visible_ms"]).as_py() or 0)


def without_old(rows: pa.Table, before_ms: int, *, horizon: int, kept_from: int) -> tuple[pa.Table, int]:
    """``rows``, in order, from the first that was not visible before ``before_ms``; and the new horizon.

    From version ``kept_from`` on all are kept, whatever the clocks say.
    """
    stays = pc.or_(
        pc.greater_equal(rows["visible_ms"], before_ms), pc.greater_equal(rows["version"], kept_from)
    )
    first = pc.index(stays, value=True).as_py()
    first = rows.num_rows if first < 0 else first
    if not first:
        return rows, horizon
    return rows.slice(first), max(horizon, rows["version"][first - 1].as_py() + 1)
