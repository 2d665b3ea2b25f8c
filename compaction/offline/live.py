"""Which finished files are as an epoch has made them visible, by the inventory.

Rules:
1. A file that no version has was put there by somebody: a copy, a file that was brought back, or one that
   was moved. Merged, its rows would be in a file of ours, and nobody could tell them apart any more.
2. Where there is no inventory, or none yet, names and ledgers have to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from compaction.offline.groups import FinishedFile
from filesink.errors import StateError
from filesink.inventory.reading import Reader
from filesink.inventory.snapshots import Snapshots
from filesink.ports import Clock
from filesink.storage.api import Store
from formats.arrow import pc


def live_of(store: Store, files: Sequence[FinishedFile], clock: Clock) -> list[FinishedFile] | None:
    """Those of ``files`` that are live, with the size that they had, and their rows; ``None`` see rule 2.

    Raises:
        StateCorruptError: the inventory is damaged.
    """
    try:
        rows = Snapshots(Reader(store, clock), "").files_at(None).rows
    except StateError as error:
        if error.code not in {"NO_INVENTORY", "ADOPTING"}:
            raise
        return None
    rows = rows.filter(pc.is_in(rows["path"], value_set=pa.array([file.path for file in files], pa.string())))
    columns = (rows[name].to_pylist() for name in ("path", "size", "rows"))
    known = {path: (size, count) for path, size, count in zip(*columns, strict=True)}
    return [
        replace(file, rows=known[file.path][1])
        for file in files
        if file.path in known and known[file.path][0] == file.size
    ]
