"""Compares the inventory with a listing: what is lost, has another size, is twice or misplaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from filesink.inventory import chains as chain_facts
from filesink.ledger.directory import COMPACTION
from filesink.ledger.identity import EXCLUSIVE
from filesink.naming import LEDGER_ROOT, name_of, parent, parse_part, sink_tag
from filesink.operations.fsck.seen import Draft, Look, SeenChain, SeenFiles, SeenInventory
from filesink.parts.committables import (
    Committable,
    CommittableCodec,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
)
from filesink.storage.api import Entry, Kind, Store

_PIECE = 1 << 20  # bytes that are compared at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file of the newest version. ``rows`` is ``None`` if nobody knows."""

    path: str
    size: int
    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of paths.

    Attributes:
        live: files of the newest version.
        gone: paths that were removed, and are remembered; by versions, or as inputs of a compaction.
        moving: paths of epochs at work, and of files that readers may still need: they may be there or not.
        left: paths that were replaced and should have been removed by now.
        newest: tag of each chain, its id and its newest slot; for files whose names tell their slots.
        written: name and path of each file that a record which is kept has.
    """

    live: Mapping[str, LiveFile]
    gone: frozenset[str]
    moving: frozenset[str]
    left: frozenset[str]
    newest: Mapping[str, tuple[str, int]]
    written: Mapping[str, str]


def known_of(look: Look, inventory: SeenInventory, store: Store, *, now_ms: int) -> Known:
    """What chains and inventory tell of files, in milliseconds since 1970 UTC by now."""
    rows = inventory.files.select(["path", "size", "rows", "added", "removed"])
    columns = [rows[name].to_pylist() for name in rows.column_names]
    live: dict[str, LiveFile] = {}
    gone: set[str] = set()
    for path, size, count, added, removed in zip(*columns, strict=True):
        if removed is not None:
            gone.add(path)
        elif added is not None:
            live[path] = LiveFile(path=path, size=size, rows=count)
    moving = {path for chain in look.chains for path in _moving(chain)}
    merged = chain_facts.superseded(store) if all(chain.is_whole for chain in look.chains) else {}
    ended = {path for path in merged.keys() & _ended(look) if not merged[path].isdisjoint(look.files.visible)}
    moving |= merged.keys() - ended
    replaced = [file for chain in look.chains for file in chain.left if isinstance(file, ReplacedFile)]
    moving |= {file.path for file in replaced if not file.is_due(now_ms)}
    left = {file.path for file in replaced} - moving
    newest = {
        sink_tag(chain.sink_id): (chain.sink_id, look.decided[chain.sink_id])
        for chain in look.chains
        if not chain.is_open
    }
    records = (record for chain in look.chains for record in chain.records.values())
    written = (file for record in records for file in record.committables.decode(CommittableCodec()))
    return Known(
        live=live,
        gone=frozenset(gone | ended),
        moving=frozenset(moving),
        left=frozenset(left),
        newest=newest,
        written={name_of(file.target): file.target for file in written if isinstance(file, PendingFile)},
    )


def _ended(look: Look) -> set[str]:
    """Inputs that the newest complete offline compaction has removed: it names them so for readers' sake."""
    chains = {chain.sink_id: chain for chain in look.chains}
    if EXCLUSIVE not in chains or COMPACTION not in chains:
        return set()
    records = chains[COMPACTION].records
    slot = max(records.keys() - chains[EXCLUSIVE].unfinished, default=None)
    files = () if slot is None else records[slot].committables.decode(CommittableCodec())
    return {file.path for file in files if isinstance(file, ReplacedFile)}


def _moving(chain: SeenChain) -> Iterator[str]:
    """Paths that an epoch at work makes or removes; the one that it undoes, too."""
    slots = set(chain.unfinished)
    newest = chain.newest()
    if newest is not None and newest.slot in slots:
        slots |= chain.undone
    for slot in slots & chain.records.keys():
        record = chain.records[slot]
        for file in record.committables.decode(CommittableCodec()):
            yield from _paths(file)


def _paths(file: Committable) -> Iterator[str]:
    match file:
        case PendingFile(target=path) | UndoneFile(target=path):
            yield path
        case ReplacedFile(path=path) | SupersededFile(path=path):
            yield path
        case _:
            pass


def compare_files(
    known: Known, files: SeenFiles, store: Store, *, told: Collection[str] = ()
) -> Iterator[Draft]:
    """What readers by versions and readers of directories see differently, but for files ``told`` of."""
    places: dict[str, list[str]] = {}
    for path in files.visible:
        places.setdefault(name_of(path), []).append(path)
    nested = _Nested(store, files.directories)
    moved: set[str] = set()
    for path, file in known.live.items():
        entry = files.visible.get(path)
        if entry is None:
            yield from _not_there(file, places, known, nested, moved)
        elif entry.kind is Kind.FILE and entry.size != file.size and path not in known.moving:
            yield Draft("FILE_RESIZED", path, f"it has {entry.size:,} bytes, and had {file.size:,}")
    copies = _Copies(store, _by_size(known.live.values(), files))
    names = _Names(
        live={name_of(path): path for path in known.live}, gone={name_of(p): p for p in known.gone}
    )
    for path, entry in files.visible.items():
        if entry.kind is Kind.OTHER:
            yield Draft("FILE_LINK", path, "it is no file")
        elif path not in known.live and path not in known.moving and path not in moved and path not in told:
            yield _not_known(path, entry, known, copies, names)


def _not_there(
    file: LiveFile, places: Mapping[str, Sequence[str]], known: Known, nested: _Nested, moved: set[str]
) -> Iterator[Draft]:
    path = file.path
    if path in known.moving:
        return
    if base := nested.base_of(parent(path)):
        yield Draft("BASE_NESTED", base, f"'{LEDGER_ROOT}' is in it")
        return
    elsewhere = [other for other in places.get(name_of(path), ()) if other not in known.live]
    if elsewhere:
        moved.add(elsewhere[0])
        yield Draft("FILE_MISPLACED", elsewhere[0], f"it belongs to '{parent(path) or '.'}'")
    else:
        yield Draft("FILE_LOST", path, f"{_rows(file)} in {file.size:,} bytes")


def _rows(file: LiveFile) -> str:
    return "an unknown number of rows" if file.rows is None else f"{file.rows:,} rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Paths by names of files: no two files of sinks ever have the same."""

    live: Mapping[str, str]
    gone: Mapping[str, str]

    def told_of(self, path: str) -> Draft | None:
        """What the name tells of a copy that has other bytes, or whose original is gone."""
        name = name_of(path)
        if parse_part(name) is not None and name in self.live:
            return Draft("FILE_DOUBLED", path, f"it has the name of '{self.live[name]}', and other bytes")
        if parse_part(name) is not None and name in self.gone:
            return Draft("FILE_RETURNED", path, f"versions have removed '{self.gone[name]}'")
        return None


def _not_known(path: str, entry: Entry, known: Known, copies: _Copies, names: _Names) -> Draft:
    """A visible file that readers by versions do not see."""
    if path in known.left:
        return Draft("FILE_LEFT", path, "no epoch has removed it yet")
    if path in known.gone:
        return Draft("FILE_RETURNED", path, "versions have removed it")
    original = copies.original_of(path, entry.size)
    if original is not None:
        return Draft("FILE_DOUBLED", path, f"it has the bytes of '{original}'")
    return names.told_of(path) or _of_nobody(path, entry, known)


def _of_nobody(path: str, entry: Entry, known: Known) -> Draft:
    part = parse_part(name_of(path))
    if part is None:
        return Draft("FILE_FOREIGN", path, f"{entry.size:,} bytes")
    if known.written.get(name_of(path), path) != path:  # no version has it any more, since an adoption
        return Draft("FILE_MISPLACED", path, f"it belongs to '{parent(known.written[name_of(path)]) or '.'}'")
    sink_id, newest = known.newest.get(part.tag, ("", -1))
    if sink_id and part.slot > newest:
        detail = f"'{path}' was made by epoch {part.slot}, and the ledger ends with {newest}"
        return Draft("TAIL_LOST", f"{LEDGER_ROOT}/{sink_id}", detail)
    return Draft("FILE_UNKNOWN", path, f"{entry.size:,} bytes")


def _by_size(live: Iterable[LiveFile], files: SeenFiles) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for file in live:
        if file.path in files.visible:
            found.setdefault(file.size, []).append(file.path)
    return found


class _Nested:
    """Finds base paths inside this one, which a listing leaves out."""

    def __init__(self, store: Store, listed: frozenset[str]) -> None:
        self._store = store
        self._listed = listed
        self._known: dict[str, str] = {}

    def base_of(self, directory: str) -> str:
        """The base path that ``directory`` belongs to; ``""`` for ours, or if it is not there."""
        if not directory or directory in self._listed:
            return ""
        if directory not in self._known:
            above = self.base_of(parent(directory))
            self._known[directory] = above or (directory if self._is_base(directory) else "")
        return self._known[directory]

    def _is_base(self, directory: str) -> bool:
        entries = self._store.list(directory)
        return any(entry.name == LEDGER_ROOT and entry.kind is Kind.DIRECTORY for entry in entries)


class _Copies:
    """Finds the live file that another one is a copy of."""

    def __init__(self, store: Store, sizes: Mapping[int, Sequence[str]]) -> None:
        self._store = store
        self._sizes = sizes

    def original_of(self, path: str, size: int) -> str | None:
        """A live file with the same bytes."""
        candidates = self._sizes.get(size, ()) if size else ()
        by_name = sorted(
            candidates, key=lambda one: (name_of(one) != name_of(path), parent(one) != parent(path))
        )
        return next((one for one in by_name if self._are_equal(path, one)), None)

    def _are_equal(self, one: str, other: str) -> bool:
        try:
            with self._store.open_input(one) as here, self._store.open_input(other) as there:
                return _have_same_bytes(here, there)
        except FileNotFoundError:  # removed since it was listed
            return False


def _have_same_bytes(one: BinaryIO, other: BinaryIO) -> bool:
    while True:
        here, there = one.read(_PIECE), other.read(_PIECE)
        if here != there:
            return False
        if not here:
            return True
