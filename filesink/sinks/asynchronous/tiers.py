"""The tiers around an asynchronous writer. Tasks send; the driver only what they have kept to the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from filesink.api import PreCommitStage, Sink, SinkCommitter, WriterContext
from filesink.errors import InternalError
from filesink.ledger.ledger import Ledger
from filesink.ports import Clock
from filesink.sinks.asynchronous.entries import Entry, EntryCodec
from filesink.sinks.asynchronous.sending import Sending
from filesink.sinks.asynchronous.unsent import SendUnsent, UnsentCommitter
from filesink.sinks.asynchronous.writer import AsyncSinkWriter
from filesink.sinks.store_ledger import StoreLedger
from filesink.system import SystemClock, SystemIds

if TYPE_CHECKING:
    import pyarrow as pa

_DRIVERS_RETRIES = 2  # of a request: the epoch loop tries again what the committer gives back


@dataclass(frozen=True, kw_only=True)
class AsyncSink(Sink[Entry, Entry, None]):
    """Base of sinks that send. Derive from it, with ``open_writer``; tasks get no ``ledger``.

    What an epoch has sent is not sent again when Spark repeats it after it was decided; what was sent
    before that, by an attempt that failed or by a driver that died, is: under the same keys as far as its
    task gets the same rows in the same order again.

    Args:
        ledger: a directory of this sink alone.
        sending: the limits, for each task.
        uid: the sink's stable name.
        clock: of the driver, where it sends.
    """

    ledger: StoreLedger | None
    sending: Sending = field(default_factory=Sending)
    uid: str | None = None
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ledger": None}

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

    def prepare(self, schema: pa.Schema) -> None:
        """See ``Sink.prepare``."""
        del schema
        self._directory().prepare()

    def open_ledger(self, sink_id: str) -> Ledger:
        """See ``Sink.open_ledger``."""
        return self._directory().open(sink_id)

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

    def _directory(self) -> StoreLedger:
        if self.ledger is None:
            raise InternalError("a task has no ledger; please report this", code="NO_LEDGER")
        return self.ledger
