"""The files that a path holds, by listing and ledgers: those of complete epochs, without superseded ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

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


def finished_files(store: Store, entered: Collection[str], gone: Collection[str] = ()) -> pa.Table:
    """Rows of all files that are there; ``at_version`` says since when.

    Args:
        store: of the base path.
        entered: paths that count although the epoch which made them visible is not complete.
        gone: paths that do not count, although the epoch which replaces them is not complete.
    """
    found = [file for file in _there(store, entered) if file.path not in gone]
    sinks = {sink_tag(sink_id): sink_id for sink_id in ledger_ids(store)}
    rows = _rows(store, [file.path for file in found])
    return table_of(
        path=[file.path for file in found],
        bucket=[parent(file.path) for file in found],
        size=[file.size for file in found],
        rows=[rows[file.path] for file in found],
        sink=[sinks.get(file.name.tag, "") for file in found],
        slot=[file.name.slot for file in found],
        schema=[""] * len(found),
    )


def at_version(found: pa.Table, version: int) -> pa.Table:
    """The rows of ``finished_files`` as added at ``version``."""
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


def _rows(store: Store, paths: Sequence[str]) -> dict[str, int | None]:
    """By the records that are kept, else by the files themselves."""
    kept = chains.kept_rows(store)
    unknown = [path for path in paths if path not in kept]
    return {**{path: kept[path] for path in paths if path in kept}, **rows_of(store, unknown)}
