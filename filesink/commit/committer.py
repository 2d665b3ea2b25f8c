"""Publishes decided files: the second tier of a file sink.

Each file by itself: one that fails is tried again and does not hold back the others. What has been
published is recognised by looking, so any driver may go on where another stopped. A hidden name is
removed only after the final one is durable; merged inputs, and files that an overwrite replaces, only
after everything that stands for them is.

If bytes are gone nothing more of the epoch is published, so that the user can still choose. Who has
just seen an epoch through need not look for them first: those of the next have been verified by its
last stage, a moment ago.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar, assert_never

from filesink.api import EpochContext, PreCommitStage, Prepared, SinkCommitter
from filesink.errors import CommitConflictError, InternalError, SecurityError, StagedDataLost, StorageError
from filesink.naming import name_of, parent, parse_ours
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
from filesink.parts.part_file import Event, State, advance
from filesink.ports import TaskRunner
from filesink.storage.api import Deletion, Store
from filesink.storage.retrying import RetryingStore

_SHOWN = 3  # values in a message
FileT = TypeVar("FileT", PendingFile, UndoneFile)
log = logging.getLogger("filesink")


class FileCommitter(SinkCommitter[Committable]):
    """Makes pending files visible.

    Args:
        store: where they are.
        runner: publishes several at a time where a store answers slowly.
    """

    def __init__(self, store: Store, runner: TaskRunner) -> None:
        self._store = store
        self._runner = runner
        self._seen_through = False  # whether the last commit left nothing to be done

    def commit(self, committables: Sequence[Committable]) -> list[Committable]:
        """Publish, make durable, then remove what was merged; see ``SinkCommitter.commit``.

        Raises:
            StagedDataLost: bytes are gone, how many files and rows; nothing was published by this call.
        """
        pending, undone, discards, replaced = _sorted(committables)
        if not self._seen_through:
            self._refuse_lost(pending)
        self._seen_through = False
        visible = self._succeeding("publishing", self._publish, pending)
        self._store.sync_directories(sorted({parent(file.target) for file in visible}))
        done = set(self._succeeding("publishing", self._release, visible))
        left: list[Committable] = [file for file in pending if file not in done]
        left += self._undo(undone)
        if left:
            return [*left, *discards, *replaced]
        self._seen_through = True
        # From here on all is visible and durable: what cannot be removed must not hold anything up.
        self._runner.run(self._discard_or_leave, [file.path for file in discards])
        return self._remove(replaced)

    def may_wait(self, committable: Committable) -> bool:
        """Whether it is a replaced file: readers see its rows beside the new ones until it is gone."""
        return isinstance(committable, ReplacedFile)

    def restore(self) -> None:
        """See ``SinkCommitter.restore``: no stage of this driver has verified those files."""
        self._seen_through = False

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove pending files of an epoch that was not decided.

        Held files stay: some belong to earlier epochs. Those that do not are swept.
        """
        pending = (committable for committable in committables if isinstance(committable, PendingFile))
        self._discard(file.staged.path for file in pending)

    def _undo(self, undone: Sequence[UndoneFile]) -> list[UndoneFile]:
        """Take files of an epoch back for good; return those that are left.

        A publication that was answered with an error may yet be carried out: not without what it publishes.
        """
        self._discard(file.staged.path for file in undone)
        done = set(self._succeeding("taking back", self._take_away, undone))
        directories = {self._left_of(parent(file.target)) for file in undone}
        self._store.sync_directories(sorted(directories))
        return [file for file in undone if file not in done]

    def _left_of(self, directory: str) -> str:
        """``directory``, or the one above that is there: it may be gone with all that was in it."""
        while directory and name_of(directory) not in {
            entry.name for entry in self._store.list(parent(directory))
        }:
            directory = parent(directory)
        return directory

    def _take_away(self, file: UndoneFile) -> None:
        if self._store.is_published(file.staged, file.target):
            self._store.delete(file.target)

    def _discard_or_leave(self, path: str) -> None:
        """Discard what is hidden and stays hidden; left where it is, the sweep finds it."""
        try:
            self._store.discard(path)
        except StorageError as error:
            log.warning("'%s' is merged and could not be removed; it is swept later: %s", path, error)

    def _discard(self, paths: Iterable[str]) -> None:
        self._runner.run(self._store.discard, paths)

    def _remove(self, replaced: Sequence[ReplacedFile]) -> list[Committable]:
        """Remove what is replaced, so that it does not come back after a power cut; return what is left."""
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

    def _refuse_lost(self, pending: Sequence[PendingFile]) -> None:
        found = self._runner.run(self._is_lost, pending)
        lost = [file for file, is_lost in zip(pending, found, strict=True) if is_lost]
        if lost:
            slots = sorted({slot for file in lost if (slot := _slot(file.staged.path)) is not None})
            paths = [f"'{file.staged.path}'" for file in lost]
            raise StagedDataLost(
                f"{len(lost)} of {len(pending)} files that an epoch has decided on are gone, with "
                f"{sum(file.rows for file in lost)} rows written in epoch {_text(slots)}: {_text(paths)}. "
                "Nothing more of the epoch was published. Restore them, or choose with "
                "FileSink.recover(lost=...) how to go on",
                code="STAGED_DATA_LOST",
            )

    def _is_lost(self, file: PendingFile) -> bool:
        try:
            return self._store.is_lost(file.staged, file.target)
        except StorageError as error:
            log.warning("'%s' could not be looked at; publishing it will tell: %s", file.staged.path, error)
            return False

    def _succeeding(self, doing: str, step: Callable[[FileT], None], files: Sequence[FileT]) -> list[FileT]:
        """Those of ``files`` for which ``step`` was done; the others are to be tried again."""

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

    def _publish(self, file: PendingFile) -> None:
        self._store.publish(file.staged, file.target)
        advance(State.PENDING, Event.PUBLISH)

    def _release(self, file: PendingFile) -> None:
        self._store.release(file.staged)


class VerifyStage(PreCommitStage[HeldFile, Committable]):
    """The last stage: every file that this epoch is about to name is there, as it was closed.

    Catches tasks that wrote to a disk which the driver does not see.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runner = store.runner

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Look at each new file; see ``PreCommitStage.prepare``."""
        new: list[PendingFile | HeldFile] = []
        for committable in prepared.committables:
            match committable:
                case PendingFile():
                    new.append(committable)
                case HeldFile():
                    raise InternalError(
                        "a closed part was not put together before its epoch; please report this", code="HELD"
                    )
                case DiscardFile() | ReplacedFile() | SupersededFile() | UndoneFile() | Watermark():
                    pass
                case _:
                    assert_never(committable)
        for held in (held for states in prepared.states.values() for held in states):
            slot = _slot(held.staged.path)
            if slot is None:
                raise SecurityError(f"'{held.staged.path}' is not a name of ours", code="FOREIGN_FILE")
            if slot == epoch.slot:
                new.append(held)
        store = RetryingStore(self._store, epoch.clock)
        self._runner.run(partial(self._verify, store, epoch.slot), new)
        return prepared

    def _verify(self, store: Store, slot: int, file: PendingFile | HeldFile) -> None:
        is_new = _slot(file.staged.path) in {None, slot}
        try:
            store.verify(file.staged)
        except StagedDataLost as error:
            if not is_new:
                raise  # held since an earlier epoch
            raise StagedDataLost(
                f"a task reported '{file.staged.path}' and the driver does not find it as it was closed. "
                "On a cluster of several hosts the base path must be on storage that all of them share. "
                f"Nothing was committed. ({error.message})",
                code="NOT_SHARED",
            ) from error


def _slot(path: str) -> int | None:
    """The slot that a hidden file or upload was made for; ``None`` if its name is not ours."""
    name = parse_ours(name_of(path))
    return None if name is None else name.slot


def _text(values: Sequence[object]) -> str:
    more = ", …" if len(values) > _SHOWN else ""
    return ", ".join(map(str, values[:_SHOWN])) + more


def _sorted(
    committables: Sequence[Committable],
) -> tuple[list[PendingFile], list[UndoneFile], list[DiscardFile], list[ReplacedFile]]:
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
