"""Files that overwrites have replaced, and whose time is over, for who removes them by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from filesink.file_sink.left_files import due_files, remove
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import Leftover
from filesink.parts.committables import ReplacedFile
from filesink.storage.api import Store


class DueFiles:
    """What ``sweep`` and ``recover`` find of them.

    Args:
        store: where the files are.
        ledger: the chain of the writes that replace.
    """

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    def plan(self, now_ms: Callable[[], int]) -> Sequence[Leftover]:
        """Those that ``remove`` would remove now.

        Args:
            now_ms: milliseconds since 1970 UTC. Asked only if files are left.

        Raises:
            StateError, SecurityError: the chain is damaged.
        """
        return [_leftover(file) for file in due_files(self._store, self._ledger, now_ms)]

    def remove(self, now_ms: Callable[[], int]) -> Sequence[Leftover]:
        """Remove them; returns what was removed. What cannot be removed is told in the log.

        Args:
            now_ms: the store's time: a host whose clock is ahead would take from readers what they were
                promised. Asked only if files are left.
        """
        due = due_files(self._store, self._ledger, now_ms)
        return [_leftover(file) for file in remove(self._store, due)] if due else []


def _leftover(file: ReplacedFile) -> Leftover:
    reason = "it was replaced, and readers have had their time" if file.grace_ms else "it was replaced"
    return Leftover(path=file.path, size=file.size, reason=reason)
