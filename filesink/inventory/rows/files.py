"""Rows of files, as segments hold them, and which files are live. Pure.

Rules:
1. A row with ``added`` is a file; one without is a tombstone: a removal whose file has its row elsewhere.
2. A file is live at a version that is not before ``added``, unless any row of its path has been removed by
   then. So a known removal wins over an add, in whatever order they come.
3. Adding a path again changes nothing: of several rows the earliest version counts, for both.
4. A removal is forgotten only together with its file: in one merge with the file's row, or where no other
   row of that path is left. And never while somebody may ask for a version before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from filesink.inventory.entry import Entry
from formats.arrow import pc

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
#: The columns of a ``.files`` segment.
FILES: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("bucket", _WORD),
        pa.field("size", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("added", pa.int64()),
        pa.field("removed", pa.int64()),
        pa.field("sink", _WORD),
        pa.field("slot", pa.int64()),
        pa.field("schema", _WORD),
        pa.field("statistics", pa.string()),
    ]
)
_NEVER: Final = np.iinfo(np.int64).max


def files_of(entries: Sequence[Entry]) -> pa.Table:
    """What ``entries`` have added and removed, as ``merged`` returns it."""
    gone = [(path, entry.version) for entry in entries for path in entry.epoch.removed]
    return merged([*(_added(entry) for entry in entries if entry.epoch.added), tombstones(gone)])


def _added(entry: Entry) -> pa.Table:
    files, epoch = entry.epoch.added, entry.epoch
    return table_of(
        path=[file.path for file in files],
        bucket=[file.bucket for file in files],
        size=[file.size for file in files],
        rows=[file.rows for file in files],
        added=[entry.version] * len(files),
        sink=[epoch.sink] * len(files),
        slot=[epoch.slot] * len(files),
        schema=[epoch.schema] * len(files),
        statistics=[file.statistics or None for file in files],
    )


def tombstones(gone: Sequence[tuple[str, int]]) -> pa.Table:
    """Rows of removals: path and version of each."""
    return table_of(path=[path for path, _ in gone], removed=[version for _, version in gone])


def table_of(*, path: Sequence[str], **columns: Sequence[Any]) -> pa.Table:
    """Rows with these columns; what is not given is null."""
    given = {"path": path, **columns}
    arrays = [
        pa.array(given[field.name], field.type) if field.name in given else pa.nulls(len(path), field.type)
        for field in FILES
    ]
    return pa.table(arrays, schema=FILES)


def merged(pieces: Sequence[pa.Table]) -> pa.Table:
    """All rows, one for each path, sorted by path; see rule 3. Any of ``pieces`` may be empty."""
    rows = joined(pieces)
    rows = rows.take(pc.sort_indices(rows["path"]))
    begins = _begins(rows["path"])
    return rows if begins.all() else _one_for_each(rows, begins)


def joined(pieces: Sequence[pa.Table]) -> pa.Table:
    """All rows, one piece after the other, with one dictionary for each column."""
    rows = pa.concat_tables(pieces) if pieces else FILES.empty_table()
    return rows.unify_dictionaries().combine_chunks()


def _begins(paths: Any) -> Any:
    """Which of the sorted paths differ from the one before."""
    if len(paths) < 2:
        return np.ones(len(paths), bool)
    other = pc.not_equal(paths.slice(1), paths.slice(0, len(paths) - 1))
    return np.concatenate([[True], other.to_numpy()])


def _one_for_each(rows: pa.Table, begins: Any) -> pa.Table:
    """One row for each path of sorted rows: the first to be added, with the earliest removal."""
    keys: Any = pa.table([pa.array(np.cumsum(begins)), rows["added"]], names=["path", "added"])
    rows = rows.take(pc.sort_indices(keys, sort_keys=[("path", "ascending"), ("added", "ascending")]))
    removed = pc.fill_null(rows["removed"], _NEVER).to_numpy()
    earliest = np.minimum.reduceat(removed, np.flatnonzero(begins))
    column = pa.array(earliest, pa.int64(), mask=earliest == _NEVER)
    return rows.filter(pa.array(begins)).set_column(FILES.get_field_index("removed"), "removed", column)


def live(rows: pa.Table, version: int) -> pa.Table:
    """The merged ``rows`` whose files are live at ``version``."""
    is_there = pc.less_equal(rows["added"], version)
    is_left = pc.fill_null(pc.greater(rows["removed"], version), fill_value=True)
    kept = pc.and_(pc.fill_null(is_there, fill_value=False), is_left)
    return rows if pc.all(kept).as_py() else rows.filter(kept)


def between(rows: pa.Table, after: int, until: int) -> pa.Table:
    """Those of merged ``rows`` whose files were added above one version and up to another."""
    is_newer, is_there = pc.greater(rows["added"], after), pc.less_equal(rows["added"], until)
    return rows.filter(pc.fill_null(pc.and_(is_newer, is_there), fill_value=False))


def gone(rows: pa.Table, after: int, until: int) -> pa.Table:
    """Those of merged ``rows`` whose files were live at one version, and were removed by another.

    A tombstone is one of them: had its file come later, the file's own row would be among ``rows``.
    """
    was_there = pc.fill_null(pc.less_equal(rows["added"], after), fill_value=True)
    is_newer, is_over = pc.greater(rows["removed"], after), pc.less_equal(rows["removed"], until)
    return rows.filter(pc.and_(was_there, pc.fill_null(pc.and_(is_newer, is_over), fill_value=False)))


def is_past(rows: pa.Table, horizon: int) -> Any:
    """Which rows do not matter to a reader of ``horizon`` or a later version."""
    return pc.fill_null(pc.less_equal(rows["removed"], horizon), fill_value=False)
