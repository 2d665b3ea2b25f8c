"""Lists all directories of a base path, once."""

from __future__ import annotations

from collections.abc import Callable

from filesink.ledger.sweep import Hidden, hidden_of, walk
from filesink.naming import is_data, join
from filesink.operations.fsck.seen import SeenFiles
from filesink.storage.api import Entry, Kind, Store


def look_at_files(store: Store, told: Callable[[int], object]) -> SeenFiles:
    """Everything that is there, but for what lies below another base path inside.

    Args:
        store: of the base path.
        told: called now and then with the number of files seen so far.
    """
    visible: dict[str, Entry] = {}
    hidden: list[Hidden] = []
    directories: set[str] = set()
    for directory, entries in walk(store):
        directories.add(directory)
        for entry in entries:
            if entry.kind is Kind.DIRECTORY:
                continue
            if entry.name[0] not in "._":
                if is_data(directory):
                    visible[join(directory, entry.name)] = entry
            elif found := hidden_of(directory, entry):
                hidden.append(found)
        told(len(visible) + len(hidden))
    return SeenFiles(visible=visible, hidden=hidden, directories=frozenset(directories))
