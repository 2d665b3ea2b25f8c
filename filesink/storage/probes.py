"""Files that try what a store can do, or show what its clock says; removed at once, or a day later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from filesink.errors import StorageError
from filesink.naming import LEDGER_ROOT, join
from filesink.storage.api import Entry, Store

_PROBE = re.compile(r"\.probe\.[0-9a-f-]{36}(\.[a-z]+)?")
_OLD_MS = 24 * 3600 * 1000  # no probe takes a day


def probe_name(unique: str, kind: str = "") -> str:
    """The name of a probe; ``kind`` tells several of one probe apart."""
    return f".probe.{unique}.{kind}" if kind else f".probe.{unique}"


def old_probes(entries: Iterable[Entry], now_ms: int) -> Iterator[str]:
    """Names of probes that died half-way.

    Args:
        entries: of the directory where probes are made.
        now_ms: the store's own clock, as a file that was just made shows it.
    """
    for entry in entries:
        if entry.mtime_ms < now_ms - _OLD_MS and _PROBE.fullmatch(entry.name):
            yield entry.name


def store_ms(store: Store, unique: str) -> int:
    """The store's own clock, as a file that is just made shows it, in milliseconds since 1970 UTC.

    Args:
        store: with the directory of the ledgers.
        unique: makes the name of the file.

    Raises:
        StorageError: also ``NO_TIME``, the file was gone when it was looked at.
    """
    name = probe_name(unique, "clock")
    output = store.create(join(LEDGER_ROOT, name), target=None)
    try:
        output.write(b".")
        output.close()
        found = [entry.mtime_ms for entry in store.list(LEDGER_ROOT) if entry.name == name]
    finally:
        output.discard()
    if not found:
        raise StorageError(
            f"'{LEDGER_ROOT}/{name}', made to learn the time of the store, was gone at once. Nothing was "
            "removed; call again",
            code="NO_TIME",
        )
    return found[0]
