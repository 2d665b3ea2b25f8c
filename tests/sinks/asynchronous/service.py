"""A service of the tests, which answers from threads of its own, and a sink that sends to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from filesink.sinks.asynchronous import Answer, AsyncSink, AsyncSinkWriter, Delivered, Request, Sending


@dataclass
class Service:
    """Notes what it takes. ``answers`` is asked for each request; without an answer there is none."""

    answers: Callable[[Request], Answer | None] = lambda _: Delivered()
    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: list[tuple[str, bytes]] = field(default_factory=list)  # keys and payloads
    requests: list[str] = field(default_factory=list)  # keys
    at_once: int = 0
    most: int = 0
    opened: int = 0
    closed: int = 0

    def take(self, request: Request, answer: Callable[[Answer], None]) -> None:
        """In a thread of the service."""
        found = self.answers(request)
        with self.lock:
            self.at_once -= 1
            self.requests.append(request.key)
            if isinstance(found, Delivered):
                self.taken += [(entry.key, entry.payload) for entry in request.entries]
        if found is not None:
            answer(found)

    def payloads(self) -> list[str]:
        """What has arrived, sorted; each payload as often as it came."""
        return sorted(payload.decode() for _, payload in self.taken)


class ServiceWriter(AsyncSinkWriter):
    """Each value of a batch is an entry."""

    def __init__(self, service, context, **options):
        super().__init__(context, **options)
        self._service = service
        self._threads = ThreadPoolExecutor(32)
        service.opened += 1

    def payloads(self, batch):
        return (value.encode() for value in batch["value"].to_pylist())

    def submit(self, request, answer):
        with self._service.lock:
            self._service.at_once += 1
            self._service.most = max(self._service.most, self._service.at_once)
        self._threads.submit(self._service.take, request, answer)

    def close(self):
        self._threads.shutdown()
        self._service.closed += 1


@dataclass(frozen=True, kw_only=True)
class ServiceSink(AsyncSink):
    """Sends to ``service``."""

    service: Service

    def open_writer(self, context, *, sending: Sending, unsent: Sequence = ()):
        return ServiceWriter(self.service, context, sending=sending, unsent=unsent)
