"""A store in memory whose every call is a step of a simulated world, and may go wrong as its plan says."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from random import Random
from typing import TypeVar

from filesink.errors import StorageError
from filesink.storage.api import Entry, PutResult
from filesink.storage.memory import MemoryFiles, MemoryStore
from property_tests.simulation.world.faults import Fault, Mode
from property_tests.simulation.world.world import Plan, World

T = TypeVar("T")

_CHANGES = (Mode.ERROR, Mode.LOST_REPLY, Mode.LATE, Mode.CRASH_BEFORE, Mode.CRASH_AFTER)
_LOOKS = (Mode.ERROR, Mode.CRASH_BEFORE)
MODES: dict[str, tuple[Mode, ...]] = {
    "put_if_absent": _CHANGES,
    "delete": _CHANGES,
    "read": _LOOKS,
    "list": _LOOKS,
    "sync_directories": _LOOKS,
}


class StoreTrouble(Plan):
    """Calls go wrong at random; each seed allows another subset of calls and modes.

    Args:
        random: of the history.
        spacing: calls between two faults, on average; 0 for no faults.
    """

    def __init__(self, random: Random, *, spacing: int) -> None:
        self._random = random
        self._spacing = spacing
        self._modes = {
            name: [mode for mode in modes if random.random() < 0.6] for name, modes in MODES.items()
        }

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        """See ``Plan.fault``."""
        del path, number
        modes = self._modes[operation]
        if not modes or not self._spacing or self._random.randrange(self._spacing):
            return None
        mode = self._random.choice(modes)
        return Fault(mode, 0 if mode in {Mode.CRASH_BEFORE, Mode.CRASH_AFTER} else errno.EIO)


class SteppedStore(MemoryStore):
    """As ``MemoryStore``, for actors of ``world``; those with the same ``files`` share what lies there."""

    def __init__(self, files: MemoryFiles, world: World) -> None:
        super().__init__(files)
        self._inner = MemoryStore(files)
        self._world = world

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return self._step("put_if_absent", path, lambda: self._inner.put_if_absent(path, data))

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        return self._step("read", path, lambda: self._inner.read(path))

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        self._step("delete", path, lambda: self._inner.delete(path))

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        return self._step("list", directory, lambda: self._inner.list(directory))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        for directory in directories:
            self._step("sync_directories", directory, lambda: self._inner.sync_directories([directory]))  # noqa: B023 - called at once

    def _step(self, operation: str, path: str, effect: Callable[[], T]) -> T:
        try:
            return self._world.step(self._world.current, operation, path, effect)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"{operation} of '{path}': {error}", code="IO") from error
