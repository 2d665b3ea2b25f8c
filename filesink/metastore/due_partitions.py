"""Which partitions an epoch announces, and the stage that closes their open parts before.

Rules:
1. A partition that got files is announced sooner or later, and again whenever it gets more.
2. A trigger that speaks of whole partitions never announces one while some of its rows are held back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from filesink.api import OF_STAGES, Announcements, EpochContext, Input, PreCommitStage, Prepared
from filesink.metastore.announcements import Announced, Announcement, gathered
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.triggers import TriggerView
from filesink.parts.committables import Committable, HeldFile


@dataclass(frozen=True, slots=True)
class DuePartitions:
    """Which partitions an epoch announces. The stage and the committer ask the same question."""

    commit: PartitionCommit

    def announcements(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Announcements[Announced]:
        """The partitions that are due, and what keeps waiting, including the watermark."""
        found, watermark = gathered(
            epoch.waiting, prepared.committables, slot=epoch.slot, now_ms=epoch.now_ms
        )
        view = TriggerView(now_ms=epoch.now_ms, watermark=watermark)
        held = self._held(prepared)
        now = [one for one in found if self._is_due(one, epoch, view) and one.bucket not in held]
        due = {one.bucket for one in now}
        waiting: list[Announced] = [one.put_off() for one in found if one.bucket not in due]
        if watermark is not None and epoch.input is not Input.ENDED:  # nothing waits for it then
            waiting.append(watermark)
        return Announcements(now, waiting)

    def overdue(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> list[HeldFile]:
        """Held files of open parts that keep a partition from being announced whole."""
        if not self.commit.trigger.announces_whole:
            return []
        _, watermark = gathered(epoch.waiting, prepared.committables, slot=epoch.slot, now_ms=epoch.now_ms)
        view = TriggerView(now_ms=epoch.now_ms, watermark=watermark)
        held = [one for subtask, lane in prepared.states.items() if subtask != OF_STAGES for one in lane]
        due = {
            bucket: self._is_due(
                Announcement(bucket=bucket, first_seen_ms=epoch.now_ms, slot=epoch.slot), epoch, view
            )
            for bucket in {one.bucket for one in held}
        }
        return [one for one in held if due[one.bucket]]

    def _is_due(self, one: Announcement, epoch: EpochContext, view: TriggerView) -> bool:
        return epoch.input is Input.ENDED or self.commit.trigger.is_due(one, view, self.commit.delay_ms)

    def _held(self, prepared: Prepared[HeldFile, Any]) -> set[str]:
        if not self.commit.trigger.announces_whole:
            return set()
        return {one.bucket for lane in prepared.states.values() for one in lane}


class CloseDuePartitions(PreCommitStage[HeldFile, Committable]):
    """Closes the open parts of partitions that are about to be announced as whole."""

    def __init__(self, commit: PartitionCommit) -> None:
        self._due = DuePartitions(commit)

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether a partition must be announced without new data, or the end has left a watermark."""
        if epoch.input is Input.ENDED and epoch.waiting:
            return True
        return bool(self._due.announcements(epoch, prepared).now or self._due.overdue(epoch, prepared))

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Move the segments of such parts from the state to the committables."""
        overdue = self._due.overdue(epoch, prepared)
        if not overdue:
            return prepared
        epoch.pressing.update(one.bucket for one in overdue)
        taken = {one.staged.path for one in overdue}
        states = {
            subtask: [one for one in lane if one.staged.path not in taken]
            for subtask, lane in prepared.states.items()
        }
        return Prepared([*prepared.committables, *overdue], states)
