"""Files that overwrites have replaced and that are still there: kept for readers, or not to be removed yet.

Rules:
1. The completion of a chain's newest epoch names them all. Each epoch of that chain takes the list over,
   and removes those that are due. So nothing here is written down.
2. What is due may be removed by anybody at any time: nobody needs it any more, and the next epoch of the
   chain finds it gone. What a power cut gives back is still on the list.
3. A file that is not what it was when it was listed stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from filesink.errors import FilesinkError, StorageError
from filesink.inventory.chains import left_files
from filesink.ledger.ledger import Ledger
from filesink.naming import join, parent
from filesink.parts.committables import ReplacedFile
from filesink.storage.api import Deletion, Store

log = logging.getLogger("filesink")

_EVERY_MS: Final = 600_000  # a stream with an epoch each second does not ask each time


def due_files(store: Store, ledger: Ledger, now_ms: Callable[[], int]) -> list[ReplacedFile]:
    """Those that are there, and are to be removed by now. ``now_ms`` is asked only if some are left."""
    left = left_files(ledger)
    now = now_ms() if left else 0
    due = [file for file in left if file.is_due(now)]
    there = {
        join(directory, entry.name)
        for directory in sorted({parent(file.path) for file in due})
        for entry in store.list(directory)
    }
    return [file for file in due if file.path in there]


def remove(store: Store, files: list[ReplacedFile]) -> list[ReplacedFile]:
    """Remove ``files`` durably; return those that were. What cannot be removed is told in the log."""

    def is_removed(file: ReplacedFile) -> bool:
        try:
            deletion = store.delete_if_unchanged(file.path, size=file.size, version=file.version)
        except StorageError as error:
            log.warning("'%s' was replaced, its time is over, and removing it failed: %s", file.path, error)
            return False
        return deletion is not Deletion.CHANGED

    done = store.runner.run(is_removed, files)
    store.sync_directories(sorted({parent(file.path) for file in files}))
    return [file for file, removed in zip(files, done, strict=True) if removed]


class LeftFiles:
    """Removes what is due, for drivers of other chains below the same base path.

    Args:
        store: where the files are.
        ledger: the chain of the writes that replace.
    """

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self._next_ms = 0
        self._last_slot = -1
        self._is_clear = False  # up to that slot

    def remove_due(self, now_ms: int) -> None:
        """Look at most every ten minutes. Failures are told in the log: later calls try again."""
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + _EVERY_MS
        try:
            self._remove_due(now_ms)
        except FilesinkError as error:  # the chain of others may be damaged: that stops them, and not us
            self._is_clear = False
            log.warning("files that overwrites have replaced could not be looked at: %s", error)

    def _remove_due(self, now_ms: int) -> None:
        listing = self._ledger.directory.listing()
        newest = listing.last_slot()
        if newest < 0 or (self._is_clear and newest == self._last_slot):
            return
        # Read afterwards: an epoch that is complete by then is looked at once more.
        is_complete = not self._ledger.history.half_done()
        due = due_files(self._store, self._ledger, lambda: now_ms)
        removed = remove(self._store, due) if due else []
        waits = any(not file.is_due(now_ms) for file in left_files(self._ledger))
        self._last_slot, self._is_clear = newest, is_complete and len(removed) == len(due) and not waits
