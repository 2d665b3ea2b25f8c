"""The client of a sink that is collected: takes rows, in their order, and says which it needs no more.

Rules:
1. A row is handed out if its epoch is complete, and in one order: by version, file and place in the file.
   Who asks for rows earlier gets them in between, and is where it was: there is no position among them.
2. Whether the query is over is read before what it has left is looked for, so nothing is missed.
3. Only acknowledgements are written. They are put before anything relies on them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from filesink.durations import has_passed
from filesink.errors import ConfigError, SourceError, StateError
from filesink.ports import Clock
from filesink.sink_directory.live_files import LiveFile
from filesink.sinks.collect.early import EarlyPlace, EarlyRows
from filesink.sinks.collect.marks import Marks, Run, Told
from filesink.sinks.collect.position import CollectPosition
from filesink.sinks.collect.rows import FORMAT, rows_of
from filesink.sinks.collect.stored import Stored, Version
from filesink.storage.api import Store
from formats import FormatError

if TYPE_CHECKING:
    import pandas as pd

_SHORTEST: Final = 0.01  # seconds between two looks; doubled while there is nothing new
_LONGEST: Final = 0.64
_AT_A_TIME: Final = 64  # versions between two looks at the marks


class Delivery(Enum):
    """How often a client gets a row, and when."""

    EXACTLY_ONCE = "exactly_once"  # when its epoch is complete
    AT_LEAST_ONCE = "at_least_once"  # as soon as a task has written it


class Acknowledge(Enum):
    """When a client says that it needs rows no more."""

    ASKED = "asked"  # when it asks for those after them, or calls acknowledge()
    READ = "read"  # when it has asked for a later version's


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """How a client takes its rows.

    Attributes:
        wait_ms: how long it waits for something new, in milliseconds; ``None`` for as long as the query runs.
        acknowledge: see there.
        delivery: see there.
    """

    wait_ms: int | None
    acknowledge: Acknowledge
    delivery: Delivery = Delivery.EXACTLY_ONCE


class CollectResults(Iterator[dict[str, Any]]):
    """Rows of a sink, from a position on; made by ``CollectSink.results``.

    Iterating hands out rows as ``dict``. ``batches``, ``to_arrow`` and ``to_pandas`` go on where rows have
    got to, and the other way round. For one thread.

    Raises:
        StateError: ``POSITION_GONE``, another client has acknowledged rows that this one has not taken yet;
            found when it looks for later versions, and when a file is gone. ``REWRITTEN``, others have moved
            rows about.
        IdentityError: ``OTHER_INVENTORY``; the path was removed and written anew.
        SourceError: ``QUERY_FAILED``; everything that it had committed was handed out. When it was started
            again, go on with ``results(after=position)``.
    """

    def __init__(
        self, store: Store, stored: Stored, clock: Clock, *, after: CollectPosition, taking: Taking
    ) -> None:
        self._stored = stored
        self._marks = Marks(store)
        self._store = store
        self._clock = clock
        self._taking = taking
        self._early = EarlyRows(store) if taking.delivery is Delivery.AT_LEAST_ONCE else None
        self._begin = after  # of the batch at work
        self._row = 0  # number of its rows that were handed out
        self._rows = self._one_by_one()
        self._is_complete = False

    @property
    def position(self) -> CollectPosition:
        """Behind the last row that was handed out, of complete epochs. Keep it with what you make of them."""
        return self._begin.at(self._begin.version, self._begin.row + self._row)

    @property
    def is_complete(self) -> bool:
        """Whether the query was over, and all of its rows were handed out."""
        return self._is_complete

    def acknowledge(self) -> None:
        """Say that nothing before ``position`` is needed any more, so that it is removed.

        Raises:
            StorageError: this client may not write below the path.
        """
        place = self.position
        if place.version and place > self._marks.told().upto(place.inventory):
            self._marks.acknowledge(place)

    def __next__(self) -> dict[str, Any]:
        return next(self._rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches of Arrow; ``position`` is behind the last one that was handed out."""
        self._rows = self._one_by_one()
        for place, batch in self._found():
            if isinstance(place, EarlyPlace):
                place.rows.take(place.attempt, batch.num_rows)
            else:
                self._begin, self._row = place, batch.num_rows
            yield batch

    def to_arrow(self) -> pa.Table:
        """All rows that are left, as one table: until the query is over, or as long as ``wait`` says.

        Columns that some rows lack are null there.
        """
        found = [pa.Table.from_batches([batch]) for batch in self.batches()]
        return pa.concat_tables(found, promote_options="permissive") if found else pa.table({})

    def to_pandas(self) -> pd.DataFrame:
        """As ``to_arrow``."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<CollectResults of '{self._stored.path}' after {self.position}>"

    # --- how it gets them

    def _one_by_one(self) -> Iterator[dict[str, Any]]:
        for place, batch in self._found():
            if isinstance(place, EarlyPlace):
                yield from self._one_by_one_early(place, batch)
                continue
            self._begin, self._row = place, 0
            for row in rows_of(batch):
                self._row += 1
                yield row

    def _one_by_one_early(self, place: EarlyPlace, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        for row in rows_of(batch):
            place.rows.take(place.attempt, 1)
            yield row

    def _found(self) -> Iterator[tuple[CollectPosition | EarlyPlace, pa.RecordBatch]]:
        """Batches behind ``position``, and where each begins."""
        seen, since, pause = -1, self._clock.now_ms(), _SHORTEST
        while True:
            told, newest = self._marks.told(), self._stored.newest()
            versions = self._versions() if newest != seen else []
            for version in versions:
                yield from self._of(version)
                if self._early is not None:  # its last rows may have come before
                    self._begin, self._row = self._begin.at(version.number, version.rows), 0
            came = bool(versions) or (yield from self._found_early(told))
            if came:
                seen, since, pause = -1, self._clock.now_ms(), _SHORTEST
                if versions and self._taking.acknowledge is Acknowledge.READ:
                    self.acknowledge()
            elif self._is_over(told, newest, since):
                return
            else:
                seen = newest
                self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST)

    def _found_early(self, told: Told) -> Generator[tuple[EarlyPlace, pa.RecordBatch], None, bool]:
        """Rows of epochs that are not decided, if they are wanted; whether there were any."""
        came = False
        if self._early is not None and told.run is Run.BEGUN:
            for found in self._early.found():
                came = True
                yield found
        return came

    def _versions(self) -> list[Version]:
        """Those of which rows are left, the first few."""
        at, newest = self._stored.look(self.position)
        self._begin, self._row = at, 0
        found = self._stored.since(at, newest)
        self._check_kept()
        if self._early is not None:
            self._early.look()
        left = [one for one in found if (one.number, one.rows) > (at.version, at.row)]
        return left[:_AT_A_TIME]

    def _check_kept(self) -> None:
        """Raise if rows behind the position may be gone. Called when they were listed."""
        told = self._marks.told().upto(self._begin.inventory)
        if told > self.position:
            raise _gone(self._stored.path, self.position, told)

    def _is_over(self, told: Told, newest: int, since: int) -> bool:
        if told.run is Run.ENDED or (told.run is Run.NONE and newest):  # nothing but batch writes
            self._is_complete = True
            return True
        if self._taking.wait_ms is not None and has_passed(since, self._clock.now_ms(), self._taking.wait_ms):
            return True
        if told.run is Run.FAILED:
            raise SourceError(
                f"the query that writes to '{self._stored.path}' has failed; all that it had committed was "
                f"handed out. Start it again, and go on with results(after='{self.position}')",
                code="QUERY_FAILED",
            )
        return False

    def _of(self, version: Version) -> Iterator[tuple[CollectPosition, pa.RecordBatch]]:
        """The rows of one version that are left."""
        skip = self.position.row if self.position.version == version.number else 0
        before = 0
        for file in version.files:
            rows = file.rows or 0
            early = 0 if self._early is None else self._early.taken(file.path)
            left = max(skip, before + early)
            if before + rows <= left:
                before += rows
                continue
            for batch in self._read(file):
                first, before = max(left, before), before + batch.num_rows
                if first < before:
                    begin = self._begin.at(version.number, first)
                    yield begin, batch.slice(batch.num_rows - (before - first))

    def _read(self, file: LiveFile) -> Iterator[pa.RecordBatch]:
        try:
            opened = self._store.open_input(file.path)
        except FileNotFoundError as error:
            told = self._marks.told().upto(self._begin.inventory)
            raise _gone(self._stored.path, self.position, told) from error
        with closing(opened):
            try:
                yield from FORMAT.open_reader(opened)
            except FormatError as error:
                raise SourceError(
                    f"'{file.path}' of version {file.added} cannot be read: {error.message}. Bring it back "
                    "from a backup, or go on behind that version",
                    code="DAMAGED",
                ) from error


def beginning(stored: Stored, marks: Marks, after: CollectPosition | None) -> CollectPosition:
    """Where results begin that are to come behind ``after``, or behind what was acknowledged.

    Raises:
        ConfigError: ``NO_POSITION``; its version has no such row.
        StateError, IdentityError, StateCorruptError: see ``CollectSink.results``.
    """
    if after is None:
        return stored.look(marks.told().upto(stored.inventory()))[0]
    place, _ = stored.look(after)
    found = stored.since(place, place.version)
    told = marks.told().upto(place.inventory)
    if told > place:
        raise _gone(stored.path, place, told)
    rows = sum(version.rows for version in found if version.number == place.version)
    if place.row > rows and place != told:
        raise ConfigError(
            f"version {place.version} of '{stored.path}' has {rows:,} rows, and no place '{place}'; "
            "pass a position that results have had",
            code="NO_POSITION",
        )
    return place


def _gone(path: str, position: CollectPosition, told: CollectPosition) -> StateError:
    return StateError(
        f"rows of '{path}' behind '{position}' are gone, or will be: all up to '{told}' was acknowledged. "
        "One client at a time takes the rows of a path. Go on behind that with results()",
        code="POSITION_GONE",
    )
