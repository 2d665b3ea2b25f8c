"""Closing parts that were open across epochs, where no task does it: the first stage of an epoch.

A part that stayed open is a list of held segments in a *lane* (bucket, partition index). It is
closed here when the rolling policy says so by the driver's clock, when there are too many open
parts, or when the input ends: its segments leave the state and join those that tasks have closed.
The next stage puts them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from filesink.api import OF_STAGES, EpochContext, Input, PreCommitStage, Prepared
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.part_file import PartFileInfo
from filesink.parts.rolling import RollingPolicy

MAX_OPEN_PARTS = 10_000  # per sink; the oldest are closed first

#: A part: its segments in the order in which they were written, never empty.
Part = tuple[HeldFile, ...]


class CloseParts(PreCommitStage[HeldFile, Committable]):
    """Closes what is due.

    Args:
        policy: asked about age and inactivity.
    """

    def __init__(self, policy: RollingPolicy) -> None:
        self._policy = policy

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether any open part must be closed now."""
        return bool(self._due(epoch, prepared))

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Move the segments of what is due from the state to the committables."""
        due = [held for part in self._due(epoch, prepared) for held in part]
        if not due:
            return prepared
        taken = {held.staged.path for held in due}
        states = {
            subtask: [held for held in values if held.staged.path not in taken]
            for subtask, values in prepared.states.items()
        }
        return Prepared([*prepared.committables, *due], states)

    def _due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> list[Part]:
        lanes = (values for subtask, values in prepared.states.items() if subtask != OF_STAGES)
        parts = [part for values in lanes for part in parts_of(values)]
        if epoch.input is Input.ENDED:
            return parts
        parts.sort(key=lambda part: min(held.created_ms for held in part))
        surplus = max(0, len(parts) - MAX_OPEN_PARTS)
        return parts[:surplus] + [part for part in parts[surplus:] if self._rolls(part, epoch.now_ms)]

    def _rolls(self, part: Part, now_ms: int) -> bool:
        # On checkpoint too: a lane without a task is closed by nobody else after a change of the policy.
        info = part_info(part)
        return self._policy.should_roll_on_checkpoint(info) or self._policy.should_roll_on_processing_time(
            info, now_ms
        )


def part_info(segments: Sequence[HeldFile]) -> PartFileInfo:
    """What a rolling policy may know of a part that no task is writing."""
    return PartFileInfo(
        bucket_id=segments[0].bucket,
        size=sum(held.size for held in segments),
        rows=sum(held.rows for held in segments),
        creation_time=min(held.created_ms for held in segments),
        last_update_time=max(held.updated_ms for held in segments),
    )


def parts_of(held_files: Iterable[HeldFile]) -> list[Part]:
    """Segments by part, each part's in the order in which they were written."""
    groups: dict[tuple[str, str], list[HeldFile]] = {}
    for held in held_files:
        groups.setdefault((held.bucket, held.group), []).append(held)
    return [tuple(group) for group in groups.values()]
