"""An entry of the feed as an event of CloudEvents 1.0, in its JSON format. Pure.

Rules:
1. The same entry has the same bytes, whoever sends it and however often.
2. Nothing leaves the path but names of files, numbers, times, and the ids of sink, query and transaction.
   So no statistics, which are values of records, no offsets, no user, no host, and not where the path is.
3. An event is small, as queues want it. Lists that are too long are left out; the feed has them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from filesink.framing import to_json
from filesink.sink_directory.feed import FeedEntry

CONTENT_TYPE: Final = "application/cloudevents+json"
TYPE: Final = "filesink.epoch.visible"
_MOST_FILES: Final = 1_000
_MOST_BYTES: Final = 64 << 10  # what every intermediary has to forward


def event_bytes(entry: FeedEntry) -> bytes:
    """The event, at most 64 KiB of JSON; without its lists of files if these do not fit."""
    if len(entry.added) + len(entry.removed) <= _MOST_FILES:
        data = to_json(_event(entry, _lists(entry)))
        if len(data) <= _MOST_BYTES:
            return data
    return to_json(_event(entry, {"added": None, "removed": None}))


def _event(entry: FeedEntry, lists: dict[str, Any]) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": entry.id,
        "source": f"urn:uuid:{entry.inventory_id}",
        "type": TYPE,
        "time": _time(entry.epoch.visible),
        "sequence": f"{entry.version:012d}",
        "datacontenttype": "application/json",
        "data": {**_facts(entry), **lists},
    }


def _facts(entry: FeedEntry) -> dict[str, Any]:
    epoch = entry.epoch
    facts = {
        "version": epoch.version,
        "sink": epoch.sink,
        "slot": epoch.slot,
        "kind": epoch.kind,
        "query_id": epoch.query_id,
        "batch_id": epoch.batch_id,
        "mode": epoch.mode,
        "txn_id": epoch.txn_id,
        "decided": _time(epoch.decided),
        "visible": _time(epoch.visible),
        "rows": epoch.rows,
        "bytes": epoch.bytes,
        "added_files": len(entry.added),
        "removed_files": len(entry.removed),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _lists(entry: FeedEntry) -> dict[str, Any]:
    added = [{"path": file.path, "bytes": file.size, "rows": file.rows} for file in entry.added]
    return {"added": added, "removed": list(entry.removed)}


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
