"""What can be read of an inventory that may be damaged, or may be none yet. Touches nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from filesink.errors import FilesinkError, StateError, StorageError
from filesink.inventory.entry import Entry
from filesink.inventory.mark import Mark, MarkKind, Segment
from filesink.inventory.names import Listing, mark_path
from filesink.inventory.reading import Moved, Reader
from filesink.inventory.rows.epochs import in_order
from filesink.ports import Clock
from filesink.storage.api import Store
from formats.arrow import pc

_LEAP: Final = 1_000_000  # versions; more than the entries that a mark which cannot be read may have folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """An inventory, as far as it can be read.

    Attributes:
        number: that of the newest mark, which may be damaged; -1 if there is none.
        data: the bytes of that mark.
        mark: the newest mark that can be read.
        base_id: of the inventory; ``""`` if it cannot be read anywhere.
        newest: no version above it has ever been given to an epoch, by all that is known.
        entries: those above ``mark`` that can be read.
        epochs: rows of its segments.
        is_whole: whether everything that was ever said of epochs could be read.
    """

    number: int
    data: bytes
    mark: Mark | None
    base_id: str
    newest: int
    entries: tuple[Entry, ...]
    epochs: pa.Table
    is_whole: bool

    @property
    def is_begun(self) -> bool:
        """Whether nothing was ever said here but that the path is being adopted.

        Where the first mark cannot be read, entries tell that more was said.
        """
        mark = self.mark
        said_more = bool(self.entries) if mark is None else mark.kind is not MarkKind.ADOPTING
        return self.number <= 0 and not said_more

    def added(self) -> set[str]:
        """Paths of the files that ``entries`` have added, and none of them has removed."""
        gone = {path for entry in self.entries for path in entry.epoch.removed}
        return {file.path for entry in self.entries for file in entry.epoch.added} - gone

    def nonces(self) -> set[str]:
        """The nonces of epochs that have a version."""
        return {*(entry.epoch.nonce for entry in self.entries), *map(str, self.epochs["nonce"].to_pylist())}


def remains_of(store: Store, clock: Clock) -> Remains:
    """What there is now.

    Raises:
        StorageError: the store does not answer; that is no damage.
    """
    reader = Reader(store, clock)
    listing = reader.listing()
    mark = next((one for number in reversed(listing.marks) if (one := _mark(store, number))), None)
    covered = 0 if mark is None else mark.version
    above = [version for version in listing.entries if version > covered]
    entries = [entry for version in above if (entry := _entry(reader, version))]
    base_id = mark.base_id if mark is not None else entries[0].base_id if entries else ""
    ours = tuple(entry for entry in entries if entry.base_id == base_id)
    epochs = [_epochs(reader, segment) for segment in (() if mark is None else mark.of_kind("epochs"))]
    number = listing.marks[-1] if listing.marks else -1
    return Remains(
        number=number,
        data=(store.read(mark_path(number)) or b"") if listing.marks else b"",
        mark=mark,
        base_id=base_id,
        newest=max([covered, *listing.entries]) + (_LEAP if _is_beheaded(mark, listing) else 0),
        entries=ours,
        epochs=in_order([rows for rows in epochs if rows is not None]),
        is_whole=not _is_beheaded(mark, listing) and None not in epochs and len(ours) == len(above),
    )


def paths_of(remains: Remains, reader: Reader) -> set[str]:
    """Those of the files that entries and segments have, or had, as far as they can be read."""
    entered = {file.path for entry in remains.entries for file in entry.epoch.added}
    segments = () if remains.mark is None else remains.mark.of_kind("files")
    return entered.union(*(_paths(reader, segment) for segment in segments))


def _is_beheaded(mark: Mark | None, listing: Listing) -> bool:
    """Whether a mark is lost that may have folded entries which nobody knows any more."""
    if mark is None:
        return bool(listing.marks or listing.segments)
    is_damaged = mark.number < listing.marks[-1]
    has_entries = bool(listing.entries) and listing.entries[-1] > mark.version
    is_gone = bool(listing.segments) and listing.segments[-1][0] > mark.number and not has_entries
    return is_damaged or is_gone


def _mark(store: Store, number: int) -> Mark | None:
    path = mark_path(number)
    data = store.read(path)
    try:
        return None if data is None else Mark.from_bytes(data, where=path)
    except StateError:
        return None


def _entry(reader: Reader, version: int) -> Entry | None:
    try:
        return reader.entry(version)
    except StorageError:
        raise
    except FilesinkError:
        return None


def _epochs(reader: Reader, segment: Segment) -> pa.Table | None:
    try:
        return in_order([rows for piece in reader.rows([segment]) for rows in piece])
    except (Moved, StateError):
        return None


def _paths(reader: Reader, segment: Segment) -> set[str]:
    """Those of its files; none if it cannot be read."""
    try:
        pieces = [rows for piece in reader.rows([segment]) for rows in piece]
    except (Moved, StateError):
        return set()
    return {
        str(path) for rows in pieces for path in rows.filter(pc.is_valid(rows["added"]))["path"].to_pylist()
    }
