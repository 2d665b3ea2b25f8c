"""Looks at an inventory: whether it is whole, and if not, which of its files is at fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import pyarrow as pa

from filesink.errors import SecurityError, StateError, StateVersionError
from filesink.inventory import chains
from filesink.inventory.entry import Entry
from filesink.inventory.mark import Mark, MarkKind, Segment, digest
from filesink.inventory.names import DIRECTORY, Listing, entry_path, mark_path, schema_path, segment_path
from filesink.inventory.reading import Look, Moved, Reader
from filesink.inventory.rows import epochs as epoch_rows
from filesink.inventory.rows import files as file_rows
from filesink.inventory.rows.merging import merge
from filesink.inventory.schemas import read_schema
from filesink.operations.fsck.chains import damaged
from filesink.operations.fsck.seen import Draft, SeenInventory
from filesink.ports import Clock
from filesink.storage.api import Store
from formats.arrow import pc


def look_at_inventory(store: Store, clock: Clock) -> tuple[SeenInventory | None, list[Draft]]:
    """What it says, if it is whole; and what is wrong with it."""
    reader = Reader(store, clock)
    drafts = list(_marks(reader))
    try:
        seen = reader.steady(lambda look, entries: _all_of(reader, look, entries))
    except (StateError, SecurityError) as error:
        drafts += _in_detail(reader)
        return None, drafts or [damaged(error, DIRECTORY, kind="MARK")]
    if seen is None:
        if not chains.are_all_new(store):
            drafts.append(Draft("INVENTORY_MISSING", DIRECTORY, "there is no mark"))
        return None, drafts
    if seen.kind is MarkKind.ADOPTING:
        drafts.append(Draft("INVENTORY_ADOPTING", mark_path(seen.number), "its newest mark says so"))
        return None, drafts
    drafts += _schemas(reader, seen.found)
    return seen.found, drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class _All:
    kind: MarkKind
    number: int
    found: SeenInventory


def _all_of(reader: Reader, look: Look, entries: Sequence[Entry]) -> _All:
    pieces = [*reader.pieces(look, "files"), iter([file_rows.files_of(entries)])]
    rows = list(merge(pieces))
    epochs = chain.from_iterable(reader.pieces(look, "epochs"))
    found = SeenInventory(
        version=look.newest,
        horizon=look.mark.horizon,
        files=pa.concat_tables(rows) if rows else file_rows.FILES.empty_table(),
        epochs=epoch_rows.in_order([*epochs, epoch_rows.epochs_of(entries)]),
    )
    return _All(kind=look.mark.kind, number=look.mark.number, found=found)


def _marks(reader: Reader) -> Iterator[Draft]:
    """What is wrong with marks, and whether each has the hash of the one before it.

    From the newest to the last adoption, which looked up everything anew. Earlier ones, and all that are not
    the newest, are past: nobody reads them.
    """
    after: Mark | None = None
    newest = True
    for number in reversed(reader.listing().marks):
        path = mark_path(number)
        data = reader.store.read(path)
        if data is None:  # swept since it was listed
            continue
        try:
            mark = Mark.from_bytes(data, where=path)
        except (StateError, SecurityError) as error:
            if newest:
                yield damaged(error, path, kind="MARK")
            elif not isinstance(error, StateVersionError):
                yield Draft("MARK_PAST", path, error.message)
            after, newest = None, False
            continue
        if after is not None and after.number == number + 1 and after.previous != digest(data):
            path = mark_path(after.number)
            yield Draft("MARK_FOREIGN", path, f"it does not have the hash of mark {number}")
        if mark.kind is MarkKind.ADOPTED:
            return
        after, newest = mark, False


def _in_detail(reader: Reader) -> Iterator[Draft]:
    """What keeps an inventory from being read."""
    listing = reader.listing()
    if not listing.marks:
        yield Draft("MARK_MISSING", mark_path(0), "there are entries or segments, and no mark")
        return
    path = mark_path(listing.marks[-1])
    data = reader.store.read(path)
    try:
        mark = None if data is None else Mark.from_bytes(data, where=path)
    except (StateError, SecurityError):  # told by ``_marks``
        return
    if mark is not None:
        yield from _segments(reader, mark.segments)
        yield from _entries(reader, listing, mark)


def _segments(reader: Reader, segments: Iterable[Segment]) -> Iterator[Draft]:
    for segment in segments:
        path = segment_path(segment.name)
        try:
            for rows in reader.rows([segment]):
                _count(rows)
        except Moved:
            yield Draft("SEGMENT_MISSING", path, "the newest mark names it")
        except StateError as error:
            yield damaged(error, path, kind="SEGMENT")


def _count(pieces: Iterable[pa.Table]) -> int:
    return sum(rows.num_rows for rows in pieces)


def _entries(reader: Reader, listing: Listing, mark: Mark) -> Iterator[Draft]:
    above = [version for version in listing.entries if version > mark.version]
    number, name = listing.segments[-1] if listing.segments else (-1, "")
    if number > mark.number and above[:1] != [mark.version + 1]:  # the entries were folded into what it names
        yield Draft("MARK_MISSING", mark_path(number), f"{name} was made for it")
        return
    for before, version in pairwise([mark.version, *above]):
        for missing in range(before + 1, version):
            yield Draft("ENTRY_MISSING", entry_path(missing), f"version {above[-1]} is there")
    for version in above:
        path = entry_path(version)
        try:
            entry = reader.entry(version)
        except (StateError, SecurityError) as error:
            yield damaged(error, path, kind="ENTRY")
            continue
        if entry is not None and entry.base_id != mark.base_id:
            yield Draft("ENTRY_FOREIGN", path, "it is that of another inventory")


def _schemas(reader: Reader, found: SeenInventory) -> Iterator[Draft]:
    named = {
        str(name)
        for rows in (found.files.filter(pc.is_valid(found.files["added"])), found.epochs)
        for name in pc.unique(rows["schema"].cast(pa.string())).to_pylist()
        if name
    }
    there = reader.listing().schemas
    for name in sorted(named):
        path = schema_path(name)
        if name not in there:
            yield Draft("SCHEMA_MISSING", path, "versions name it")
            continue
        try:
            read_schema(reader.store, name)
        except StateError as error:
            yield damaged(error, path, kind="SCHEMA")
