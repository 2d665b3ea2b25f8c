"""The directory of a sink as a stream: first what is there, then what each epoch adds.

An offset is ``{"version", "index"}``: all files of versions up to that one, and so many of the next. While
what was there at the start is read, ``"snapshot"`` is in it, and the index is that of a file of the snapshot.

Rules:
1. A row is read with the epoch that has made it visible, whatever held it back: parts that stay open and
   small files that wait were seen by nobody before.
2. What offline compaction makes of files that were visible is no new row.
3. An overwrite takes rows away, which a stream cannot: it is an error, or its rows are taken for new ones.
4. An adoption numbers files anew that may have been read: it is an error. So is what is not remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from itertools import islice, takewhile
from typing import Final

from filesink.errors import SchemaError, SourceError
from filesink.sink_directory.epochs import Epoch
from filesink.sink_directory.snapshot import Snapshot
from filesink.source.files import SourceFile
from filesink.source.sinks.snapshots import SinkRoot
from filesink.source.streams import FileStream, Limit, Offset

_OVERWRITES: Final = {"overwrite", "overwrite_partitions"}
_NO_ROWS: Final = {"offline-compaction", "taken-back"}  # whose rows were visible before, or are not
_ADOPTED: Final = "adopted"
_AT_A_TIME: Final = 1_000  # epochs whose files are in memory together


class OnOverwrite(Enum):
    """What a stream does when rows that it may have read are replaced."""

    FAIL = "fail"
    NEW_ROWS = "new_rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a new query begins.

    Attributes:
        version: the first version that is read; ``None`` for what is there, and then everything new.
        time: the first moment whose epochs are read; ``None`` likewise.
        is_latest: whether only what is new is read.
    """

    version: int | None = None
    time: datetime | None = None
    is_latest: bool = False


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """An offset; in the order in which files are read."""

    is_behind: bool  # the snapshot of the start
    version: int
    index: int

    @staticmethod
    def of(offset: Offset) -> _Place:
        return _Place(not offset.get("snapshot"), offset["version"], offset["index"])

    def offset(self) -> Offset:
        """As Spark keeps it."""
        known: dict[str, object] = {"version": self.version, "index": self.index}
        return known if self.is_behind else {**known, "snapshot": True}


def _behind(version: int, index: int = 0) -> _Place:
    """All of ``version`` was read, and so many files of the next."""
    return _Place(True, version, index)  # noqa: FBT003


def _inside(version: int, index: int) -> _Place:
    """So many files of the snapshot of the start were read."""
    return _Place(False, version, index)  # noqa: FBT003


#: A file, and the place behind it.
_Found = tuple[_Place, SourceFile]


class FollowedSink(FileStream):
    """Follows the versions of a directory; see above.

    Args:
        root: the directory.
        start: of a new query.
        on_overwrite: see ``OnOverwrite``.
        columns: names of those that are read; ``None`` if the user has chosen them.
    """

    def __init__(
        self,
        root: SinkRoot,
        *,
        start: Start,
        on_overwrite: OnOverwrite = OnOverwrite.FAIL,
        columns: Collection[str] | None = None,
    ) -> None:
        self._root = root
        self._start = start
        self._on_overwrite = on_overwrite
        self._columns = columns
        self._snapshot: Snapshot | None = None
        self._end: int | None = None
        self._checked: set[str] = set()  # ids of columns that are all read

    def initial(self) -> Offset:
        """See ``FileStream.initial``."""
        directory, chosen = self._root.directory, self._start
        if chosen.version is not None:
            return _behind(max(chosen.version - 1, 0)).offset()
        if chosen.time is not None:
            before = directory.snapshot(chosen.time - timedelta(milliseconds=1))
            return _behind(before.version).offset()
        newest = directory.version
        return (_behind(newest) if chosen.is_latest else _inside(newest, 0)).offset()

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """See ``FileStream.latest``."""
        newest = self._root.directory.version if self._end is None else self._end
        place, last = _Place.of(start), _behind(newest)
        if last <= place:
            return start
        if limit.is_none:  # files need not be looked at, but what must not be
            for epoch in self._epochs(place.version, newest):
                self._is_new(epoch)
            return last.offset()
        size, taken = 0, 0
        for behind, file in self._found(place, newest):
            size, taken = size + file.size, taken + 1
            if taken > 1 and limit.is_over(taken, size):
                return place.offset()
            place = behind
        return last.offset()

    def latest_of_all(self, limit: Limit) -> Offset:
        """See ``FileStream.latest_of_all``; limits cannot be obeyed, as the versions are not ours."""
        del limit
        newest = self._root.directory.version if self._end is None else self._end
        return _behind(newest).offset()

    def first_file(self) -> SourceFile | None:
        """See ``FileStream.first_file``: a sink lets nobody write files of another format."""
        return None

    def fix_end(self) -> None:
        """See ``FileStream.fix_end``."""
        self._end = self._root.directory.version

    def files(self, start: Offset, end: Offset) -> Iterator[SourceFile]:
        """See ``FileStream.files``."""
        place, last = _Place.of(start), _Place.of(end)
        if last <= place:
            return
        for behind, file in self._found(place, last.version + (1 if last.index else 0)):
            if behind > last:
                return
            yield file

    def finish(self, end: Offset) -> None:
        """See ``FileStream.finish``: files of a sink are left alone."""

    def _found(self, place: _Place, until: int) -> Iterator[_Found]:
        """The files behind ``place``, up to version ``until``."""
        if not place.is_behind:
            yield from self._of_snapshot(place)
            place = _behind(place.version)
        index = place.index
        for some in _batched(self._epochs(place.version, until)):
            files = self._added(some[0].version - 1, some[-1].version)
            for epoch in some:
                new = files.get(epoch.version, []) if self._is_new(epoch) else []
                for number, file in enumerate(new[index:], index + 1):
                    is_last = number == len(new)
                    behind = (epoch.version, 0) if is_last else (epoch.version - 1, number)
                    yield _behind(*behind), file
                index = 0

    def _of_snapshot(self, place: _Place) -> Iterator[_Found]:
        if self._snapshot is None or self._snapshot.version != place.version:
            self._snapshot = self._root.snapshot(place.version)
        files = self._snapshot.files
        for number, live in enumerate(files[place.index :], place.index + 1):
            file = self._root.wanted(live)
            if file is not None:
                is_last = number == len(files)
                yield (_behind(place.version) if is_last else _inside(place.version, number)), file

    def _epochs(self, after: int, until: int) -> Iterator[Epoch]:
        return takewhile(lambda epoch: epoch.version <= until, self._root.directory.epochs(after))

    def _added(self, after: int, until: int) -> dict[int, list[SourceFile]]:
        """The files of each version, in the order of their paths."""
        found: dict[int, list[SourceFile]] = {}
        for live in self._root.directory.added(after, until):
            file = self._root.wanted(live)
            if file is not None:
                found.setdefault(file.version, []).append(file)
        return found

    def _is_new(self, epoch: Epoch) -> bool:
        """Whether the rows of its files were never visible before.

        Raises:
            SourceError: ``ADOPTED``, ``OVERWRITTEN``.
            SchemaError: ``SCHEMA_CHANGED``.
        """
        if epoch.kind == _ADOPTED:
            raise SourceError(
                f"version {epoch.version} of '{self._root.root}' says anew what the path holds, and not "
                "which of it this query has read: begin again with a new checkpoint",
                code="ADOPTED",
            )
        if epoch.kind in _NO_ROWS:
            return False
        if epoch.mode in _OVERWRITES and epoch.removed and self._on_overwrite is OnOverwrite.FAIL:
            raise SourceError(
                f"version {epoch.version} of '{self._root.root}' has replaced {epoch.removed:,} files, and "
                "a stream cannot take back what it has read of them. Begin again with a new checkpoint, or "
                "take its rows for new ones: on_overwrite('new_rows'), or option 'onOverwrite'",
                code="OVERWRITTEN",
            )
        self._check_columns(epoch)
        return True

    def _check_columns(self, epoch: Epoch) -> None:
        if self._columns is None or not epoch.schema or epoch.schema in self._checked:
            return
        names = self._root.directory.schemas()[epoch.schema].names
        more = [name for name in names if name not in self._columns]
        if more:
            raise SchemaError(
                f"version {epoch.version} of '{self._root.root}' has a column {more[0]!r} that this query "
                "began without. Start it again, with the same checkpoint: then it reads that column, too",
                code="SCHEMA_CHANGED",
            )
        self._checked.add(epoch.schema)


def _batched(epochs: Iterator[Epoch]) -> Iterator[list[Epoch]]:
    while some := [*islice(epochs, _AT_A_TIME)]:
        yield some
