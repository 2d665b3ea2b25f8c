"""The real clock, ids and thread pool. Nothing else in the package touches the system for these."""

from __future__ import annotations

import getpass
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from filesink.ports import Who

T = TypeVar("T")
R = TypeVar("R")


class SystemClock:
    """This machine's wall clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(slots=True)
class TaskClock:
    """The driver's clock, continued in a task by the task's own monotonic clock.

    Age and inactivity of part files compare times taken by different machines; started from one
    clock they cannot run backwards.
    """

    driver_ms: int
    _started: float = field(default_factory=time.monotonic)

    def now_ms(self) -> int:
        """The driver's time when the epoch began plus the time since this task began."""
        return self.driver_ms + int((time.monotonic() - self._started) * 1000)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class SystemIds:
    """Random UUIDs from the operating system."""

    def uuid(self) -> str:
        """A version-4 UUID."""
        return str(uuid.uuid4())


def this_driver(application: str = "") -> Who:
    """Who runs this process, as far as the system knows."""
    user = ""
    with suppress(OSError, KeyError, ImportError):  # containers may know no user by this number
        user = getpass.getuser()
    return Who(application=application, user=user, host=socket.gethostname())


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """Runs items in a pool that lives exactly as long as one call."""

    threads: int = 8

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See ``filesink.ports.TaskRunner.run``."""
        work = list(items)
        if len(work) < 2:
            return [function(item) for item in work]
        with ThreadPoolExecutor(max_workers=min(self.threads, len(work))) as pool:
            futures = [pool.submit(function, item) for item in work]
        return [future.result() for future in futures]
