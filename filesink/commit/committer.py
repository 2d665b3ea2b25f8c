"""Publishes decided files: the second tier of a file sink.

    publish   each file gets its final name; one that fails is tried again and holds back no other
    sync      the final names are durable
    release   the hidden names go
    remove    merged inputs go, and files that an overwrite replaces

Rules:
1. Any driver may continue where another one stopped, or is still at work. Each step looks whether it is done
   already, no final name is ever replaced, and a repeated call does nothing the second time.
2. Nothing is removed before everything that replaces it is visible and durable. What has a grace is not
   removed by the epoch that replaces it at all, but by a later one, or by ``file_sink.left_files``.
3. If bytes are gone, nothing more of the epoch is published, so that the user can still choose. A driver that
   has completed the epoch before skips this check: ``stages.verify`` has just looked at all new files.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from filesink.api import SinkCommitter
from filesink.errors import InternalError, StorageError
from filesink.naming import parent
from filesink.parts.committables import (
    Committable,
    DiscardFile,
    HeldFile,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
    Watermark,
)
from filesink.parts.lost import refuse_lost
from filesink.parts.one_by_one import OneByOne
from filesink.parts.part_file import Event, State, advance
from filesink.parts.taking_back import TakingBack
from filesink.ports import TaskRunner
from filesink.storage.api import Deletion, Store

log = logging.getLogger("filesink")


class FileCommitter(SinkCommitter[Committable]):
    """Makes pending files visible.

    Args:
        store: where the files are.
        runner: publishes several at a time where a store answers slowly.
    """

    def __init__(self, store: Store, runner: TaskRunner) -> None:
        self._store = store
        self._runner = runner
        self._each = OneByOne(runner)
        self._taking_back = TakingBack(store, runner, self._each)
        self._seen_through = False  # whether the last commit left nothing to be done

    def commit(self, committables: Sequence[Committable]) -> list[Committable]:
        """Publish, make durable, then remove what was merged; see ``SinkCommitter.commit``.

        Raises:
            StagedDataLost: bytes are gone; says how many files and rows. This call published nothing.
        """
        pending, undone, discards, replaced = by_kind(committables)
        if not self._seen_through:
            refuse_lost(pending, store=self._store, runner=self._runner)
        self._seen_through = False
        visible = self._each.succeeding("publishing", self._publish, pending)
        self._store.sync_directories(sorted({parent(file.target) for file in visible}))
        done = set(
            self._each.succeeding("publishing", lambda file: self._store.release(file.staged), visible)
        )
        left: list[Committable] = [file for file in pending if file not in done]
        left += self._taking_back.commit(undone)
        self.failure = self._each.failure
        if left:
            return [*left, *discards, *replaced]
        self._seen_through = True
        # From here on everything is visible and durable: a file that cannot be removed must not stop us.
        self._runner.run(self._discard_or_leave, [file.path for file in discards])
        return self._remove(replaced)

    def may_wait(self, committable: Committable) -> bool:
        """Whether it is a replaced file: readers see its rows beside the new ones until it is gone."""
        return isinstance(committable, ReplacedFile)

    def is_due(self, committable: Committable, now_ms: int) -> bool:
        """Whether it is no replaced file that readers of a snapshot still have time for."""
        return not isinstance(committable, ReplacedFile) or committable.is_due(now_ms)

    def dated(self, committable: Committable, now_ms: int) -> Committable:
        """See ``SinkCommitter.dated``; the clock of the driver counts."""
        if not isinstance(committable, ReplacedFile) or not committable.grace_ms or committable.since_ms:
            return committable
        return replace(committable, since_ms=max(1, now_ms))  # 0: not begun

    def restore(self) -> None:
        """See ``SinkCommitter.restore``: no stage of this driver has verified those files."""
        self._seen_through = False

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove pending files of an undecided epoch. Held files stay: some belong to earlier epochs."""
        pending = [committable for committable in committables if isinstance(committable, PendingFile)]
        self._runner.run(self._store.discard, [file.staged.path for file in pending])

    # --- the steps, in their order

    def _publish(self, file: PendingFile) -> None:
        self._store.publish(file.staged, file.target)
        advance(State.PENDING, Event.PUBLISH)

    def _discard_or_leave(self, path: str) -> None:
        """Discard a file that is hidden and stays so. If that fails, the sweep finds it later."""
        try:
            self._store.discard(path)
        except StorageError as error:
            log.warning("'%s' is merged and could not be removed; it is swept later: %s", path, error)

    def _remove(self, replaced: Sequence[ReplacedFile]) -> list[Committable]:
        """Remove replaced files durably; return those that are left."""
        done = self._runner.run(self._is_removed, replaced)
        try:
            self._store.sync_directories(sorted({parent(file.path) for file in replaced}))
        except StorageError as error:
            log.warning("removals could not be made durable and are tried again: %s", error)
            return list(replaced)
        return [file for file, removed in zip(replaced, done, strict=True) if not removed]

    def _is_removed(self, file: ReplacedFile) -> bool:
        try:
            deletion = self._store.delete_if_unchanged(file.path, size=file.size, version=file.version)
        except StorageError as error:
            log.warning("removing '%s' failed and is tried again: %s", file.path, error)
            return False
        if deletion is Deletion.CHANGED:
            log.warning(
                "'%s' was to be replaced and has been changed since it was listed: it stays, and readers see "
                "its rows beside the new ones. Remove it by hand if they are not wanted",
                file.path,
            )
        return True


def by_kind(
    committables: Sequence[Committable],
) -> tuple[list[PendingFile], list[UndoneFile], list[DiscardFile], list[ReplacedFile]]:
    """The committables for which a committer has something to do, by their kinds."""
    pending: list[PendingFile] = []
    undone: list[UndoneFile] = []
    discards: list[DiscardFile] = []
    replaced: list[ReplacedFile] = []
    for committable in committables:
        match committable:
            case PendingFile():
                pending.append(committable)
            case UndoneFile():
                undone.append(committable)
            case DiscardFile():
                discards.append(committable)
            case ReplacedFile():
                replaced.append(committable)
            case SupersededFile() | Watermark():
                pass
            case HeldFile():
                raise InternalError("a held file cannot be committed; please report this", code="HELD")
            case _:
                assert_never(committable)
    return pending, undone, discards, replaced
