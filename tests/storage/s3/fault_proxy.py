"""A proxy before a server of S3 that spoils the requests it is told to, as networks and servers do."""

from __future__ import annotations

import socket
import socketserver
import struct
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from threading import Thread
from typing import Self

_BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Spoil(Enum):
    """What becomes of a request."""

    REPLY_LOST = "reply lost"  # done, and the connection ends without an answer
    REPLY_LATE = "reply late"  # done, and the answer does not come before the client has given up
    REQUEST_LATE = "request late"  # done only when the client has given up
    RESET = "reset"  # the connection ends in the middle of the request, and nothing is done
    BUSY = "busy"  # 503, and nothing is done


#: Asked for each request with its method and its path with the query.
Plan = Callable[[str, str], Spoil | None]


class FaultProxy(socketserver.ThreadingTCPServer):
    """Listens on a free port of the loopback interface from ``with`` on.

    Leaving it waits until every request has come to its end, the late ones too.
    """

    request_queue_size = 64

    def __init__(self, target: int, plan: Plan) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target = target
        self.plan = plan

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self.server_address[1])

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def shutdown_request(self, request) -> None:
        """End a connection as it is, without the courtesy that would hide a reset."""
        self.close_request(request)


class _Connection(socketserver.StreamRequestHandler):
    """One request: servers are asked to close, so that nobody has to find the end of an answer."""

    server: FaultProxy

    def handle(self) -> None:
        with suppress(OSError):  # the client, or a server, hung up
            self._handle()

    def _handle(self) -> None:
        head = self._head()
        if not head:
            return
        method, path = head[0].decode().split()[:2]
        length = next((int(line[15:]) for line in head if line.lower().startswith(b"content-length:")), 0)
        if any(line.lower().startswith(b"expect:") for line in head):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # a client would wait a second for it
        spoil = self.server.plan(method, path)
        if spoil is Spoil.RESET:
            self.rfile.read(length // 2)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        body = self.rfile.read(length)
        if spoil is Spoil.BUSY:
            status = b"HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Type: application/xml\r\n"
            self.wfile.write(status + b"Content-Length: %d\r\n\r\n" % len(_BUSY) + _BUSY)
            return
        if spoil is Spoil.REQUEST_LATE:
            self._wait_for_hang_up()
        reply = self._forward(head, body)
        if spoil is Spoil.REPLY_LATE:
            self._wait_for_hang_up()
        if spoil is None:
            self.wfile.write(reply)

    def _head(self) -> list[bytes]:
        lines = []
        while (line := self.rfile.readline()) not in {b"\r\n", b""}:
            lines.append(line)
        return lines

    def _forward(self, head: list[bytes], body: bytes) -> bytes:
        lines = [line for line in head if not line.lower().startswith((b"connection:", b"expect:"))]
        with socket.create_connection(("127.0.0.1", self.server.target)) as far:
            far.sendall(b"".join([*lines, b"Connection: close\r\n\r\n", body]))
            return b"".join(iter(lambda: far.recv(1 << 16), b""))

    def _wait_for_hang_up(self) -> None:
        while self.connection.recv(1):
            pass
