"""Statistics of a partition for planners: files and bytes as listed, rows if they are known.

They are never added up, since an announcement that is repeated must not count twice. The number of rows
is known if number and bytes of the listed files are those of this announcement, alone or together with
those that the metastore has counted. Otherwise it is unknown, which Hive writes as -1.
"""

from __future__ import annotations

from collections.abc import Mapping

from filesink.metastore.policies import CommittedPartition
from filesink.storage.api import Kind, Store

_UNKNOWN = "-1"
_ACCURATE = "COLUMN_STATS_ACCURATE"  # says that queries may be answered from statistics alone


def statistics(partition: CommittedPartition, store: Store, known: Mapping[str, str]) -> dict[str, str]:
    """The parameters to set, given those that are ``known`` now."""
    sizes = file_sizes(partition.bucket, store)
    rows = _rows(partition, len(sizes), sum(sizes), known)
    found = {"numFiles": str(len(sizes)), "totalSize": str(sum(sizes)), "numRows": rows}
    if _ACCURATE in known:  # other values may fill as many files, rows and bytes
        found[_ACCURATE] = "{}"
    return {} if all(known.get(name) == value for name, value in found.items()) else found


def file_sizes(bucket: str, store: Store) -> list[int]:
    """Bytes of each file that readers see in the directory."""
    return [
        entry.size for entry in store.list(bucket) if entry.kind is Kind.FILE and entry.name[0] not in "._"
    ]


def _rows(partition: CommittedPartition, files: int, size: int, known: Mapping[str, str]) -> str:
    if (partition.file_count, partition.bytes) == (files, size):
        return str(partition.rows)
    counted, counted_size, rows = (_number(known.get(name)) for name in ("numFiles", "totalSize", "numRows"))
    if counted is None or counted_size is None or rows is None:
        return _UNKNOWN
    match files - counted, size - counted_size:
        case 0, 0:
            return str(rows)
        case new if new == (partition.file_count, partition.bytes):
            return str(rows + partition.rows)
        case _:
            return _UNKNOWN


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
