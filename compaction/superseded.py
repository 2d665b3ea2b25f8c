"""Finished files whose rows are in a merged one, and that stay until readers have had time.

Rules:
1. The newest record of offline compaction names all of them, not only those of its own epoch.
2. A file is superseded only while one that holds its rows is there; else it is data again. There may
   be several, of which the last one was made of those before.
3. Who lists files and then asks for their names drops what is superseded by a file of the list: so
   each row is read once, whenever the one and the other happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filesink.committables import CommittableCodec, SupersededFile
from filesink.epoch_record import OfflineCompaction
from filesink.file_tiers import StoreAddress
from filesink.identity import EXCLUSIVE
from filesink.ledger import Ledger
from filesink.naming import join, parent
from filesink.storage.api import Entry, Store
from filesink.storage.base_path import check_base_path
from filesink.sweep import visible
from filesink.transactions import COMPACTION


def files(
    base_path: str | Path,
    *,
    bucket: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """The files that hold each row once, for readers who come while superseded ones stand beside them.

    They can be read for ``reader_grace`` from now on: ``spark.read.parquet(*compaction.files(path))``.

    Args:
        base_path: of the sinks.
        bucket: the only directory to look at; ``None`` for all, ``""`` for the base path itself.
        storage_options: of the store, as ``with_storage_options`` takes them.
    """
    checked = check_base_path(base_path)
    store = StoreAddress(base_path=checked, storage_options=storage_options or {})()
    return [f"{checked}/{path}" for path in current(store, bucket)]


def current(store: Store, bucket: str | None) -> list[str]:
    """Paths of the visible files that are not superseded by another visible one, in order."""
    earlier = superseded(store)  # of these, the last ones may be removed while files are listed
    there = {path for path, _ in visible(store, None if bucket is None else [bucket])}
    dropped = {file.path for file in (*earlier, *superseded(store)) if file.by in there}
    return sorted(there - dropped)


def superseded(store: Store) -> list[SupersededFile]:
    """What the newest record of offline compaction names, there or not."""
    record = Ledger(store, EXCLUSIVE).unfinished_record()
    if record is None or not isinstance(record.cause, OfflineCompaction):
        # Its copy is made before an epoch is complete, so none is missed.
        head = Ledger(store, COMPACTION).head()
        if head is None:
            return []
        record = head.record
    section = record.committables
    found = CommittableCodec().decode(section.version, section.data)
    return [file for file in found if isinstance(file, SupersededFile)]


def outstanding(store: Store) -> list[SupersededFile]:
    """Those that are there as they were listed, each beside the file that holds its rows."""
    named = superseded(store)
    listing = _entries(store, sorted({parent(file.path) for file in named}))
    return [file for file in named if file.by in listing and _is_same(listing.get(file.path), file)]


def _entries(store: Store, directories: Iterable[str]) -> dict[str, Entry]:
    return {
        join(directory, entry.name): entry for directory in directories for entry in store.list(directory)
    }


def _is_same(entry: Entry | None, file: SupersededFile) -> bool:
    return entry is not None and (entry.size, entry.version) == (file.size, file.version)
