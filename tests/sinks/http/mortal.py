"""A service in a process of its own, which may be killed and started again on the same port.

    python -m tests.sinks.http.mortal <port> <file>

Writes each request that it takes to the file, a line each, before it answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[3]
ROUND = 20  # of this many requests three are not answered as they should be


class Mortal:
    """The service.

    Args:
        taken: a file for what it takes: path, key and ids of each request.
    """

    def __init__(self, taken: Path) -> None:
        taken.touch()
        self.taken = taken
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}/"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def has_died(self) -> bool:
        """Whether somebody has killed it."""
        assert self._process is not None
        return self._process.poll() is not None

    def start(self) -> None:
        """Start it, after a crash as well; returns when it takes connections."""
        if self._process is not None:
            self.stop()
        command = [sys.executable, "-m", __name__, str(self._port), str(self.taken)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: S603 - ours
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        """Kill it."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()


@contextmanager
def mortal() -> Iterator[Mortal]:
    """A service that runs."""
    with tempfile.TemporaryDirectory(prefix="filesink-http-") as directory:
        found = Mortal(Path(directory) / "taken")
        found.start()
        try:
            yield found
        finally:
            found.stop()


class Handler(BaseHTTPRequestHandler):
    """Of the requests of one connection."""

    protocol_version = "HTTP/1.1"
    taken: Path
    numbers = count()
    lock = threading.Lock()

    def do_POST(self) -> None:
        """Take it, be busy, or hang up."""
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # its client has died
            self.close_connection = True
            return
        number = next(self.numbers) % ROUND
        status = 200 if number not in {3, 7} else 503
        if status == 200:
            self._take(body)
        if number == 11:
            self.close_connection = True  # taken, and not answered
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _take(self, body: bytes) -> None:
        ids = [json.loads(line)["id"] for line in body.splitlines()]
        line = json.dumps([self.path, self.headers["Idempotency-Key"], ids]) + "\n"
        with self.lock, self.taken.open("ab", buffering=0) as file:
            file.write(line.encode())


def main(port: int, taken: Path) -> None:
    """Serve until somebody kills it."""
    Handler.taken = taken
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print("ready", flush=True)  # noqa: T201 - to the test
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
