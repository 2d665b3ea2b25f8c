"""The second and third tier: committers, which make what was decided take effect on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from filesink.api.epoch import Announcements, EpochContext, Prepared

CommittableT = TypeVar("CommittableT")
AggregatedT = TypeVar("AggregatedT")


class SinkCommitter(ABC, Generic[CommittableT]):
    """Makes decided committables take effect. Lives on the driver; used by one thread.

    Attributes:
        failure: why the last ``commit`` left something; ``None`` if it is not known. Shown to the
            user when retries end; an error that ``is_permanent`` ends them at once.
    """

    failure: Exception | None = None

    @abstractmethod
    def commit(self, committables: Sequence[CommittableT]) -> list[CommittableT]:
        """Commit, and return those to try again.

        Replayable: called again after any failure with the same values. Some of them may have been
        committed meanwhile, by a driver that may still be alive. Raises if it can never succeed.
        """

    def may_wait(self, committable: CommittableT) -> bool:
        """Whether the epoch may end without ``committable``, because it only asks for a removal.

        Called for what ``commit`` returned, when trying again did not help. The next epoch gets it.
        """
        del committable
        return False

    def is_due(self, committable: CommittableT, now_ms: int) -> bool:
        """Whether ``committable`` is to be carried out by now, in milliseconds since 1970 UTC.

        Asked before ``commit``, which does not get the others: they are for later epochs, and their
        waiting is no failure.
        """
        del committable, now_ms
        return True

    def dated(self, committable: CommittableT, now_ms: int) -> CommittableT:
        """``committable`` as later epochs get it, if it is not due: its time begins now, unless it has.

        Called when the epoch that was the first to name it is visible, announced and noted.
        """
        del now_ms
        return committable

    def restore(self) -> None:
        """Forget everything seen so far: another driver has decided what ``commit`` gets next."""

    def abort(self, committables: Sequence[CommittableT]) -> None:
        """Discard what the tasks have reported, for an epoch that was *not* decided."""


class SinkAggregatedCommitter(ABC, Generic[CommittableT, AggregatedT]):
    """Commits once per epoch, for all tasks together, after every committable took effect.

    Attributes:
        failure: as ``SinkCommitter.failure``.
    """

    failure: Exception | None = None

    @abstractmethod
    def combine(
        self, epoch: EpochContext, prepared: Prepared[Any, CommittableT]
    ) -> Announcements[AggregatedT]:
        """What is to be committed for the epoch, and what waits. Called before *decide*; both are recorded.

        Called once, after the stages. What was put off before is in ``epoch.waiting``; what is not put
        off again is forgotten. Without new data, ``combine`` is only called if the ``is_due`` of some
        stage returns True.
        """

    @abstractmethod
    def commit(self, aggregated: Sequence[AggregatedT]) -> list[AggregatedT]:
        """Commit, and return those to try again. Replayable, as ``SinkCommitter.commit``."""

    def restore_commit(self, aggregated: Sequence[AggregatedT]) -> list[AggregatedT]:
        """``commit`` for an epoch that an earlier driver has decided; by default the same."""
        return self.commit(aggregated)

    def abort(self, aggregated: Sequence[AggregatedT]) -> None:
        """Undo ``combine`` for an epoch that was not decided."""

    def close(self) -> None:
        """Release everything. Called when the engine stops using the sink."""
