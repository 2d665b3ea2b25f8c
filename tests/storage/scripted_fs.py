"""A real file system whose calls are counted, recorded and made to fail by number."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filesink.ports import SerialRunner
from filesink.storage.faulty import Moment
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.storage.staged import HiddenFile
from filesink.system import SystemIds
from tests.contracts.store_site import finish, hidden

TARGET = "dt=1/h=2/part-a-0"
DATA = b"abc" * 1000
#: What goes wrong with one call, and when.
Failure = tuple[Moment, int]
#: Asked with the number of a call, counted from 0, and its name; may raise, which is a crash.
Script = Callable[[int, str], Failure | None]


@dataclass
class ScriptedFs:
    """Passes every call to ``PosixFs`` and records it as (name, path or path of the descriptor).

    ``handles`` are the descriptors that are open now.
    """

    fs: PosixFs
    fail: Script = lambda _number, _name: None
    calls: list[tuple[str, str]] = field(default_factory=list)
    handles: dict[int, str] = field(default_factory=dict)
    longest_write: int = 1 << 30

    @property
    def base(self) -> str:
        return self.fs.base

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(self.fs, name)

        def call(*arguments: Any) -> Any:
            fault = self.fail(len(self.calls), name)
            self._record(name, arguments)
            if fault is not None and fault[0] is Moment.BEFORE and name != "close":
                raise OSError(fault[1], os.strerror(fault[1]))
            result = real(*arguments)
            if name == "create_exclusive":
                self.handles[result] = arguments[0]
            if fault is not None:
                if name == "create_exclusive":  # the caller never learns of this descriptor
                    del self.handles[result]
                    os.close(result)
                raise OSError(fault[1], os.strerror(fault[1]))
            return result

        return call

    def write(self, handle: int, data: memoryview) -> int:
        """At most ``longest_write`` bytes a call."""
        written: int = self.__getattr__("write")(handle, data[: self.longest_write])
        return written

    def _record(self, name: str, arguments: tuple[Any, ...]) -> None:
        first: Any = arguments[0] if arguments else ""
        path = str(self.handles.get(first, first))
        if name == "close":  # Linux gives up a descriptor even if close fails, hence so does this
            self.handles.pop(first)
        self.calls.append((name, f"{path} -> {arguments[1]}" if name == "link" else path))


def local(fs: ScriptedFs | PosixFs) -> LocalStore:
    """The store under test, in one thread so that calls have numbers."""
    return LocalStore(fs, runner=SerialRunner(), ids=SystemIds())


def contents(base: str) -> dict[str, bytes]:
    """Every file below ``base``."""
    return {str(f.relative_to(base)): f.read_bytes() for f in Path(base).rglob("*") if f.is_file()}


def fail_at(number: int, moment: Moment, code: int) -> Script:
    """Let one call fail. No system says of a file that is there and stays there that it is absent."""
    impossible = (moment, code) == (Moment.BEFORE, errno.ENOENT)
    return lambda current, name: (
        (moment, code) if current == number and not (impossible and name == "unlink") else None
    )


def fail_on(name: str, moment: Moment, code: int) -> Script:
    """Let every call of one name fail."""
    return lambda _number, current: (moment, code) if current == name else None


def write(store: LocalStore, target: str = TARGET) -> HiddenFile:
    """What a task does: write a file, make it durable, remove it if that fails."""
    output = store.create(hidden(target), target=target)
    try:
        output.write(DATA)
        staged = output.close()
        store.sync()
    except BaseException:
        output.discard()
        raise
    return staged


def publish(store: LocalStore, staged: HiddenFile) -> None:
    """What a driver does with the file of ``write``."""
    store.verify(staged)
    finish(store, staged, TARGET)
