"""What epochs have changed, some epochs at a time: what followers of an inventory ask for.

Rules:
1. The answer about a version never changes, whether it is folded or not: its epoch, the files that it added
   and the paths that it removed. Only then is it given; what is not remembered whole has expired.
2. A follower reads no segment that ends before the place where it stands, and holds no more rows than
   ``MOST`` in memory, unless one epoch alone has more.
3. An adoption lists what was there before, and is no change. What it says of files is left out: it is put
   before it knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from filesink.inventory.entry import ADOPTED, Entry
from filesink.inventory.mark import Segment
from filesink.inventory.reading import Look, Reader
from filesink.inventory.rows.epochs import epochs_of, in_order
from filesink.inventory.rows.files import FILES, files_of
from filesink.inventory.rows.merging import merge
from formats.arrow import pc

MOST: Final = 100_000  # epochs and paths of files together


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What some versions have changed, which follow one another.

    Attributes:
        base_id: of the inventory; ``""`` before the first epoch.
        mark: number of the newest mark.
        newest: the newest version, which may be above those of ``epochs``.
        epochs: rows of ``rows.epochs.EPOCHS``, by version.
        files: rows of ``rows.files.FILES`` that these epochs have added or removed, sorted by path.
    """

    base_id: str
    mark: int
    newest: int
    epochs: pa.Table
    files: pa.Table


def versions_after(
    reader: Reader, look: Look, entries: Sequence[Entry], *, after: int, until: int, most: int = MOST
) -> Versions:
    """What the next epochs above version ``after`` and up to ``until`` have changed.

    Args:
        reader: of the inventory.
        look: what counts.
        entries: all of ``look`` above ``after``.
        after: a version that is not before the horizon, but for one.
        until: a version.
        most: rows that are returned, if there are several epochs.
    """
    epochs = _some(_epochs(reader, look, entries, after, most), until, most)
    last = epochs["version"][-1].as_py() if epochs.num_rows else after
    return Versions(
        base_id=look.mark.base_id,
        mark=look.mark.number,
        newest=look.newest,
        epochs=epochs,
        files=_files(reader, look, entries, range(after + 1, last + 1), _adoptions(epochs)),
    )


def _epochs(reader: Reader, look: Look, entries: Sequence[Entry], after: int, most: int) -> pa.Table:
    """Rows of epochs above ``after``: all that there are, or at least ``most`` with their files."""
    pieces: list[pa.Table] = []
    size = 0
    for segment in _above(look.mark.of_kind("epochs"), after):
        for rows in reader.rows([segment])[0]:
            pieces.append(rows.filter(pc.greater(rows["version"], after)))
            size += pc.sum(_sizes(pieces[-1])).as_py() or 0
        if size >= most:
            return in_order(pieces)
    return in_order([*pieces, epochs_of(entries)])


def _some(epochs: pa.Table, until: int, most: int) -> pa.Table:
    """The first of ``epochs``, by version: one, or as many as are ``most`` rows with their files."""
    epochs = epochs.filter(pc.less_equal(epochs["version"], until))
    fitting = pc.sum(pc.less_equal(pc.cumulative_sum(_sizes(epochs)), most)).as_py() or 0
    return epochs.slice(0, max(fitting, 1))


def _sizes(epochs: pa.Table) -> Any:
    """How many rows each of ``epochs`` is, with its files."""
    return pc.add(pc.add(epochs["files"], epochs["removed"]), 1)


def _files(reader: Reader, look: Look, entries: Sequence[Entry], versions: range, adoptions: Any) -> pa.Table:
    segments = [
        one for one in _above(look.mark.of_kind("files"), versions.start - 1) if one.first < versions.stop
    ]
    told = [entry for entry in entries if entry.version in versions]
    pieces = [*reader.rows(segments), iter([files_of(told)])]
    found = [rows.filter(_is_changed(rows, versions, adoptions)) for rows in merge(pieces)]
    return pa.concat_tables(found) if found else FILES.empty_table()


def _above(segments: Sequence[Segment], after: int) -> Iterator[Segment]:
    return (segment for segment in segments if segment.last > after)


def _adoptions(epochs: pa.Table) -> Any:
    return epochs.filter(pc.equal(epochs["kind"], ADOPTED))["version"].combine_chunks()


def _is_changed(rows: pa.Table, versions: range, adoptions: Any) -> Any:
    """Which of ``rows`` were added or removed at one of ``versions``, and not by an adoption."""
    is_adopted = pc.is_in(rows["added"], value_set=adoptions)
    is_added = pc.and_not(_is_within(rows["added"], versions), is_adopted)
    return pc.or_(is_added, _is_within(rows["removed"], versions))


def _is_within(column: Any, versions: range) -> Any:
    is_within = pc.and_(pc.greater_equal(column, versions.start), pc.less(column, versions.stop))
    return pc.fill_null(is_within, fill_value=False)
