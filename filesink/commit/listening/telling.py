"""Tells listeners how far an epoch is. Costs nothing where nobody listens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from filesink.api import EpochContext
from filesink.api.events import (
    EpochBegan,
    EpochComplete,
    EpochDecided,
    EpochFailed,
    EpochVisible,
    HiddenFilesSwept,
    PartsMerged,
    PartsRolled,
    SinkEvent,
)
from filesink.errors import FilesinkError
from filesink.ledger.record import Cause, EpochRecord, MicroBatch, kind_of
from filesink.ports import Ports

_MERGED = {"files_in": "merged_files_in", "bytes_in": "merged_bytes_in", "files_out": "merged_files_out",
           "bytes_out": "merged_bytes_out", "ms": "merge_ms"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """The epoch at work, as far as it is."""

    run: str
    sink: str
    epoch: int | None
    cause: Cause
    recovered: bool = False
    schema: Any = None
    began_ms: int | None = None
    decided_ms: int | None = None
    visible_ms: int | None = None


class Telling:
    """Tells the listeners of one chain. Used by one epoch at a time.

    Args:
        sink_id: of the chain.
        ports: of the driver, with its listeners.
    """

    def __init__(self, sink_id: str, ports: Ports) -> None:
        self._sink_id = sink_id
        self._ports = ports
        self._listeners = ports.audience
        self._at: _Attempt | None = None

    @contextmanager
    def attempt(self, cause: Cause) -> Iterator[None]:
        """Around a call that runs an epoch; tells if it fails."""
        with self._around(None):
            try:
                yield
            except Exception as error:  # told and raised again
                if self._listeners is not None:
                    self._failed(self._at or self._new(cause), error)
                raise

    @contextmanager
    def resumed(self, record: EpochRecord) -> Iterator[None]:
        """Around the publishing of what an earlier driver has decided; tells if it fails."""
        with self._around(None if self._listeners is None else self._again(record)):
            try:
                yield
            except Exception as error:  # told and raised again
                if self._at is not None:
                    self._failed(self._at, error)
                raise

    def began(self, cause: Cause, context: EpochContext) -> None:
        """The tasks are about to write."""
        if self._listeners is None:
            return
        slot = None if context.sink_id != self._sink_id else context.slot
        at = replace(self._new(cause), epoch=slot, schema=context.schema, began_ms=self._now())
        self._at = at
        self._tell(EpochBegan, schema=context.schema)

    def decided(self, record: EpochRecord, metrics: Mapping[str, int]) -> None:
        """The record of the epoch at work is in its slot."""
        if self._at is None:
            return
        self._at = replace(self._at, epoch=record.slot, decided_ms=self._now())
        if metrics.get("files_written"):
            rolled = {"files": metrics["files_written"], "bytes": metrics.get("bytes_written", 0)}
            self._tell(PartsRolled, **rolled)
        if "merged_files_in" in metrics:
            self._tell(PartsMerged, **{name: metrics.get(key, 0) for name, key in _MERGED.items()})
        began = self._at.began_ms
        self._tell(EpochDecided, rows=record.rows, metrics=dict(metrics), began_ms=began)

    def visible(self, record: EpochRecord) -> None:
        """The files of ``record`` are visible."""
        if self._at is None:
            return
        self._at = replace(self._at, visible_ms=self._now())
        self._tell(EpochVisible, decided_ms=self._decided_ms(record))

    def complete(
        self,
        record: EpochRecord,
        committables: Sequence[Any],
        *,
        stay: Sequence[Any],
        metrics: Mapping[str, int] | None = None,
    ) -> None:
        """The epoch of ``record`` is complete, but for ``stay``, which later epochs carry out."""
        if self._at is None or self._listeners is None:
            return
        decided_ms = self._decided_ms(record)
        self._tell(
            EpochComplete,
            rows=record.rows,
            changes=self._listeners.changes(committables, stay),
            began_ms=self._at.began_ms,
            decided_ms=decided_ms,
            visible_ms=decided_ms if self._at.visible_ms is None else self._at.visible_ms,
            metrics=dict(metrics or {}),
            offsets=record.offsets,
            schema=self._at.schema,
        )

    def swept(self, files: int) -> None:
        """``files`` hidden files were removed after the epoch at work."""
        if files and self._at is not None:
            self._tell(HiddenFilesSwept, files=files)

    @contextmanager
    def _around(self, attempt: _Attempt | None) -> Iterator[None]:
        """Another epoch may be completed while one is at work, which then goes on."""
        outer, self._at = self._at, attempt
        try:
            yield
        finally:
            self._at = outer

    def _new(self, cause: Cause) -> _Attempt:
        return _Attempt(run=self._ports.ids.uuid(), sink=self._sink_id, epoch=None, cause=cause)

    def _again(self, record: EpochRecord) -> _Attempt:
        found = replace(self._new(record.cause), epoch=record.slot, recovered=True)
        return replace(found, decided_ms=record.decided_ms)

    def _decided_ms(self, record: EpochRecord) -> int:
        """``decided_ms`` of a record is when its epoch began; a driver that decides knows better."""
        known = None if self._at is None else self._at.decided_ms
        return record.decided_ms if known is None else known

    def _failed(self, at: _Attempt, error: Exception) -> None:
        self._at = at
        self._tell(
            EpochFailed,
            error=type(error).__name__,
            code=error.code if isinstance(error, FilesinkError) else "",
            decided=at.decided_ms is not None,
            began_ms=at.began_ms,
        )

    def _tell(self, kind: type[SinkEvent], **values: Any) -> None:
        at, listeners = self._at, self._listeners
        if at is None or listeners is None:
            return
        batch = at.cause if isinstance(at.cause, MicroBatch) else None
        listeners.tell(
            kind(
                run=at.run,
                destination=listeners.destination,
                sink=at.sink,
                epoch=at.epoch,
                kind=kind_of(at.cause),
                query_id=None if batch is None else batch.query_id,
                batch_id=None if batch is None else batch.batch_id,
                recovered=at.recovered,
                at_ms=self._now(),
                **values,
            )
        )

    def _now(self) -> int:
        return self._ports.clock.now_ms()
