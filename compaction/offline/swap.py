"""The stage that merges finished files, and names the inputs for removal, now or later."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from compaction.offline.groups import Group, check_form, merge
from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.errors import CompactionError, StorageError
from filesink.naming import HiddenName, join, new_part_id, sink_tag
from filesink.parts.committables import Committable, HeldFile, PendingFile, ReplacedFile, SupersededFile
from filesink.parts.file_format import FileFormat, RowFormat
from filesink.parts.stages.merger import UNREADABLE
from filesink.parts.stages.merging import count_merged
from filesink.ports import Clock
from filesink.storage.api import Store

log = logging.getLogger("filesink")

#: What is wrong with the files of one group, and says nothing of the others.
_OF_ONE_GROUP = frozenset({"SCHEMA", UNREADABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What ``compact`` would do now. Sizes in bytes.

    Attributes:
        groups: the files of each become one.
        expired: files that were merged by an earlier call and may be removed now.
        waiting: those that readers may still need.
        left_out: small files that no version of the inventory has as they are, such as copies: they are
            not merged. ``filesink.fsck`` tells what they are.
    """

    groups: tuple[Group, ...]
    expired: tuple[SupersededFile, ...] = ()
    waiting: tuple[SupersededFile, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """Files that would be merged."""
        return sum(len(group.files) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Their size together."""
        return sum(file.size for group in self.groups for file in group.files)


class Swap(PreCommitStage[HeldFile, Committable]):
    """Merges finished files.

    Args:
        open_store: where they are; opened for each merge, since several may run at a time.
        form: of all of them.
        plan: what is to be done at a moment, in milliseconds since 1970 UTC, by a clock that waits; asked
            once per epoch.
        grace_ms: how long inputs stay beside what they are merged into.
        refused: takes the errors of groups that cannot be merged; the others are merged without them.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        form: FileFormat,
        *,
        plan: Callable[[int, Clock], CompactionPlan],
        grace_ms: int,
        refused: list[CompactionError],
    ) -> None:
        check_form(form)
        self._open_store = open_store
        self._form = form
        self._ask = plan
        self._grace_ms = grace_ms
        self._refused = refused
        self._plan = CompactionPlan(groups=())

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether there is anything to merge or to remove."""
        del prepared
        self._plan = self._ask(epoch.now_ms, epoch.clock)
        if self._plan.left_out:
            log.warning(
                "'%s' and %d other files are not merged: no version of the inventory has them as they are; "
                "filesink fsck tells what they are",
                self._plan.left_out[0],
                len(self._plan.left_out) - 1,
            )
        return bool(self._plan.groups or self._plan.expired)

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Merge, and say of every file that was merged, now or earlier, what becomes of it."""
        made = self._merge(epoch)
        # ``superseded.outstanding`` adds the time from here to the end of the epoch, merge included.
        inputs = self._inputs(made, until_ms=epoch.now_ms + self._grace_ms)
        return Prepared([*prepared.committables, *made, *inputs], prepared.states)

    def _merge(self, epoch: EpochContext) -> list[PendingFile]:
        """One file for each group of the plan; those that cannot be merged are taken out of it."""
        start, groups = epoch.clock.now_ms(), self._plan.groups
        finished: list[str] = []
        try:
            tried = epoch.runner.run(partial(self._tried, epoch, finished), groups)
        except BaseException:  # nothing names them, and who calls again makes others
            self._discard(finished)
            raise
        self._refused[:] = [error for error in tried if isinstance(error, CompactionError)]
        made = [file for file in tried if isinstance(file, PendingFile)]
        if self._refused and not made and not self._plan.expired:
            raise self._refused[0]
        merged = [group for group, file in zip(groups, tried, strict=True) if isinstance(file, PendingFile)]
        self._plan = replace(self._plan, groups=tuple(merged))
        inputs = [file.size for group in merged for file in group.files]
        outputs = [file.size for file in made]
        count_merged(epoch, inputs=inputs, outputs=outputs, taken_ms=epoch.clock.now_ms() - start)
        return made

    def _tried(self, epoch: EpochContext, finished: list[str], group: Group) -> PendingFile | CompactionError:
        try:
            return self._merged(epoch, finished, group)
        except CompactionError as error:
            if error.code not in _OF_ONE_GROUP:
                raise
            return error  # raised when the others are merged; the files of this group are as they were

    def _discard(self, paths: Sequence[str]) -> None:
        store = self._open_store()
        try:
            for path in paths:
                store.discard(path)
        except StorageError as error:  # that of the merge is the one to be raised; what stays is swept later
            log.warning("discarding what a compaction has merged failed: %s", error)

    def _inputs(self, made: Sequence[PendingFile], *, until_ms: int) -> list[Committable]:
        """Every file that was merged, now or earlier: what holds its rows, and whether it is to be removed.

        What is removed by this epoch is named as superseded, too: readers may come before it is gone.
        """
        merged = [
            SupersededFile(
                path=file.path, size=file.size, version=file.version, by=target.target, until_ms=until_ms
            )
            for group, target in zip(self._plan.groups, made, strict=True)
            for file in group.files
        ]
        by = {file.path: file.by for file in merged}
        earlier = [*self._plan.expired, *self._plan.waiting]
        # What stands for a file may have been merged itself: then both do, until the new one is there.
        earlier += [replace(file, by=by[file.by]) for file in earlier if file.by in by]
        gone = self._plan.expired if self._grace_ms else (*self._plan.expired, *merged)
        return [*{file.path: _removed(file) for file in gone}.values(), *earlier, *merged]

    def _merged(self, epoch: EpochContext, finished: list[str], group: Group) -> PendingFile:
        store, tag = self._open_store(), sink_tag(epoch.sink_id)
        name = f"{group.prefix}-{new_part_id(tag, epoch.slot, epoch.ids)}-0{group.suffix}"
        hidden = HiddenName(
            target=f"{group.prefix}-merged", tag=tag, slot=epoch.slot, attempt=epoch.ids.uuid()
        )
        target = join(group.bucket, name)
        output = store.create(join(group.bucket, str(hidden)), target=target)
        try:
            rows = merge(store, self._form, group=group, output=output)
            staged = output.close()
            if isinstance(self._form, RowFormat):  # what is merged unread is not counted
                rows = sum(file.rows or 0 for file in group.files) if _is_counted(group) else rows
        except BaseException:  # the program may be stopped; what is left has a name of ours and is swept
            with suppress(StorageError):
                output.discard()
            raise
        finished.append(staged.path)
        store.sync()
        return PendingFile(bucket=group.bucket, target=target, staged=staged, rows=rows, size=staged.size)


def _is_counted(group: Group) -> bool:
    """Whether the inventory knows how many rows each file has."""
    return all(file.rows is not None for file in group.files)


def _removed(file: SupersededFile) -> ReplacedFile:
    return ReplacedFile(path=file.path, size=file.size, version=file.version)
