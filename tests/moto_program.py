"""moto's server, one request at a time: what it checks and then does, it does not do at once.

Usage: moto_program.py PORT
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple


class OneAtATime:
    """Like the real service, on which two conditional writes to one key exclude each other."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._lock = Lock()

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            return list(self._application(environment, start))


class Quiet(WSGIRequestHandler):
    """Writes no log."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del code, size


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        OneAtATime(DomainDispatcherApplication(create_backend_app)),
        threaded=True,
        request_handler=Quiet,
    )
