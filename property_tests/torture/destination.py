"""What is tortured: a sink, the place that it writes to, and how to look there without asking the sink."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from filesink.api import Sink
from filesink.storage.local.posix import PosixFs

if TYPE_CHECKING:
    from property_tests.torture.steps import Steps

#: What a process has to know of a place: nothing but JSON.
Place = Mapping[str, Any]

_OF_A_DISK = (
    "mkdir", "create_exclusive", "write", "copy", "fsync", "close", "link", "unlink", "fsync_directory",
)  # fmt: skip


class Promise(Enum):
    """What a sink promises of each row."""

    ONCE = "once"
    ONE_KEY = "at least once, under one key"


class Delivery(NamedTuple):
    """A row as it was found: its number, and the key that it came under, if there are any."""

    row: int
    key: str = ""


class Server(Protocol):
    """A process that sinks talk to."""

    @property
    def pid(self) -> int:
        """The process that dies if it is killed."""
        ...

    def has_died(self) -> bool:
        """Whether that process is gone."""
        ...

    def start(self) -> object:
        """Start it again, with all that it had; returns when it answers."""
        ...


class Destination(ABC):
    """A sink and where it writes to. Made anew in each process, so it keeps nothing.

    Attributes:
        kinds: ways to write, by name; each is tortured by itself.
        promise: what is asked for in the end.
        batches: of a history.
        tasks: how many there may be in a life; no choice where a row's key follows from its place.
        deadly: what kills the server at once, with all of its processes.
    """

    kinds: ClassVar[Sequence[str]] = ("",)
    promise: ClassVar[Promise] = Promise.ONCE
    batches: ClassVar[int] = 3
    rows_in_batch: ClassVar[int] = 20
    tasks: ClassVar[Sequence[int]] = (1, 2, 3)
    deadly: ClassVar[signal.Signals] = signal.SIGKILL
    has_client: ClassVar[bool] = False

    # --- beside the lives

    def serving(self) -> AbstractContextManager[Server | None]:
        """The server, if there is one, for as long as the block."""
        return nullcontext()

    @abstractmethod
    def place(self, kind: str, directory: Path, server: Any) -> Place:
        """A new, empty one, with a directory of its own."""

    @abstractmethod
    def arrived(self, place: Place) -> list[Delivery]:
        """What readers find now, as often as it is there; asked of anybody but the sink."""

    def settle(self, place: Place) -> None:  # noqa: B027 - most have nothing to wait for
        """Wait for what the server still does by itself, before the last look."""

    def left(self, place: Place) -> list[str]:
        """What lies there though nobody needs it, when one more epoch has gone by."""
        del place
        return []

    # --- in a life

    @abstractmethod
    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """The sink, as any process makes it, with a uid."""

    def batch(self, rows: Sequence[int]) -> pa.RecordBatch:
        """Rows with these numbers."""
        return pa.record_batch({"id": pa.array(rows, pa.int64())})

    def watch(self, steps: Steps) -> None:
        """Have every call counted that leaves something behind; here those of a local disk."""
        for name in _OF_A_DISK:
            steps.count(PosixFs, name)

    def query(self, place: Place) -> AbstractContextManager[object]:
        """What goes on around the batches of a life."""
        del place
        return nullcontext()

    def take(self, place: Place) -> None:
        """A life of a client, if ``has_client``: takes what is there."""
        raise NotImplementedError


def named(name: str) -> Destination:
    """The destination of a name, ``module:Class``."""
    module, _, kind = name.partition(":")
    found: Callable[[], Destination] = getattr(import_module(module), kind)
    return found()


def name_of(destination: Destination) -> str:
    """What ``named`` takes."""
    kind = type(destination)
    return f"{kind.__module__}:{kind.__qualname__}"
