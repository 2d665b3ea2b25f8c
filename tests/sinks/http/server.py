"""A service on loopback that does what a test wants: takes, is busy, hangs up, or says nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    names: Sequence[str] = ()  # of headers, as they came

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    def records(self) -> list[Any]:
        """The objects in the body, whichever way they were put there."""
        if self.headers["content-type"] == "application/x-ndjson":
            return [json.loads(line) for line in self.body.splitlines()]
        found = json.loads(self.body)
        return found if isinstance(found, list) else [found]


@dataclass(frozen=True)
class Reply:
    """An answer. ``cut``: bytes of the body after which the connection ends."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    cut: int | None = None


class HangUp:
    """The connection ends without an answer."""


class Silence:
    """No answer comes, and the connection stays."""


@dataclass
class HttpServer:
    """What a test knows of its server. ``taken``: requests that were answered with 2xx."""

    url: str
    answers: Callable[[Received], Reply | HangUp | Silence] = lambda _: Reply()
    received: list[Received] = field(default_factory=list)
    taken: list[Received] = field(default_factory=list)
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def records(self) -> list[Any]:
        """Of all requests that were taken."""
        return [record for request in self.taken for record in request.records()]


@contextmanager
def serving(scheme: Callable[[ThreadingHTTPServer], str] = lambda _: "http") -> Iterator[HttpServer]:
    """A server for a test. ``scheme`` may wrap its socket."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            state.connections += 1

        def do_POST(self):
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.command, self.path, headers, self.rfile.read(length), self.headers.keys())
            if len(request.body) < length:  # its client has died
                self.close_connection = True
                return
            state.received.append(request)
            _answer(state, self, request, state.answers(request))

        do_PUT = do_POST  # noqa: N815 - as well

        def log_message(self, *_):
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 512  # else the system drops what comes at once, and comes again after seconds

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign] - clients that are cut off
    state = HttpServer(url=f"{scheme(server)}://127.0.0.1:{server.server_port}/events")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(
    state: HttpServer, handler: BaseHTTPRequestHandler, request: Received, reply: Reply | HangUp | Silence
) -> None:
    match reply:
        case Reply():
            if 200 <= reply.status < 300:
                state.taken.append(request)
            handler.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(reply.body[: reply.cut])
            handler.close_connection = reply.cut is not None
        case HangUp():
            handler.close_connection = True
        case Silence():
            state.over.wait()
            handler.close_connection = True
