"""The tiers around an asynchronous writer. Tasks send; the driver only what they have kept to the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from filesink.api import PreCommitStage, SinkCommitter, WriterContext
from filesink.ports import Clock
from filesink.sinks.asynchronous.entries import Entry, EntryCodec
from filesink.sinks.asynchronous.sending import Sending
from filesink.sinks.asynchronous.unsent import SendUnsent, UnsentCommitter
from filesink.sinks.asynchronous.writer import AsyncSinkWriter
from filesink.sinks.store_ledger import LedgerSink
from filesink.system import SystemClock, SystemIds

_DRIVERS_RETRIES = 2  # of a request: the epoch loop tries again what the committer gives back


@dataclass(frozen=True, kw_only=True)
class AsyncSink(LedgerSink[Entry, Entry, None]):
    """Base of sinks that send. Derive from it, with ``open_writer``.

    What an epoch has sent is not sent again when Spark repeats it after it was decided; what was sent
    before that, by an attempt that failed or by a driver that died, is: under the same keys as far as its
    task gets the same rows in the same order again.

    Args:
        sending: the limits, for each task.
        clock: of the driver, where it sends.
    """

    sending: Sending = field(default_factory=Sending)
    clock: Clock = field(default_factory=SystemClock, repr=False)

    @abstractmethod
    def open_writer(
        self, context: WriterContext, *, sending: Sending, unsent: Sequence[Entry]
    ) -> AsyncSinkWriter:
        """A writer; called in tasks, and on the driver for what they have kept to the end."""

    def create_writer(self, context: WriterContext) -> AsyncSinkWriter:
        """See ``Sink.create_writer``."""
        return self.open_writer(context, sending=self.sending, unsent=())

    def restore_writer(self, context: WriterContext, states: Sequence[Entry]) -> AsyncSinkWriter:
        """See ``Sink.restore_writer``."""
        return self.open_writer(context, sending=self.sending, unsent=states)

    def create_committer(self) -> SinkCommitter[Entry]:
        """See ``Sink.create_committer``."""
        return UnsentCommitter(self._drivers_writer)

    def pre_commit_stages(self) -> Sequence[PreCommitStage[Entry, Entry]]:
        """See ``Sink.pre_commit_stages``."""
        return (SendUnsent(),)

    @property
    def committable_codec(self) -> EntryCodec:
        """See ``Sink.committable_codec``."""
        return EntryCodec()

    @property
    def state_codec(self) -> EntryCodec:
        """See ``Sink.state_codec``."""
        return EntryCodec()

    def _drivers_writer(self, unsent: Sequence[Entry]) -> AsyncSinkWriter:
        context = WriterContext(
            sink_id="driver",  # of no entry: all of them come with their keys
            epoch=0,
            subtask_index=0,
            number_of_parallel_subtasks=1,
            attempt=0,
            time_zone="UTC",
            clock=self.clock,
            ids=SystemIds(),
        )
        retries = min(self.sending.retries, _DRIVERS_RETRIES)
        sending = replace(self.sending, at_commit="flush", retries=retries)
        return self.open_writer(context, sending=sending, unsent=unsent)
