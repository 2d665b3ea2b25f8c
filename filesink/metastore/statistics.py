"""What planners are told of a partition: files and bytes as listed, rows where they are known.

Never counted up: what was announced twice must not count twice. The number of rows is known if the
files are those of this announcement, alone or together with those that the metastore has counted; else
it is said to be unknown, as Hive does with -1.
"""

from __future__ import annotations

from collections.abc import Mapping

from filesink.metastore.policies import CommittedPartition
from filesink.storage.api import Kind, Store

_UNKNOWN = "-1"
_ACCURATE = "COLUMN_STATS_ACCURATE"  # says that queries may be answered from statistics alone


def statistics(partition: CommittedPartition, store: Store, known: Mapping[str, str]) -> dict[str, str]:
    """The parameters to set, given those that are ``known`` now."""
    entries = [
        entry
        for entry in store.list(partition.bucket)
        if entry.kind is Kind.FILE and entry.name[0] not in "._"
    ]
    found = {"numFiles": str(len(entries)), "totalSize": str(sum(entry.size for entry in entries))}
    if all(known.get(name) == value for name, value in found.items()) and "numRows" in known:
        return {}  # as they should be, rows included
    found["numRows"] = _rows(partition, len(entries), known)
    if _ACCURATE in known:
        found[_ACCURATE] = "{}"
    return found


def _rows(partition: CommittedPartition, files: int, known: Mapping[str, str]) -> str:
    if partition.file_count == files:
        return str(partition.rows)
    before, rows = _number(known.get("numFiles")), _number(known.get("numRows"))
    if before is not None and rows is not None and before + partition.file_count == files:
        return str(rows + partition.rows)
    return _UNKNOWN


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
