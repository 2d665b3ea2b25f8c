"""Does a step for each of many files by itself: one that fails is tried again and holds back no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from filesink.errors import CommitConflictError, StagedDataLost, StorageError
from filesink.parts.committables import PendingFile, UndoneFile
from filesink.ports import TaskRunner

FileT = TypeVar("FileT", PendingFile, UndoneFile)
log = logging.getLogger("filesink")


class OneByOne:
    """Does steps of a committer.

    Args:
        runner: does several at a time where a store answers slowly.

    Attributes:
        failure: why a file is to be tried again.
    """

    def __init__(self, runner: TaskRunner) -> None:
        self.failure: Exception | None = None
        self._runner = runner

    def succeeding(self, doing: str, step: Callable[[FileT], None], files: Sequence[FileT]) -> list[FileT]:
        """Those of ``files`` for which ``step`` was done; the others are to be tried again.

        Raises:
            CommitConflictError, StagedDataLost: that cannot help. All files have been tried.
        """

        def attempt(file: FileT) -> StorageError | None:
            try:
                step(file)
            except (CommitConflictError, StagedDataLost):
                raise
            except StorageError as error:
                log.warning("%s '%s' failed: %s", doing, file.target, error)
                return error  # the file stays in the list of what is to be tried again
            return None

        errors = self._runner.run(attempt, files)
        failed = [error for error in errors if error is not None]
        # One that stays is told first: while it does, the epoch cannot be completed.
        self.failure = max(failed, key=lambda error: error.is_permanent, default=self.failure)
        return [file for file, error in zip(files, errors, strict=True) if error is None]
