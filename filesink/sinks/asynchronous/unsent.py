"""Entries that no writer is going to send: the driver does, when their epoch is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from filesink.api import EpochContext, Input, PreCommitStage, Prepared, SinkCommitter
from filesink.errors import DeliveryError
from filesink.sinks.asynchronous.entries import Entry
from filesink.sinks.asynchronous.writer import AsyncSinkWriter


class SendUnsent(PreCommitStage[Entry, Entry]):
    """Has the committer send what writers have kept, where no writer comes after them.

    That is at the end of all input, and in an epoch without input, when none has come for a while.
    """

    def prepare(self, epoch: EpochContext, prepared: Prepared[Entry, Entry]) -> Prepared[Entry, Entry]:
        """See ``PreCommitStage.prepare``."""
        if epoch.input is Input.GOES_ON and epoch.schema is not None:
            return prepared
        unsent = [entry for states in prepared.states.values() for entry in states]
        return Prepared([*prepared.committables, *unsent], {})

    def is_due(self, epoch: EpochContext, prepared: Prepared[Entry, Entry]) -> bool:
        """See ``PreCommitStage.is_due``."""
        del epoch
        return any(prepared.states.values())


@dataclass
class UnsentCommitter(SinkCommitter[Entry]):
    """Sends entries from the driver; after a crash again, under the same keys.

    Args:
        open_writer: a writer for them, which sends them all in ``prepare_commit``.
    """

    open_writer: Callable[[Sequence[Entry]], AsyncSinkWriter]
    failure: Exception | None = None

    def commit(self, committables: Sequence[Entry]) -> list[Entry]:
        """See ``SinkCommitter.commit``."""
        self.failure = None
        writer = self.open_writer(committables)
        try:
            writer.prepare_commit(0)
        except DeliveryError as error:
            self.failure = error
            return writer.unsent()
        finally:
            writer.close()
        return []
