"""The stage that counts what an epoch leaves hidden, for its report. It changes nothing."""

from __future__ import annotations

from filesink.api import OF_STAGES, EpochContext, PreCommitStage, Prepared
from filesink.parts.committables import Committable, HeldFile

#: Metrics of an epoch. What they tell of two epochs does not add up.
OPEN_ROWS = "open_rows"  # in parts that stay open
WAITING_ROWS = "waiting_rows"  # in closed files that wait for compaction


class CountHeldRows(PreCommitStage[HeldFile, Committable]):
    """Comes after all that close, merge or hold back."""

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Count; see ``PreCommitStage.prepare``."""
        epoch.metrics.add(OPEN_ROWS, 0)
        epoch.metrics.add(WAITING_ROWS, 0)
        for subtask, held_files in prepared.states.items():
            name = WAITING_ROWS if subtask == OF_STAGES else OPEN_ROWS
            epoch.metrics.add(name, sum(held.rows for held in held_files))
        return prepared
