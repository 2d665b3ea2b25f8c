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
from collections.abc import Callable
from typing import Any, Final

from filesink.commit.outcome import Outcome
from filesink.errors import ConcurrentDriverError, FilesinkError
from filesink.file_sink.tiers import FileTiers
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.ports import Audience, Ports
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock, SystemIds, ThreadRunner, this_driver

log = logging.getLogger("filesink")

#: Called after each epoch, with its outcome; see ``filesink.spark.engine_options``.
After = Callable[[Outcome[Any]], Outcome[Any]]

_EVERY_MS: Final = 3_600_000


def retaining(
    retention: Retention | None, tiers: FileTiers, after: After, audience: Audience | None
) -> After:
    """``after``, and before it retention, if there is one; ``audience`` hears of its epochs."""
    if retention is None:
        return after
    base_path = tiers.address.base_path if isinstance(tiers.address, StoreAddress) else ""
    who = this_driver("with_retention")
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner(), who=who, audience=audience)
    rule = retention.for_buckets(tiers.plan.assigner)
    regular = RegularRetention(Retain(tiers=tiers, retention=rule, base_path=base_path), ports)

    def both(outcome: Outcome[Any]) -> Outcome[Any]:
        regular()
        return after(outcome)

    return both


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
