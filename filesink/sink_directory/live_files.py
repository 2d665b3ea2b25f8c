"""The files of a snapshot: millions of them as one table, and each as a value when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any, Final, overload

import pyarrow as pa

#: The columns of ``Snapshot.to_arrow``.
COLUMNS: Final = ("path", "bucket", "size", "rows", "schema", "statistics", "sink", "slot", "added")
_AT_A_TIME: Final = 4096  # values made while somebody iterates


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file that readers of a snapshot see.

    Attributes:
        path: relative to the base path.
        bucket: its directory, ``""`` for the base path.
        size: in bytes.
        rows: ``None`` if that is not known, of adopted files.
        schema: id of its columns, see ``SinkDirectory.schemas``; ``""`` if they are not known.
        statistics: of its columns, JSON; ``None`` without any.
        sink, slot: the epoch that has written it; ``sink`` is ``""`` if that is not known.
        added: the version at which it became visible, or was adopted.
    """

    path: str
    bucket: str
    size: int
    rows: int | None
    schema: str
    statistics: str | None
    sink: str
    slot: int
    added: int


class LiveFiles(Sequence[LiveFile]):
    """The files of a snapshot in the order of their paths. Each access makes a new value.

    Args:
        table: with the columns ``COLUMNS``.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    @overload
    def __getitem__(self, index: int) -> LiveFile: ...

    @overload
    def __getitem__(self, index: slice) -> LiveFiles: ...

    def __getitem__(self, index: int | slice) -> LiveFile | LiveFiles:
        """One file, or a part of the list."""
        if isinstance(index, slice):
            places = range(len(self))[index]
            return LiveFiles(self._table.take(pa.array(list(places), pa.int64())))
        place = range(len(self))[index]
        return next(iter(LiveFiles(self._table.slice(place, 1))))

    def __iter__(self) -> Iterator[LiveFile]:
        """All files, made a few thousand at a time."""
        for batch in self._table.to_batches(max_chunksize=_AT_A_TIME):
            columns: dict[str, list[Any]] = batch.to_pydict()
            for values in zip(*(columns[name] for name in COLUMNS), strict=True):
                yield LiveFile(**dict(zip(COLUMNS, values, strict=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveFiles) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def to_arrow(self) -> pa.Table:
        """A row for each file, with the attributes of ``LiveFile`` as columns."""
        return self._table

    def __repr__(self) -> str:
        return f"<{len(self):,} files>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FileChanges:
    """Which files one version has and another has not. Made by ``SinkDirectory.changes``.

    Attributes:
        after, version: the two versions.
        added: files that are live at ``version`` and were not at ``after``.
        removed: files of which the opposite is true: a table with the columns ``path`` and ``removed``, the
            version that removed it.
    """

    after: int
    version: int
    added: LiveFiles
    removed: pa.Table

    def __repr__(self) -> str:
        return (
            f"<FileChanges {self.after} to {self.version}: {len(self.added):,} files added, "
            f"{self.removed.num_rows:,} removed>"
        )
