"""The writer of a sink that sends: back-pressure, retries and the end of an epoch, for any client (FLIP-171).

Rules: no locks. Only ``answer`` is called in other threads, and it leaves a letter; all else happens in the
writer's own thread. A failure is kept until that thread can raise it as it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from filesink.api import SinkWriter, WriterContext
from filesink.sinks.asynchronous.answers import Answer
from filesink.sinks.asynchronous.entries import Entry, Request
from filesink.sinks.asynchronous.outbox import Outbox
from filesink.sinks.asynchronous.sending import AtCommit, Sending

if TYPE_CHECKING:
    import pyarrow as pa


class AsyncSinkWriter(SinkWriter[Entry, Entry]):
    """Sends the records of a partition as entries; at least once, see ``entries`` for their keys.

    Derive from it, with ``payloads`` and ``submit``; ``close``, if it needs one, ends what still sends.

    Args:
        context: of the writer.
        sending: the limits.
        unsent: entries that earlier epochs have left; sent first.
    """

    def __init__(
        self, context: WriterContext, *, sending: Sending | None = None, unsent: Sequence[Entry] = ()
    ) -> None:
        self._context = context
        self._sending = sending or Sending()
        self._outbox = Outbox(self._sending, unsent=unsent)
        self._origin = f"{context.sink_id}/{context.epoch}/{context.subtask_index}"
        self._numbers = count()
        self._timer_ms: int | None = None  # of the next time when somebody looks
        self._failure: Exception | None = None
        self._ends = False  # nothing is sent any more

    @abstractmethod
    def payloads(self, batch: pa.RecordBatch) -> Iterable[bytes]:
        """The entries of a batch, as they are sent and as they wait in the ledger: one a record, or fewer.

        The same rows give the same entries in the same order, so that they get the same keys.
        """

    @abstractmethod
    def submit(self, request: Request, answer: Callable[[Answer], None]) -> None:
        """Send a request, and come back without waiting for what becomes of it.

        ``answer`` is called once, from any thread, also for an error: one that is raised here fails the
        task. If it is not called within ``Sending.timeout`` the request is submitted again.
        """

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """See ``SinkWriter.write``; waits while as much is in flight as may be."""
        self._send()
        for payload in self.payloads(batch):
            self._outbox.add(Entry(self._origin, next(self._numbers), payload), context.clock.now_ms())
            if self._outbox.is_full:
                self._send()
            while self._outbox.is_full:
                self._wait()
        self._send()  # so that somebody looks when the delay of what is left is over

    def prepare_commit(self, epoch: int) -> list[Entry]:
        """See ``SinkWriter.prepare_commit``; waits for everything, or with ``"keep"`` for answers only."""
        del epoch
        if self._sending.at_commit == AtCommit.KEEP.value:
            self._send()
            self._ends = True
            while self._outbox.awaits_answers:
                self._wait()
        else:
            self._outbox.end()
            self._send()
            while not self._outbox.is_empty:
                self._wait()
        for name, number in self._outbox.counts.items():
            self._context.metrics.add(name, number)
        return []

    def snapshot_state(self, epoch: int) -> list[Entry]:
        """See ``SinkWriter.snapshot_state``: what is not delivered."""
        del epoch
        return self.unsent()

    def unsent(self) -> list[Entry]:
        """Entries of which it is not known that they are delivered."""
        return list(self._outbox.unsent())

    def _wait(self) -> None:
        self._context.mailbox.yield_()
        self._send()

    def _send(self) -> None:
        """Submit what may be sent now, and see to it that somebody looks again when more may."""
        if self._failure is not None:
            raise self._failure
        now_ms = self._context.clock.now_ms()
        self._outbox.expire(now_ms)
        while not self._ends and (request := self._outbox.next(now_ms)) is not None:
            self.submit(request, partial(self._answer, request))
        wakes_ms = self._outbox.expires_ms() if self._ends else self._outbox.wakes_ms()
        if wakes_ms is not None and (self._timer_ms is None or wakes_ms < self._timer_ms):
            self._timer_ms = wakes_ms
            self._context.timers.register(wakes_ms, self._look)

    def _look(self, at_ms: int) -> None:
        if at_ms == self._timer_ms:
            self._timer_ms = None
        self._send()

    def _answer(self, request: Request, answer: Answer) -> None:
        """In any thread."""
        self._context.mailbox.execute(partial(self._take, request, answer), f"the answer to {request.key}")

    def _take(self, request: Request, answer: Answer) -> None:
        try:
            self._outbox.answered(request, answer, self._context.clock.now_ms())
        except Exception as error:  # noqa: BLE001 - raised by the writer itself, as it is
            self._failure = self._failure or error
