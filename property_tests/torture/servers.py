"""A server that dies in a life, and is started again at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from property_tests.torture.destination import Server

_LOOKS_EVERY = 0.01  # seconds


@contextmanager
def reborn(server: Server, deadly: signal.Signals) -> Iterator[None]:
    """Start a server again as soon as somebody has killed it.

    It dies at the end of the block if nobody has, so that it has died once in any case, and runs when the
    block is left.
    """
    pid, dead, errors = server.pid, threading.Event(), list[BaseException]()

    def start_again() -> None:
        try:
            while not server.has_died():
                dead.wait(_LOOKS_EVERY)
            dead.set()
            server.start()
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            errors.append(error)

    starting = threading.Thread(target=start_again)
    starting.start()
    try:
        yield
    finally:
        if not dead.is_set():  # else the number may be another process's by now
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, deadly)
        starting.join()
    for error in errors:
        raise error
