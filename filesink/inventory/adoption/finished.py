"""The files that a path holds, by listing and ledgers: those of complete epochs, without superseded ones.

Rule: no two files of sinks ever have the same name. So a file that a record, or else the inventory, has under
another path was copied there, or moved, and is not adopted. Where nobody tells which of two is the copy, that
is for people to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from filesink.errors import StateError
from filesink.inventory import chains
from filesink.inventory.adoption.complete_files import complete_files
from filesink.inventory.adoption.footers import rows_of
from filesink.inventory.rows.files import FILES, table_of
from filesink.ledger.directory import ledger_ids
from filesink.ledger.sweep import walk
from filesink.naming import PartName, is_data, join, name_of, parent, parse_part, sink_tag
from filesink.storage.api import Kind, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    path: str
    size: int
    name: PartName


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What was found.

    Attributes:
        files: those that count.
        elsewhere: paths of files that were written to another one.
        kept: rows of files, by the records that are kept.
    """

    files: Sequence[_Found]
    elsewhere: Sequence[str]
    kept: Mapping[str, int]

    def paths(self) -> set[str]:
        """Those of ``files``."""
        return {file.path for file in self.files}

    def table(self, store: Store) -> pa.Table:
        """Rows of ``rows.files``, without since when; what records do not tell, the files themselves do."""
        found, sinks = self.files, {sink_tag(sink_id): sink_id for sink_id in ledger_ids(store)}
        rows = {**self.kept, **rows_of(store, [one.path for one in found if one.path not in self.kept])}
        return table_of(
            path=[file.path for file in found],
            bucket=[parent(file.path) for file in found],
            size=[file.size for file in found],
            rows=[rows[file.path] for file in found],
            sink=[sinks.get(file.name.tag, "") for file in found],
            slot=[file.name.slot for file in found],
            schema=[""] * len(found),
        )


def finished(
    store: Store, entered: Collection[str], *, gone: Collection[str] = (), known: Collection[str] = ()
) -> Finished:
    """All files that are there; ``at_version`` says since when.

    Args:
        store: of the base path.
        entered: paths that count although the epoch which made them visible is not complete.
        gone: paths that do not count, although the epoch which replaces them is not complete.
        known: paths of files that the inventory has, or had.

    Raises:
        StateError: ``DOUBLED``, a file is there twice, and nobody tells which is the copy.
    """
    found = [file for file in _there(store, entered) if file.path not in gone]
    kept = chains.kept_rows(store)
    places = {**_by_name(known), **_by_name(kept)}  # records before the inventory
    elsewhere = {file.path for file in found if file.path not in places.get(name_of(file.path), {file.path})}
    files = [file for file in found if file.path not in elsewhere]
    for paths in _by_name(file.path for file in files).values():
        if len(paths) > 1:
            raise _doubled(paths)
    return Finished(files=files, elsewhere=sorted(elsewhere), kept=kept)


def _by_name(paths: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in paths:
        found.setdefault(name_of(path), set()).add(path)
    return found


def _doubled(paths: Collection[str]) -> StateError:
    shown = " and ".join(f"'{path}'" for path in sorted(paths)[:2])
    return StateError(
        f"{shown} are one file twice, and neither a record nor the inventory tells which is the copy: its "
        "rows would be there twice. Move the copy away, then call adopt() again",
        code="DOUBLED",
    )


def at_version(found: pa.Table, version: int) -> pa.Table:
    """The rows of ``Finished.table`` as added at ``version``."""
    added = pa.array([version] * found.num_rows, pa.int64())
    return found.set_column(FILES.get_field_index("added"), FILES.field("added"), added)


def _there(store: Store, entered: Collection[str]) -> list[_Found]:
    listed = [
        _Found(path=join(directory, entry.name), size=entry.size, name=name)
        for directory, entries in walk(store)
        if is_data(directory)
        for entry in entries
        if entry.kind is Kind.FILE and (name := parse_part(entry.name))
    ]
    complete, superseded = complete_files(store), chains.superseded(store)
    paths = {file.path for file in listed}
    return [
        file
        for file in listed
        if file.path in entered
        or (complete.has(name_of(file.path), file.name) and not superseded.get(file.path, set()) & paths)
    ]
