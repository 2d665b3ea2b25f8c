"""The stage of a sink with compaction: asks the planner, and has its plan carried out."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from compaction.planner import Plan, plan
from compaction.trigger import Moment, Trigger
from filesink.api import EpochContext, Input, PreCommitStage, Prepared
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.stages.closed_parts import closed_parts
from filesink.parts.stages.merging import Merging
from filesink.parts.stages.open_parts import Part


class CompactParts(PreCommitStage[HeldFile, Committable]):
    """Lets closed parts wait for each other, and merges those whose time has come.

    Args:
        trigger: when.
        merging: how.
        key: which parts may become one file.
    """

    def __init__(self, trigger: Trigger, merging: Merging, *, key: Callable[[Part], Hashable]) -> None:
        self._trigger = trigger
        self._merging = merging
        self._key = key

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether files have waited for long enough, or suffice under a strategy that was changed."""
        return bool(self._plan(epoch, prepared, is_epoch=False).groups)

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """See ``PreCommitStage.prepare``."""
        decided = self._plan(epoch, prepared, is_epoch=True)
        return self._merging.carry_out(epoch, prepared, groups=decided.groups, waiting=decided.waiting)

    def _plan(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable], *, is_epoch: bool
    ) -> Plan:
        moment = Moment(
            slot=epoch.slot,
            now_ms=epoch.now_ms,
            is_last=epoch.input is Input.ENDED,
            is_epoch=is_epoch,
            pressing=frozenset(epoch.pressing),
        )
        return plan(closed_parts(prepared), self._trigger, moment, key=self._key)
