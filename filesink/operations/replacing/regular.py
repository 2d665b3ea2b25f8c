"""Retention as upkeep of a sink: now and then, after an epoch of its own.

Rules:
1. Rarely: after the first epoch that a sink object has completed, and then after the first one of each hour.
   An object that writes nothing drops nothing.
2. It fails no epoch, since that is complete. What fails is told in the log, and tried again an hour later.
3. It is an epoch of its own, in the chain of the writes that replace files; see ``epochs``.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from filesink.errors import ConcurrentDriverError, FilesinkError
from filesink.operations.replacing.retain import Retain
from filesink.ports import Ports

log = logging.getLogger("filesink")

_EVERY_MS: Final = 3_600_000


class RegularRetention:
    """Called after each epoch of a sink, by whichever thread has run it.

    Args:
        retain: what is done.
        ports: of the driver.
    """

    def __init__(self, retain: Retain, ports: Ports) -> None:
        self._retain = retain
        self._ports = ports
        self._next_ms = 0
        self._at_work = threading.Lock()

    def __call__(self) -> None:
        """Drop what is not kept, unless it was looked at less than an hour ago, or is at this moment."""
        if not self._at_work.acquire(blocking=False):
            return
        try:
            now_ms = self._ports.clock.now_ms()
            if now_ms >= self._next_ms:
                self._next_ms = now_ms + _EVERY_MS
                self._run()
        finally:
            self._at_work.release()

    def _run(self) -> None:
        path = self._retain.base_path
        try:
            outcome = self._retain.run(self._ports)
        except ConcurrentDriverError as error:
            log.info("%s: retention has dropped nothing this time: %s", path, error)
        except FilesinkError as error:  # rule 2
            log.warning("%s: retention failed, and is tried again in an hour: %s", path, error)
        else:
            if outcome is not None:
                log.info("%s: retention has dropped %d files", path, len(outcome.committables))
