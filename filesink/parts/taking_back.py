"""Takes files back for good that an epoch has published: the epoch is undone, and will be written again."""

from __future__ import annotations

from collections.abc import Sequence

from filesink.naming import name_of, parent
from filesink.parts.committables import UndoneFile
from filesink.parts.one_by_one import OneByOne
from filesink.ports import TaskRunner
from filesink.storage.api import Store


class TakingBack:
    """Takes files of an epoch back.

    Args:
        store: where they are.
        runner: works on several at a time where a store answers slowly.
        each: does a step for each file.
    """

    def __init__(self, store: Store, runner: TaskRunner, each: OneByOne) -> None:
        self._store = store
        self._runner = runner
        self._each = each

    def commit(self, undone: Sequence[UndoneFile]) -> list[UndoneFile]:
        """Remove the files, durably; return those that are left. Replayable.

        A publication that was answered with an error may yet be carried out: not without what it publishes.
        """
        self._runner.run(self._store.discard, [file.staged.path for file in undone])
        done = set(self._each.succeeding("taking back", self._take_away, undone))
        directories = {self._left_of(parent(file.target)) for file in undone}
        self._store.sync_directories(sorted(directories))
        return [file for file in undone if file not in done]

    def _take_away(self, file: UndoneFile) -> None:
        if self._store.is_published(file.staged, file.target):
            self._store.delete(file.target)

    def _left_of(self, directory: str) -> str:
        """``directory``, or the one above that is there: it may be gone with all that was in it."""
        while directory and name_of(directory) not in {
            entry.name for entry in self._store.list(parent(directory))
        }:
            directory = parent(directory)
        return directory
