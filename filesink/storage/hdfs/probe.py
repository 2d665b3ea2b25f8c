"""Proof, when a sink starts, that a cluster keeps what is promised for it."""

from __future__ import annotations

from contextlib import suppress

from filesink.errors import ConfigError, StorageError
from filesink.naming import LEDGER_ROOT, join
from filesink.storage.api import Store
from filesink.storage.hdfs.errors import explaining
from filesink.storage.hdfs.output import HdfsFiles
from filesink.storage.probes import old_probes, probe_name
from filesink.storage.staged import HiddenFile, own


def prove(store: Store, files: HdfsFiles, unique: str) -> None:
    """Write two files, read them, and rename one onto the other, which must leave both as they are.

    Args:
        store: the store that is tried.
        files: of it.
        unique: names the two.

    Raises:
        ConfigError: ``NO_EXCLUSIVE_PUBLISH``.
        StorageError: the cluster does not hand over what was written, or refuses a call.
    """
    first, second = (join(LEDGER_ROOT, probe_name(unique, kind)) for kind in ("first", "second"))
    try:
        made = [_written(store, files, path) for path in (first, second)]
        for name in old_probes(store.list(LEDGER_ROOT), made[0].mtime_ns // 1_000_000):
            store.discard(join(LEDGER_ROOT, name))
        with explaining("rename", files.where(first)), suppress(FileExistsError):
            files.namenode.rename(files.at(first), files.at(second))
        if [files.identity(path) for path in (first, second)] != made:
            raise ConfigError(
                f"the file system of '{files.where('')}' cannot publish without replacing: a rename onto an "
                "existing file did not leave it alone; use another path",
                code="NO_EXCLUSIVE_PUBLISH",
            )
    finally:
        for path in (first, second):
            store.discard(path)


def _written(store: Store, files: HdfsFiles, path: str) -> HiddenFile:
    """A file that holds its own name. It is read back: nothing else would read before the next start."""
    output = store.create(path, target=None)
    output.write(path.encode())
    made = own(output.close(), HiddenFile)
    if store.read(path) != path.encode():
        raise StorageError(
            f"reading '{files.where(path)}' did not give what was written; something between here and the "
            "cluster changes what it hands over, or something else changes files below the base path",
            code="IO",
        )
    return made
