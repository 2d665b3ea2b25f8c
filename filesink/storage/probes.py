"""Names of the files with which ``prepare`` tries what a store can do; removed at once, or a day later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from filesink.storage.api import Entry

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
