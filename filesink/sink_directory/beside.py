"""Where exports write: beside the files of a path, in the same store."""

from __future__ import annotations

from filesink.sink_directory.directory import SinkDirectory
from filesink.storage.api import Store


def store_beside(directory: SinkDirectory) -> Store:
    """The store of the path. For who keeps something beside its files, under names that begin with ``_``."""
    return directory._site.store  # noqa: SLF001 - of this room
