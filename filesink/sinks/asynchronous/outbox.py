"""What a writer has to send: which request may go now, and which has to go again.

    waiting ──▶ in flight ──▶ delivered, or refused
                 │     ▲
                 ▼     │  when its pause is over
                to go again ──▶ given up

Rules:
1. Pure: it is told the time, and sends nothing itself.
2. All that is not delivered is bounded: one batch that waits, and requests in flight and to go again, which
   together are as many as the pace allows.
3. Whatever it waits for has a time, or is an answer; a request without one goes again at its timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from typing import assert_never
from zlib import crc32

from filesink.errors import DeliveryError
from filesink.sinks.asynchronous.answers import (
    Again,
    Answer,
    Delivered,
    Refused,
    Unusable,
    problem_of,
)
from filesink.sinks.asynchronous.batches import Batches
from filesink.sinks.asynchronous.entries import Entry, Request
from filesink.sinks.asynchronous.pace import Pace
from filesink.sinks.asynchronous.sending import OnRefused, Sending

log = logging.getLogger("filesink")

_FIRST_PAUSE_MS = 100  # doubled with each try
_LONGEST_PAUSE_MS = 30_000


class Outbox:
    """The entries of one writer that are not delivered yet.

    Args:
        sending: the limits.
        unsent: entries that earlier epochs have left.

    Attributes:
        counts: for the metrics, by name.
    """

    def __init__(self, sending: Sending, *, unsent: Iterable[Entry] = ()) -> None:
        self._sending = sending
        self._delay_ms, self._timeout_ms = sending.delay_ms(), sending.timeout_ms()
        self._pace = Pace(sending.in_flight)
        self._batches = Batches(records=sending.records, limit=sending.limit())
        for entry in unsent:
            self._batches.add(entry)
        self._batches.close()
        self._since_ms = 0  # when the first entry of the open batch came
        self._in_flight: dict[int, Request] = {}  # by number; the oldest comes first
        self._again: list[tuple[int, int, int, Request]] = []  # by the time of the next try
        self._numbers = 0
        self.counts = {"delivered": 0, "refused": 0, "requests": 0, "retries": 0}

    @property
    def is_full(self) -> bool:
        """Whether a batch waits: no entry should be added before it is sent."""
        return self._batches.has_ready

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to be delivered."""
        return not (self._in_flight or self._again or self._batches.has_ready or self._batches.has_open)

    @property
    def awaits_answers(self) -> bool:
        """Whether anything is in flight."""
        return bool(self._in_flight)

    def add(self, entry: Entry, now_ms: int) -> None:
        """Take in an entry, which is not sent before ``next`` gives it."""
        if not self._batches.has_open:
            self._since_ms = now_ms
        self._batches.add(entry)

    def end(self) -> None:
        """No more entries will come: the open batch need not wait for others."""
        self._batches.close()

    def next(self, now_ms: int) -> Request | None:
        """The request to be sent now, if one may be sent. It is in flight from here on.

        Raises:
            DeliveryError: as ``expire``.
        """
        self.expire(now_ms)
        ripe_ms = self._ripe_ms()
        if ripe_ms is not None and ripe_ms <= now_ms:
            self._batches.close()
        request = self._take(now_ms) if now_ms >= self._pace.held_until_ms else None
        if request is None:
            return None
        self._numbers += 1
        request = replace(request, number=self._numbers, sent_ms=now_ms)
        self._in_flight[request.number] = request
        self.counts["requests"] += 1
        return request

    def _take(self, now_ms: int) -> Request | None:
        free = self._pace.allowed - len(self._in_flight)
        if free > 0 and self._again and self._again[0][0] <= now_ms:
            return heappop(self._again)[-1]
        if free > len(self._again) and self._batches.has_ready:
            return Request(self._batches.pop())
        return None

    def expires_ms(self) -> int | None:
        """When a request is given up next; ``None`` if none is in flight."""
        return self._oldest().sent_ms + self._timeout_ms if self._in_flight else None

    def wakes_ms(self) -> int | None:
        """When ``next`` should be asked if no answer comes before; ``None`` if it is of no use."""
        moments = [] if (expires_ms := self.expires_ms()) is None else [expires_ms]
        free = self._pace.allowed - len(self._in_flight)
        if free > 0 and self._again:
            moments.append(max(self._again[0][0], self._pace.held_until_ms))
        if free > len(self._again):
            ripe_ms = 0 if self._batches.has_ready else self._ripe_ms()
            moments += [] if ripe_ms is None else [max(ripe_ms, self._pace.held_until_ms)]
        return min(moments, default=None)

    def answered(self, request: Request, answer: Answer, now_ms: int) -> None:
        """The service has answered. An answer is ignored that comes after the timeout of its request.

        Raises:
            DeliveryError: there is no use in going on; ``ANSWER``, it makes no sense.
        """
        if self._in_flight.pop(request.number, None) is None:
            return
        self._check(request, answer, now_ms)
        match answer:
            case Delivered():
                self._delivered(request)
            case Again(is_delivery=True):
                self._delivered(request)
            case Again():
                self._pace.failed(request.sent_ms, now_ms, after_ms=answer.after_ms)
                self._send_again(request, answer, now_ms)
            case Refused():
                self._refused(request, answer, now_ms)
            case Unusable():
                self._put_back(request, now_ms, request)
                raise DeliveryError(
                    f"the service takes nothing that is sent like this: {answer.why}. Nothing of this epoch "
                    "counts as written. Correct address, token, headers or certificates",
                    code="UNUSABLE",
                )
            case _:
                assert_never(answer)

    def _check(self, request: Request, answer: object, now_ms: int) -> None:
        problem = problem_of(answer, entries=len(request.entries))
        if problem is not None:
            self._put_back(request, now_ms, request)
            raise DeliveryError(
                f"the answer to request '{request.key}' makes no sense: {problem}. Nothing of this epoch "
                "counts as written. Correct what gives it: judge of HttpService, or submit of a writer",
                code="ANSWER",
            )

    def expire(self, now_ms: int) -> None:
        """Let go of requests that have waited too long for their answers.

        Raises:
            DeliveryError: ``RETRIES``, one of them was tried often enough.
        """
        while (expires_ms := self.expires_ms()) is not None and expires_ms <= now_ms:
            why = f"no answer within {self._timeout_ms / 1000:g} s"
            self.answered(self._oldest(), Again(why=why), now_ms)

    def unsent(self) -> Iterator[Entry]:
        """What is not delivered, in the order in which it came first; what is in flight as well."""
        again = (request for *_, request in sorted(self._again, key=lambda one: one[1:3]))
        for request in (*self._in_flight.values(), *again):
            first = request.entries[0].number
            yield from (replace(entry, sent_with=first) for entry in request.entries)
        yield from self._batches

    def _oldest(self) -> Request:
        return next(iter(self._in_flight.values()))

    def _ripe_ms(self) -> int | None:
        """When the open batch has waited long enough for others."""
        waits = self._batches.has_open and self._delay_ms is not None
        return self._since_ms + (self._delay_ms or 0) if waits else None

    def _delivered(self, request: Request) -> None:
        self._pace.delivered()
        self.counts["delivered"] += len(request.entries)

    def _send_again(self, request: Request, answer: Again, now_ms: int) -> None:
        left = request.entries
        if answer.numbers is not None:
            left = tuple(left[number] for number in sorted(set(answer.numbers)))
        self.counts["delivered"] += len(request.entries) - len(left)
        again = Request(left, tries=request.tries + 1)
        self._put_back(again, now_ms + _pause_ms(request), request)
        if request.tries >= self._sending.retries:
            raise DeliveryError(
                f"request '{request.key}' was sent {request.tries + 1} times and is not delivered: "
                f"{answer.why}. A stream that is started again sends what is not delivered again, under the "
                "same keys; a batch that is written again sends all of it, under new ones",
                code="RETRIES",
            )
        self.counts["retries"] += 1

    def _refused(self, request: Request, answer: Refused, now_ms: int) -> None:
        """Find out which entry is meant, by halves; they are other requests, of which nothing has arrived."""
        middle = len(request.entries) // 2
        if middle:
            for half in (request.entries[:middle], request.entries[middle:]):
                self._put_back(Request(half, tries=request.tries), now_ms, request)
            return
        if self._sending.on_refused == OnRefused.FAIL.value:
            self._put_back(request, now_ms, request)
            raise DeliveryError(
                f"the service refuses entry '{request.key}': {answer.why}. Sending it again cannot help: "
                "correct the data, or leave such entries out with on_refused='drop'",
                code="REFUSED",
            )
        log.warning("entry '%s' is left out, the service refuses it: %s", request.key, answer.why)
        self.counts["refused"] += 1

    def _put_back(self, request: Request, at_ms: int, before: Request) -> None:
        heappush(self._again, (at_ms, before.number, request.entries[0].number, request))


def _pause_ms(request: Request) -> int:
    """The pause before the next try: longer with each, and not the same for all that fail together."""
    longest = min(_LONGEST_PAUSE_MS, _FIRST_PAUSE_MS << min(request.tries, 16))
    return longest // 2 + crc32(request.key.encode()) % (longest // 2)
