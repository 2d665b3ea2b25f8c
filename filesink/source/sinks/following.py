"""The directory of a sink as a stream: first what is there, then what each epoch adds.

An offset is ``{"version", "index", "inventory", "began"}``: all files of versions up to that one, and so many
of the next; which inventory counts them; and where the query began. While what was there at the start is
read, ``"snapshot"`` is in it, and the index is that of a file of the snapshot.

Rules:
1. A row is read with the epoch that has made it visible, whatever held it back: parts that stay open and
   small files that wait were seen by nobody before.
2. What offline compaction makes of files that were visible is no new row.
3. An overwrite takes rows away, which a stream cannot: it is an error, or its rows are taken for new ones.
   So does a rollback, whose rows are never new. What retention or erasure takes away was read for good.
4. An adoption numbers files anew that may have been read: it is an error. So is what is not remembered, and a
   path that was removed and written anew.
5. Spark keeps no initial offset. If its first batch is repeated after a restart, it asks for another one, and
   the end of the batch tells where it began.
6. A query that has waited for the sink comes with ``{"log", "files": 0}``, of the listing of an empty
   directory. It begins as any other does, and behind nothing even if only what is new is wanted.
7. Spark 4.1 asks for the end of a batch before its beginning, and alike of a query that goes on and of a
   new one. So the end has where a new one ``"would_begin"``: for the run that is asked for its beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from itertools import takewhile
from typing import Final

from filesink.errors import ConfigError, IdentityError, SchemaError, SourceError, StateCorruptError
from filesink.sink_directory.epochs import Epoch
from filesink.sink_directory.feed import FeedEntry
from filesink.sink_directory.snapshot import Snapshot
from filesink.source.files import SourceFile
from filesink.source.sinks.places import Place, has_waited
from filesink.source.sinks.snapshots import SinkRoot
from filesink.source.streams import FileStream, Limit, Offset

_OVERWRITES: Final = {"overwrite", "overwrite_partitions"}
_ROLLBACK: Final = "rollback"
#: Whose rows were visible before, or are not.
_NO_ROWS: Final = {"offline-compaction", "taken-back", "retain", "erase", _ROLLBACK}
_ADOPTED: Final = "adopted"
_ID: Final = 8  # characters of an inventory's id in an offset


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


#: A file, and the place behind it.
_Found = tuple[Place, SourceFile]


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
        self._inventory = ""
        self._began: Place | None = None  # where the query began, as far as this run was told
        self._initial: Place | None = None  # what this run has answered, if it was asked for it
        self._checked: set[str] = set()  # ids of columns that are all read

    def initial(self) -> Offset:
        """See ``FileStream.initial``; no later than ``fix_end``, which may have come before.

        Raises:
            ConfigError: ``NO_VERSION``; it shall begin with one that is not the next yet.
        """
        self._began = self._initial = self._first_place(self._newest(), self._start)
        return self._offset(self._began)

    def _first_place(self, newest: int, chosen: Start) -> Place:
        if chosen.version is not None:
            if chosen.version > newest + 1:
                raise ConfigError(
                    f"'{self._root.root}' has no version {chosen.version} yet; the newest is {newest}. Begin "
                    "with 'latest' for what comes from now on",
                    code="NO_VERSION",
                )
            return Place.behind(max(chosen.version - 1, 0))
        if chosen.time is not None:
            before = self._root.directory.snapshot(chosen.time - timedelta(milliseconds=1))
            return Place.behind(min(before.version, newest))
        return Place.behind(newest) if chosen.is_latest else Place.inside(newest, 0)

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """See ``FileStream.latest``."""
        newest = self._newest()
        if has_waited(start):
            chosen = Start(version=1) if self._start.is_latest else self._start
            place = self._began = self._began or self._first_place(newest, chosen)
        else:
            place = self._place(start)
            self._note_begin(start)
        last = Place.behind(newest)
        if newest < place.version:
            raise self._shrunk(place, newest)
        if last <= place:
            return start
        if limit.is_none:  # files need not be looked at, but what must not be
            for epoch in self._epochs(place.version, newest):
                self._is_new(epoch)
            return self._offset(last)
        size, taken = 0, 0
        for behind, file in self._found(place, newest):
            size, taken = size + file.size, taken + 1
            if taken > 1 and limit.is_over(taken, size):
                return self._offset(place)
            place = behind
        return self._offset(last)

    def latest_of_all(self, limit: Limit) -> Offset:
        """See ``FileStream.latest_of_all``; limits cannot be obeyed, as the versions are not ours."""
        del limit
        newest = self._newest()
        end = dict(self._offset(Place.behind(newest)))
        if self._began is None:  # see rule 7
            end["would_begin"] = self._first_place(newest, self._start).offset()
        return end

    def first_file(self) -> SourceFile | None:
        """See ``FileStream.first_file``: a sink lets nobody write files of another format."""
        return None

    def fix_end(self) -> None:
        """See ``FileStream.fix_end``."""
        self._end = self._root.directory.version

    def files(self, start: Offset, end: Offset) -> Iterator[SourceFile]:
        """See ``FileStream.files``."""
        if has_waited(end):
            return
        last = self._place(end)
        self._note_begin(end)
        place = (self._began or Place.behind(0)) if has_waited(start) else self._place(start)
        if "would_begin" in end and place == self._initial:  # see rule 7
            place = Place.of(end["would_begin"])
        elif self._began is not None and start.get("began") == place.offset():  # see rule 5
            place = self._began
        if last <= place:
            return
        for behind, file in self._found(place, last.version + (1 if last.index else 0)):
            if behind > last:
                return
            yield file

    def finish(self, end: Offset) -> None:
        """See ``FileStream.finish``: files of a sink are left alone."""

    def _newest(self) -> int:
        """The last version that this run reads."""
        return self._root.directory.version if self._end is None else self._end

    def _id(self) -> str:
        """That of the inventory, which has none before its first epoch."""
        self._inventory = self._inventory or self._root.directory.inventory_id[:_ID]
        return self._inventory

    def _offset(self, place: Place) -> Offset:
        began = {} if self._began is None else {"began": self._began.offset()}
        return {**place.offset(), "inventory": self._id(), **began}

    def _note_begin(self, offset: Offset) -> None:
        if "began" in offset:
            self._began = Place.of(offset["began"])

    def _place(self, offset: Offset) -> Place:
        """The place of an offset of ours.

        Raises:
            IdentityError: ``OTHER_INVENTORY``.
        """
        if "version" not in offset or offset.get("inventory", "") not in {"", self._id()}:
            raise IdentityError(
                f"the checkpoint of this query counts other versions than those of '{self._root.root}': the "
                "path was removed and written anew since, or the query has read files of it before it was a "
                "sink's. Begin again with a new checkpoint",
                code="OTHER_INVENTORY",
            )
        return Place.of(offset)

    def _shrunk(self, place: Place, newest: int) -> StateCorruptError:
        return StateCorruptError(
            f"the checkpoint of this query has read version {place.version} of '{self._root.root}', whose "
            f"newest is {newest}: its inventory is an older copy. Bring back a newer one, or begin again "
            "with a new checkpoint",
            code="GAP",
        )

    def _found(self, place: Place, until: int) -> Iterator[_Found]:
        """The files behind ``place``, up to version ``until``."""
        if not place.is_behind:
            yield from self._of_snapshot(place)
            place = Place.behind(place.version)
        index = place.index
        for entry in self._root.directory.follow(place.version, until=until):
            new = list(self._wanted(entry)) if self._is_new(entry.epoch) else []
            for number, file in enumerate(new[index:], index + 1):
                is_last = number == len(new)
                behind = (entry.version, 0) if is_last else (entry.version - 1, number)
                yield Place.behind(*behind), file
            index = 0

    def _of_snapshot(self, place: Place) -> Iterator[_Found]:
        if self._snapshot is None or self._snapshot.version != place.version:
            self._snapshot = self._root.snapshot(place.version)
        files = self._snapshot.files
        for number, live in enumerate(files[place.index :], place.index + 1):
            file = self._root.wanted(live)
            if file is not None:
                is_last = number == len(files)
                yield (Place.behind(place.version) if is_last else Place.inside(place.version, number)), file

    def _epochs(self, after: int, until: int) -> Iterator[Epoch]:
        return takewhile(lambda epoch: epoch.version <= until, self._root.directory.epochs(after))

    def _wanted(self, entry: FeedEntry) -> Iterator[SourceFile]:
        return (file for live in entry.added if (file := self._root.wanted(live)) is not None)

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
        takes_back = epoch.mode in _OVERWRITES or epoch.kind == _ROLLBACK
        if takes_back and epoch.removed and self._on_overwrite is OnOverwrite.FAIL:
            raise SourceError(
                f"version {epoch.version} of '{self._root.root}' has replaced {epoch.removed:,} files, and "
                "a stream cannot take back what it has read of them. Begin again with a new checkpoint, or "
                "take its rows for new ones: on_overwrite('new_rows'), or option 'onOverwrite'",
                code="OVERWRITTEN",
            )
        if epoch.kind in _NO_ROWS:
            return False
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
