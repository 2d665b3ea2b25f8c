"""A service in a process of its own, which dies at a chosen request and is started again on the same port.

    python -m tests.sinks.http.mortal <port> <file> <die at> <before|after>

Writes each request that it takes to the file, a line each, before it answers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from tests.servers import free_port
from tests.sinks.forks import ROOT

ROUND = 20  # of this many requests three are not answered as they should be


class Mortal:
    """The service. ``directory`` is its own."""

    def __init__(self, directory: Path) -> None:
        self._taken = directory / "taken"
        self._taken.touch()
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}/"

    def start(self, die_at: int = -1, side: str = "before") -> None:
        """Start it; returns when it takes connections."""
        command = [sys.executable, "-m", __name__, str(self._port), str(self._taken), str(die_at), side]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: S603 - ours
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        """Kill it."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def start_when_dead(self) -> None:
        """Wait until it has died, and start it again."""
        assert self._process is not None
        self._process.communicate()
        self.start()

    def taken(self) -> list[tuple[str, list[int]]]:
        """Key, and ids of its records, of each request that it has taken."""
        return [tuple(json.loads(line)) for line in self._taken.read_text().splitlines()]


@contextmanager
def mortal(directory: Path) -> Iterator[Mortal]:
    """A service for a test."""
    found = Mortal(directory)
    found.start()
    try:
        yield found
    finally:
        found.stop()


@dataclass(frozen=True)
class Fate:
    """What becomes of requests, by their number, and of the process."""

    taken: Path
    die_at: int
    side: str
    numbers: Iterator[int] = field(default_factory=count)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str, body: bytes) -> None:
        """Write it down."""
        ids = [json.loads(line)["id"] for line in body.splitlines()]
        with self.lock, self.taken.open("a") as file:
            file.write(json.dumps([key, ids]) + "\n")

    def die(self, number: int, moment: str) -> None:
        """Die, if it is time."""
        if (number, moment) == (self.die_at, self.side):
            os.kill(os.getpid(), signal.SIGKILL)


class Handler(BaseHTTPRequestHandler):
    """Of the requests of one connection."""

    protocol_version = "HTTP/1.1"
    fate: Fate

    def do_POST(self) -> None:
        """Take it, be busy, or hang up."""
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # its client has died
            self.close_connection = True
            return
        number = next(self.fate.numbers)
        self.fate.die(number, "before")
        status = 200 if number % ROUND not in {3, 7} else 503
        if status == 200:
            self.fate.take(self.headers["Idempotency-Key"], body)
        self.fate.die(number, "after")
        if number % ROUND == 11:
            self.close_connection = True  # taken, and not answered
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def main(port: int, taken: Path, die_at: int, side: str) -> None:
    """Serve until somebody kills it."""
    Handler.fate = Fate(taken, die_at, side)
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print("ready", flush=True)  # noqa: T201 - to the test
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
