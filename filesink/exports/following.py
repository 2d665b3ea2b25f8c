"""Exports follow the epochs of a sink: run after each one, never part of it.

Rules:
1. The epoch is complete when this begins. Nothing here undoes it, and what fails is tried again after the
   next one: a target says itself how far it is, so nothing has to be remembered.
2. Each exporter has its turn, whatever becomes of the others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from filesink.api.events import ExportEnded
from filesink.commit.outcome import Outcome
from filesink.errors import ExportError, FilesinkError
from filesink.exports.api import Exporter, ExportPlan, OnExportFailure
from filesink.ports import Audience, Ports, SerialRunner
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.opening import open_at
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock, SystemIds

C = TypeVar("C")

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """How the turn of one exporter has ended."""

    version: int | None = None
    newest: int | None = None
    error: Exception | None = None

    @property
    def behind(self) -> int | None:
        """By how many versions; ``None`` if nobody knows."""
        if self.newest is None:
            return None
        if self.version is None:
            return None if self.error else self.newest
        return max(0, self.newest - self.version)


@dataclass(slots=True)
class _Known:
    """What is known of one exporter from its earlier turns."""

    version: int | None = None
    told: set[str] = field(default_factory=set)


class Exports:
    """The exporters of one sink. Used by the threads of all its epochs; they wait for each other.

    Args:
        plan: which, and what becomes of an epoch when one fails.
        open_directory: opens the path.
        ports: of the driver; its audience is told of each turn.
    """

    def __init__(
        self, plan: ExportPlan, *, open_directory: Callable[[], SinkDirectory], ports: Ports
    ) -> None:
        self._plan = plan
        self._open = open_directory
        self._ports = ports
        self._lock = threading.Lock()
        self._known = {one.name: _Known() for one in plan.exporters}

    def after(self, outcome: Outcome[C]) -> Outcome[C]:
        """Called after each epoch, with its outcome. Raises as ``run``."""
        return replace(outcome, behind=self.run())

    def run(self) -> Mapping[str, int | None]:
        """Bring all targets to the newest version; returns by how many versions each is behind, by name.

        ``None`` where nobody knows, since the target or the path does not answer.

        Raises:
            ExportError: ``EXPORT``, one has failed, and ``on_failure`` is ``FAIL``.
        """
        with self._lock:
            turns = {one.name: self._turn(one) for one in self._plan.exporters}
        failed = next(((name, turn.error) for name, turn in turns.items() if turn.error), None)
        if failed is not None and self._plan.on_failure is OnExportFailure.FAIL:
            raise _failed(*failed) from failed[1]
        return {name: turn.behind for name, turn in turns.items()}

    def _turn(self, exporter: Exporter) -> _Turn:
        known, began_ms = self._known[exporter.name], self._ports.clock.now_ms()
        newest = None
        try:
            directory = self._open()
            newest = directory.version
            known.version = exporter.version(directory)
            if known.version is None or known.version < newest:
                exporter.bring_to(directory, newest)
                known.version = newest
            turn = _Turn(version=known.version, newest=newest)
        except Exception as error:  # noqa: BLE001 - told, and tried again after the next epoch; a user's may raise anything
            turn = _Turn(version=known.version, newest=newest, error=error)
        self._tell(exporter.name, turn, began_ms)
        return turn

    def _tell(self, name: str, turn: _Turn, began_ms: int) -> None:
        code = _code(turn.error)
        if turn.error is None:
            self._known[name].told.clear()  # the next failure is another one
        elif code not in self._known[name].told:
            self._known[name].told.add(code)
            log.warning(
                "export %s failed, and is tried again after the next epoch; until it succeeds this is not "
                "said again: %s", name, _text(turn.error),
            )  # fmt: skip
        if self._ports.audience is not None:
            self._ports.audience.tell(self._event(name, turn, began_ms))

    def _event(self, name: str, turn: _Turn, began_ms: int) -> ExportEnded:
        now_ms, audience = self._ports.clock.now_ms(), self._ports.audience
        return ExportEnded(
            run=self._ports.ids.uuid(),
            destination="" if audience is None else audience.destination,
            sink="",
            epoch=None,
            kind="export",
            at_ms=now_ms,
            export=name,
            version=turn.version,
            behind=turn.behind,
            ms=max(0, now_ms - began_ms),
            error="" if turn.error is None else type(turn.error).__name__,
            code=turn.error.code if isinstance(turn.error, FilesinkError) else "",
        )


def exports_of(plan: ExportPlan, address: StoreAddress, *, audience: Audience | None) -> Exports:
    """The exports of a sink that writes to ``address``."""
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner(), audience=audience)
    return Exports(plan, open_directory=partial(open_at, address), ports=ports)


def _code(error: Exception | None) -> str:
    return error.code if isinstance(error, FilesinkError) else type(error).__name__


def _text(error: Exception | None) -> str:
    return str(error) if isinstance(error, FilesinkError) else f"{type(error).__name__}: {error}"


def _failed(name: str, error: Exception | None) -> ExportError:
    return ExportError(
        f"the epoch is complete and its files are visible, but export {name} failed: {_text(error)}. Mend "
        "that; the next epoch, or filesink.export(…), goes on where it stopped",
        code="EXPORT",
    )
