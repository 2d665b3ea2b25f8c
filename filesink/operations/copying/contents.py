"""What a path holds that a copy of it must hold, as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from filesink.errors import StateError
from filesink.inventory.chains import at_work
from filesink.ledger.directory import LedgerDirectory
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord, Section
from filesink.ledger.sweep import hidden_of, walk
from filesink.naming import LEDGER_ROOT, is_data, join, name_of, parse_part
from filesink.parts.committables import HeldFile, HeldFileCodec
from filesink.parts.recorded_paths import check_record
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.sink_states import chain_ids
from filesink.sink_directory.site import Site
from filesink.storage.api import Kind, Store
from filesink.storage.staged import Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A path at one moment.

    Attributes:
        inventory_id: of its inventory.
        version: the newest.
        files: size of each file that readers see, of dead letters, and of files such as ``_SUCCESS``.
        held: each file that a chain keeps for a later epoch, by its hidden name.
        heads: the newest record of each chain that keeps files, by its path.
        ledger: paths of all that stands below ``_filesink``.
        others: files that are of no sink, and are not copied.
    """

    inventory_id: str
    version: int
    files: Mapping[str, int]
    held: Mapping[str, HeldFile]
    heads: Mapping[str, EpochRecord]
    ledger: frozenset[str]
    others: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Of all files of data."""
        return sum(self.files.values()) + sum(file.size for file in self.held.values())


def contents_of(site: Site) -> Contents:
    """What is there now.

    Raises:
        StateError: ``AT_WORK``, an epoch is decided and not complete; ``FILE_LOST``, a live file is not
            there; ``NO_INVENTORY``, ``ADOPTING``.
        StateCorruptError: something is damaged.
    """
    store, directory = site.store, SinkDirectory(_site=site)
    ledger = frozenset(_below(store, LEDGER_ROOT))
    busy = at_work(store)
    if busy:
        raise StateError(
            f"'{site.base_path}': {next(iter(busy.values())).name} is decided and not complete. Nothing was "
            "copied. Start its query again, or call recover, and stop the writers meanwhile",
            code="AT_WORK",
        )
    snapshot = directory.snapshot()
    live = {file.path: file.size for file in snapshot.files}
    heads = dict(_heads(store))
    held = {file.staged.path: file for record in heads.values() for file in _held(record)}
    beside, others = _beside(store, live)
    return Contents(
        inventory_id=directory.inventory_id,
        version=snapshot.version,
        files=_there(site, {**live, **beside}, live),
        held=held,
        heads=heads,
        ledger=ledger,
        others=tuple(others),
    )


def with_held(record: EpochRecord, staged: Mapping[str, Staged]) -> EpochRecord:
    """``record`` with the files it keeps as they are in another store, by their hidden names."""
    codec = HeldFileCodec()
    states = {
        subtask: Section.of(
            codec,
            [replace(one, staged=staged[one.staged.path]) for one in section.decode(codec)],
        )
        for subtask, section in record.states.items()
    }
    return replace(record, states=states)


def _heads(store: Store) -> Iterator[tuple[str, EpochRecord]]:
    for sink_id in chain_ids(store):
        head = Ledger(store, sink_id, check=check_record).history.newest()
        if head is not None and head.record.states:
            path = LedgerDirectory(store, sink_id).path_of(head.record.slot, "record")
            yield path, head.record


def _held(record: EpochRecord) -> Iterator[HeldFile]:
    for section in record.states.values():
        yield from section.decode(HeldFileCodec())


def _beside(store: Store, live: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """Files that are in no inventory: those that go along, and those that do not."""
    kept: dict[str, int] = {}
    others: list[str] = []
    for directory, entries in walk(store):
        for entry in entries:
            path = join(directory, entry.name)
            if entry.kind is not Kind.FILE or path in live or hidden_of(directory, entry) is not None:
                continue
            is_dead_letter = not is_data(directory) and parse_part(entry.name) is not None
            if is_dead_letter or entry.name.startswith("_"):
                kept[path] = entry.size
            elif parse_part(entry.name) is None:
                others.append(path)
    return kept, others


def _there(site: Site, files: Mapping[str, int], live: Mapping[str, int]) -> Mapping[str, int]:
    """``files``, if they are there as they were written."""
    listed = {
        join(directory, entry.name): entry.size
        for directory, entries in walk(site.store)
        for entry in entries
        if entry.kind is Kind.FILE
    }
    gone = [path for path, size in live.items() if listed.get(path) != size]
    if gone:
        raise StateError(
            f"'{site.base_path}': live files are not there as they were written, {len(gone):,} in all, such "
            f"as '{gone[0]}'. Nothing was copied. filesink fsck tells what mends it",
            code="FILE_LOST",
        )
    return files


def _below(store: Store, directory: str) -> Iterator[str]:
    for entry in store.list(directory):
        path = join(directory, entry.name)
        if entry.kind is Kind.DIRECTORY:
            yield from _below(store, path)
        elif entry.kind is Kind.FILE and not name_of(path).startswith("."):
            yield path
