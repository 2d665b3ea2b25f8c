"""Savepoints: copies of the checkpoints of a job that has ended, each with the version that belongs to it.

    <path>/<job id>/savepoints/<number>                  what one has, a chain without gaps
    <path>/<job id>/saved/<random>/<sink>/<checkpoint>/  the copies

Rules:
1. The record comes last: a savepoint that has one is whole, and is never changed.
2. To go back to it is a new stream: its checkpoint is copied once more, under a new query id, into a
   directory of its own, since the old stream's ledger rightly says that its later epochs were decided.
3. Nothing is taken back before it is known of every sink that it can be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from filesink.errors import JobError, StateCorruptError
from filesink.jobs.life.store import JobStore
from filesink.ports import Clock, Ids

_NAME = "savepoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """One stream of a savepoint.

    Attributes:
        sink: the id of its vertex.
        checkpoint: the directory of its checkpoint, below that of the sink.
        path: the base path of the files that it writes; ``""`` if it writes none.
        version: of the inventory there; ``None`` if there was none.
        batch: the newest micro-batch of the copy; -1 for none.
        is_idle: whether no micro-batch was at work.
        copy: where the copy is, below ``saved``.
    """

    sink: str
    checkpoint: str
    path: str = ""
    version: int | None = None
    batch: int = -1
    is_idle: bool = True
    copy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """Where a job can go back to.

    Attributes:
        number: 0, 1, 2 …
        at_ms: milliseconds since 1970 UTC.
    """

    number: int
    at_ms: int
    streams: tuple[Saved, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoints:
    """Those of one job. Only who holds its lease may save and bring back."""

    store: JobStore
    job: str

    def list(self) -> list[Savepoint]:
        """All, in their order."""
        found = self.store.chain(self.job, _NAME)
        return [_of(number, value) for number, value in enumerate(found)]

    def find(self, number: int) -> Savepoint:
        """One of them.

        Raises:
            JobError: ``JOB_SAVEPOINT``; there is none of this number.
        """
        known = self.list()
        if not 0 <= number < len(known):
            there = f"there are 0 to {len(known) - 1}" if known else "it has none"
            raise JobError(f"job '{self.job}' has no savepoint {number}; {there}", code="JOB_SAVEPOINT")
        return known[number]

    def save(self, streams: Sequence[Saved], directories: Mapping[str, str], clock: Clock, ids: Ids) -> int:
        """Copy the checkpoints of streams that have ended; returns the number of the savepoint."""
        number, place = self.store.last(self.job, _NAME)[0] + 1, ids.uuid()
        found = [self._copied(replace(one, copy=place), directories) for one in streams]
        value = {"at_ms": clock.now_ms(), "streams": [asdict(one) for one in found]}
        if not self.store.append(self.job, _NAME, number, value):
            raise JobError(f"job '{self.job}' was taken over by another process", code="JOB_TAKEN")
        return number

    def _copied(self, one: Saved, directories: Mapping[str, str]) -> Saved:
        live = self._live(one, directories)
        self.store.copy(self.job, live, self._kept(one))
        begun, done = self._newest(f"{live}/offsets"), self._newest(f"{live}/commits")
        return replace(one, batch=begun, is_idle=begun == done)

    def newer(self, savepoint: Savepoint, directories: Mapping[str, str]) -> dict[str, int]:
        """How many micro-batches sinks have begun since, by their ids; those without one are left out.

        One at least for a sink that was brought back to an older savepoint, and has gone on from there: its
        batches are others of the same numbers.
        """
        found: dict[str, int] = {}
        for one in savepoint.streams:
            live = self._live(one, directories)
            since = self._newest(f"{live}/offsets") - one.batch
            if since or not self._is_same(one, live):
                found[one.sink] = max(found.get(one.sink, 1), since)
        return found

    def _is_same(self, one: Saved, live: str) -> bool:
        """Whether the newest batch of a savepoint is that of the stream; Spark writes the time into it."""
        files = (f"{place}/offsets/{one.batch}" for place in (live, self._kept(one)))
        there, kept = (self.store.read(self.job, file) for file in files)
        return there == kept

    def bring_back(self, savepoint: Savepoint, sink: str, ids: Ids) -> str:
        """Copy the checkpoints of a sink into a new directory, as those of new streams; returns its name."""
        name = f"{sink}-{ids.uuid()}"
        for one in savepoint.streams:
            if one.sink == sink:
                metadata = json.dumps({"id": ids.uuid()}).encode()
                target = f"run/{name}/{one.checkpoint}"
                self.store.copy(self.job, self._kept(one), target, instead={"metadata": metadata})
        return name

    def queries(self, sink: str) -> frozenset[str]:
        """The ids of all streaming queries that a sink has had, those before it was brought back as well."""
        metadata = (
            self.store.read(self.job, f"run/{name}/{checkpoint}/metadata")
            for name in self.store.names(self.job, "run")
            if name == sink or name.startswith(f"{sink}-")
            for checkpoint in self.store.names(self.job, f"run/{name}")
        )
        return frozenset(json.loads(one)["id"] for one in metadata if one is not None)

    @staticmethod
    def _kept(one: Saved) -> str:
        return f"saved/{one.copy}/{one.sink}/{one.checkpoint}"

    @staticmethod
    def _live(one: Saved, directories: Mapping[str, str]) -> str:
        return f"run/{directories.get(one.sink, one.sink)}/{one.checkpoint}"

    def _newest(self, directory: str) -> int:
        return max(
            (int(name) for name in self.store.names(self.job, directory) if name.isdigit()), default=-1
        )


def _of(number: int, value: Mapping[str, Any]) -> Savepoint:
    try:
        streams = tuple(Saved(**one) for one in value["streams"])
        return Savepoint(number=number, at_ms=value["at_ms"], streams=streams)
    except (KeyError, TypeError):
        raise StateCorruptError("a record in the store of jobs is no savepoint", code="JSON") from None
