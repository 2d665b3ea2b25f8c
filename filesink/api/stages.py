"""Work on an epoch between its tasks and its record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from filesink.api.epoch import EpochContext, Prepared

StateT = TypeVar("StateT")
CommittableT = TypeVar("CommittableT")

#: The index under which stages keep their own state, beside that of the subtasks; no task gets it.
OF_STAGES = -1


class PreCommitStage(ABC, Generic[StateT, CommittableT]):
    """Works on an epoch between its tasks and its record, on the driver.

    The place to close what is due and to merge small pieces (Flink's pre-commit topology).
    Nothing is decided yet: a stage creates and reports, it never removes.
    """

    def begin(self, epoch: EpochContext) -> None:
        """Raise to refuse an epoch of a batch or micro-batch before its tasks run."""

    @abstractmethod
    def prepare(
        self, epoch: EpochContext, prepared: Prepared[StateT, CommittableT]
    ) -> Prepared[StateT, CommittableT]:
        """Turn what the tasks reported and what the ledger held into what the epoch decides."""

    def follow(
        self,
        epoch: EpochContext,
        prepared: Prepared[StateT, CommittableT],
        others: Sequence[Sequence[CommittableT]],
    ) -> Prepared[StateT, CommittableT]:
        """Update what this stage has prepared, or raise, because other writes came before this one.

        Called after ``prepare``, for batch writes that take turns, each time another one was first.

        Args:
            epoch: this one.
            prepared: what this epoch was about to decide.
            others: committables of each epoch that was decided meanwhile; all are complete.
        """
        del epoch, others
        return prepared

    def is_due(self, epoch: EpochContext, prepared: Prepared[StateT, CommittableT]) -> bool:
        """Whether ``prepare`` would change anything even without new data. Called by the timer."""
        del epoch, prepared
        return False
