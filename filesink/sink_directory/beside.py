"""Where exports write: beside the files of a path, in the same store."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from filesink.sink_directory.directory import SinkDirectory
from filesink.storage.api import Store


def store_beside(directory: SinkDirectory) -> Store:
    """The store of the path. For who keeps something beside its files, under names that begin with ``_``."""
    return directory._site.store  # noqa: SLF001 - of this room


def remove_empty(directory: SinkDirectory, name: str) -> bool:
    """Remove a directory beside the files, whose files are removed; whether it is gone.

    Object stores have none of their own. On HDFS it has to be removed by hand.
    """
    scheme, separator, _ = directory.path.partition("://")
    if not separator:
        with suppress(FileNotFoundError):  # as it should be
            Path(directory.path, name).rmdir()
    return scheme != "hdfs"
