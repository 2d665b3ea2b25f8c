"""What listeners are told of epochs, as values, and the port through which they are told.

    EpochBegan ─▶ PartsRolled, PartsMerged ─▶ EpochDecided ─▶ EpochVisible ─▶ EpochComplete
        ─▶ HiddenFilesSwept

    EpochFailed may come in the place of any that follows; ``decided`` says what that means.
    ExportEnded comes after an epoch, once for each exporter of the sink.

Rules:
1. Events hold no value of a record, no option of a store and no text of an error that is not ours.
2. Making one reads no store: all that is in them is known to the driver anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from filesink.errors import ConfigError
from formats.arguments import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """A file that has become visible. ``path`` is relative to the base path; ``bytes`` is its size."""

    path: str
    bucket: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What readers see of an epoch: ``files`` that came, and paths of those that were ``removed`` in it.

    A file that is replaced and kept for a while, for readers, is removed in a later epoch.
    """

    files: Sequence[FinishedFile] = ()
    removed: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEvent:
    """What all events have.

    Attributes:
        run: a UUID for each attempt to carry an epoch out; all events of the attempt have the same. One that
            finds that another driver has written the very same input ends without an event.
        destination: the base path of the sink, as it was given.
        sink: id of the chain of epochs, see ``SinkState.id``.
        epoch: its slot in that chain; ``None`` of a batch write until it is decided.
        kind: ``micro-batch``, ``batch-write``, ``upkeep``, ``finish``, ``offline-compaction`` or
            ``taken-back``.
        query_id, batch_id: of a micro-batch; ``None`` for any other kind.
        recovered: an earlier driver has decided the epoch, and this one completes it.
        at_ms: the driver's clock, milliseconds since 1970 UTC.
    """

    run: str
    destination: str
    sink: str
    epoch: int | None
    kind: str
    query_id: str | None = None
    batch_id: int | None = None
    recovered: bool = False
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBegan(SinkEvent):
    """The tasks are about to write. ``schema`` is that of the input, ``None`` without input."""

    schema: pa.Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsRolled(SinkEvent):
    """The tasks of the epoch have written ``files`` hidden files of ``bytes`` together."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsMerged(SinkEvent):
    """The epoch has merged small files, in ``ms`` milliseconds."""

    files_in: int
    bytes_in: int
    files_out: int
    bytes_out: int
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochDecided(SinkEvent):
    """The epoch will be published, whatever crashes; unless another write has its ``txn_id``.

    Attributes:
        rows: records that came in.
        began_ms: ``at_ms`` of its ``EpochBegan``.
        metrics: counters of its tasks and stages, see ``EpochReport.metrics``; ``open_rows`` and
            ``waiting_rows`` are what is hidden when it is done.
    """

    rows: int
    began_ms: int
    metrics: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochVisible(SinkEvent):
    """Its files are visible; its partitions are announced next. ``decided_ms`` is when it was decided."""

    decided_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochComplete(SinkEvent):
    """Everything of the epoch is visible, announced and noted.

    Attributes:
        rows: records that came in.
        changes: files that became visible, and that were removed.
        began_ms, decided_ms, visible_ms: when it got so far; ``began_ms`` is ``None`` if ``recovered``.
        metrics: as those of ``EpochDecided``; empty if ``recovered``.
        offsets: of its input, as Spark's offset log has them; ``""`` if they are not known.
        schema: of its input; ``None`` without input, and if ``recovered``.
    """

    rows: int
    changes: Changes
    began_ms: int | None
    decided_ms: int
    visible_ms: int
    metrics: Mapping[str, int] = field(default_factory=dict)
    offsets: str = ""
    schema: pa.Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFailed(SinkEvent):
    """The epoch, or the look at the ledger before it, has raised an error, which goes to the caller.

    Attributes:
        error: name of its type.
        code: of a ``FilesinkError``, else ``""``.
        decided: whether the epoch is decided all the same: then the next start or ``recover`` completes it.
            Without it nothing of it became visible, or nobody knows (``CommitStateUnknown``).
        began_ms: ``at_ms`` of its ``EpochBegan``; ``None`` if it did not get so far.
    """

    error: str
    code: str
    decided: bool
    began_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenFilesSwept(SinkEvent):
    """The housekeeping after the epoch has removed ``files`` hidden files that attempts had left."""

    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEnded(SinkEvent):
    """An exporter of the sink has had its turn. Of the path, not of a chain: ``sink`` is ``""``.

    ``kind`` is ``export``.

    Attributes:
        export: name of the exporter.
        version: the version its target is at; ``None`` if nobody knows.
        behind: by how many versions that is behind the path; ``None`` if nobody knows.
        ms: how long it took.
        error, code: as those of ``EpochFailed``; both ``""`` if it succeeded.
    """

    export: str
    version: int | None
    behind: int | None
    ms: int
    error: str = ""
    code: str = ""


class Listener(Protocol):
    """Anything that can be called with an event, a function too.

    Called on the driver, in the thread that runs the epoch, so that the epoch waits for it; threads of
    several epochs may call it at once. What it raises is logged once for each type of error, and fails
    nothing. It may be told of an epoch again, if a driver dies between telling and completing.
    """

    def __call__(self, event: SinkEvent, /) -> object:
        """Take notice of ``event``."""
        ...


def check_listener(listener: Listener) -> Listener:
    """Raise ``ConfigError`` (``BAD_VALUE``) unless it can be called with an event."""
    if isinstance(listener, type) or not callable(listener):
        raise ConfigError(
            "with_listener takes a function of one event, or another object that can be called; got "
            f"{kind_of(listener)}",
            code="BAD_VALUE",
        )
    return listener


class Listeners:
    """All listeners of one sink.

    Args:
        destination: what events are to call the sink.
        listeners: told in this order.
        changes: what readers see of committables, the second ones of which are not carried out yet.
    """

    def __init__(
        self,
        destination: str,
        listeners: Sequence[Listener],
        changes: Callable[[Sequence[Any], Sequence[Any]], Changes] = lambda _committables, _stay: Changes(),
    ) -> None:
        self.destination = destination
        self.changes = changes
        self._listeners = tuple(listeners)
        self._failed: set[tuple[int, type[Exception]]] = set()

    def tell(self, event: SinkEvent) -> None:
        """Call every listener."""
        for place, listener in enumerate(self._listeners):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a user's code: it may raise anything, and no epoch fails of it
                self._note(place, listener, error)

    def _note(self, place: int, listener: Listener, error: Exception) -> None:
        key = place, type(error)
        if key not in self._failed:
            self._failed.add(key)
            log.warning(
                "listener %s of '%s' failed with %s: %s; the epoch goes on, and this is not said again",
                getattr(listener, "__qualname__", type(listener).__qualname__),
                self.destination, type(error).__name__, error,
            )  # fmt: skip
