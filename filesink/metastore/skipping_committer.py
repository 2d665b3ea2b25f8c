"""Announces what it can, for a user who prefers to go on without some partitions.

Rules:
1. Only if the user says so, ``recover(announce="skip")``. What is left out is named, never silent.
2. Everything that can be announced is. Policies fail for all partitions of a call, so a call that fails is
   repeated for each half of them, down to the one that is at fault.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from filesink.api import Announcements, EpochContext, Prepared, SinkAggregatedCommitter
from filesink.errors import FilesinkError
from filesink.metastore.announcements import Announced, Announcement
from filesink.metastore.partition_committer import PartitionCommitter
from filesink.parts.committables import Committable

log = logging.getLogger("filesink")


class SkippingCommitter(SinkAggregatedCommitter[Committable, Announced]):
    """Announces what can be announced, trying once.

    Args:
        committer: announces; ``None`` for a sink without partition commit, which announces nothing.
        note: told of each partition that was not announced, by its directory.
    """

    def __init__(self, committer: PartitionCommitter | None, note: Callable[[str], object]) -> None:
        self._committer = committer
        self._note = note

    def combine(self, epoch: EpochContext, prepared: Prepared[Any, Committable]) -> Announcements[Announced]:
        """See ``SinkAggregatedCommitter.combine``; recovery has no new files, and all that waits stays."""
        del prepared
        return Announcements((), tuple(epoch.waiting))

    def commit(self, aggregated: Sequence[Announced]) -> list[Announced]:
        """See ``SinkAggregatedCommitter.commit``; never asks for another try."""
        committer = self._committer
        values = [one for one in aggregated if isinstance(one, Announcement)]
        left = values if committer is None else _failing(committer.restore_commit, values)
        for one in left:
            self._note(one.bucket)
        return []

    def close(self) -> None:
        """See ``SinkAggregatedCommitter.close``."""
        if self._committer is not None:
            self._committer.close()


def refused(committer: PartitionCommitter, values: Sequence[Announcement]) -> list[Announcement]:
    """The waiting ``values`` that could not be announced if they were due."""

    def check(some: Sequence[Announcement]) -> list[Announced]:
        committer.check(some)
        return []

    return _failing(check, values)


def _failing(
    call: Callable[[Sequence[Announcement]], Sequence[Announced]], values: Sequence[Announcement]
) -> list[Announcement]:
    """The ``values`` that ``call`` returns, or for which it raises."""
    try:
        return [one for one in call(values) if isinstance(one, Announcement)] if values else []
    except FilesinkError as error:
        if len(values) == 1:
            log.warning("'%s' is not announced: %s", values[0].bucket, error)
            return list(values)
    half = len(values) // 2
    return [*_failing(call, values[:half]), *_failing(call, values[half:])]
