"""A destination under test, looked at from outside, and drivers of its sink that die at any moment.

Everything runs in this process, but as it would in several: each driver is a new one, and each task gets a
sink that has been through bytes.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from filesink.api import Sink, SinkWriter
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.commit.task import WriteTask
from filesink.ledger.identity import append_sink_id, stream_sink_id
from filesink.ledger.record import BatchWrite, Cause
from filesink.ports import Losers, Ports, SerialRunner
from filesink.system import SystemClock, SystemIds
from tests.fakes import QUERY, micro_batch


class SinkSite(ABC):
    """Where a sink writes to. Records are told by a number, in a column ``id``."""

    @abstractmethod
    def sink(self) -> Sink[Any, Any, Any]:
        """The sink, as another process would make it, with ``uid``."""

    def batch(self, ids: Sequence[int]) -> pa.RecordBatch:
        """Records with these numbers, and whatever else the sink needs."""
        return pa.record_batch({"id": pa.array(ids, pa.int64())})

    @abstractmethod
    def arrived(self) -> list[int]:
        """The numbers of all records that can be seen, as often as they are there; not asked of the sink."""

    def announced(self) -> list[int] | None:
        """Slots that the aggregated committer has announced; ``None`` for a sink that has none."""
        return None


class Tier(Enum):
    """Whose ``commit`` a driver dies in."""

    COMMITTER = "committer"
    AGGREGATED = "aggregated committer"


class Moment(Enum):
    """Whether it has done its work by then."""

    BEFORE = "before"
    AFTER = "after"


class Killed(BaseException):
    """The end of a process: nobody handles it."""


@dataclass(frozen=True)
class Death:
    """When a driver dies, once."""

    tier: Tier
    moment: Moment


@dataclass
class ContractJob:
    """Runs the tasks of an epoch one after the other; implements ``filesink.ports.WriteJob``.

    ``lost`` first makes an attempt of each task that does all its work and is killed before it has reported;
    ``dies`` kills the driver when all tasks have reported.
    """

    partitions: Sequence[Iterable[pa.RecordBatch]]
    schema: pa.Schema
    run_id: str
    lost: bool = False
    dies: bool = False
    time_zone: str = "UTC"
    offsets: str = ""
    abandoned: list[SinkWriter[Any, Any]] = field(default_factory=list)

    def write(self, task: Any) -> list[bytes]:
        work: WriteTask[Any, Any, Any] = task.__self__
        work = replace(work, sink=pickle.loads(cloudpickle.dumps(work.sink)))  # noqa: S301 - our own bytes
        results = []
        for subtask, batches in enumerate(self.partitions):
            if self.lost:
                batches = list(batches)  # noqa: PLW2901 - both attempts get the same
                self._abandon(work, subtask, batches)
            results.append(work.run(subtask, int(self.lost), batches))
        if self.dies:
            raise Killed
        return results

    def _abandon(
        self, work: WriteTask[Any, Any, Any], subtask: int, batches: Sequence[pa.RecordBatch]
    ) -> None:
        context = work._context(subtask, 0, clock=SystemClock(), ids=SystemIds())
        writer = work._writer(context)
        self.abandoned.append(writer)
        for batch in batches:
            writer.write(batch, context)
        writer.prepare_commit(work.slot)
        writer.snapshot_state(work.slot)

    def count_rows(self) -> int:
        return sum(batch.num_rows for batches in self.partitions for batch in batches)

    def digest(self) -> str:
        return ""

    def losers(self) -> Losers:
        return Losers.NONE

    def is_wanted(self) -> bool:
        return True


class DyingSink:
    """A sink whose driver dies in a ``commit``; tasks get the real one."""

    def __init__(self, sink: Sink[Any, Any, Any], death: Death) -> None:
        self._sink = sink
        self._death = death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _itself, (self._sink,)

    def create_committer(self) -> Any:
        return self._dying(self._sink.create_committer(), Tier.COMMITTER)

    def create_aggregated_committer(self) -> Any:
        return self._dying(self._sink.create_aggregated_committer(), Tier.AGGREGATED)

    def _dying(self, committer: Any, tier: Tier) -> Any:
        if committer is None or tier is not self._death.tier:
            return committer
        return _Dying(committer, self._death.moment)


class _Dying:
    """A committer that dies."""

    def __init__(self, committer: Any, moment: Moment) -> None:
        self._committer = committer
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._committer, name)

    def commit(self, values: Sequence[Any]) -> list[Any]:
        if self._moment is Moment.AFTER:
            assert self._committer.commit(values) == []
        raise Killed


def _itself(sink: Any) -> Any:
    return sink


class Drivers:
    """Drivers of the sink of a site; each call is one of its own, which knows nothing of the others."""

    def __init__(self, site: SinkSite) -> None:
        self._site = site
        self._ids = SystemIds()
        self._abandoned: list[SinkWriter[Any, Any]] = []
        site.sink().prepare(self._schema())

    def stream(self, batch_id: int, *partitions: Iterable[pa.RecordBatch], **faults: Any) -> Outcome[Any]:
        """A micro-batch of the one query."""
        return self._run(micro_batch(batch_id), self._stream_id, partitions, faults)

    def batch(self, *partitions: Iterable[pa.RecordBatch], **faults: Any) -> Outcome[Any]:
        """A batch write."""
        cause = BatchWrite(writer=f"batch-{self._ids.uuid()}")
        return self._run(cause, append_sink_id(self._site.sink().uid), partitions, faults)

    def finish(self, *, death: Death | None = None) -> None:
        """The end of the stream: everything becomes visible."""
        self._loop(self._sink(death), self._stream_id).finish()

    def recover(self) -> None:
        """What an operator does."""
        self._loop(self._sink(None), self._stream_id).recover()

    def close(self) -> None:
        """What the end of a process does for its attempts."""
        for writer in self._abandoned:
            with suppress(Exception):
                writer.close()

    def _run(
        self,
        cause: Cause,
        sink_id: str,
        partitions: Sequence[Iterable[pa.RecordBatch]],
        faults: dict[str, Any],
    ) -> Outcome[Any]:
        sink = self._sink(faults.pop("death", None))
        run_id = self._ids.uuid() if not isinstance(cause, BatchWrite) else ""
        job = ContractJob(partitions, self._schema(), run_id, **faults, abandoned=self._abandoned)
        return self._loop(sink, sink_id).run(cause, job)

    @property
    def _stream_id(self) -> str:
        return stream_sink_id(self._site.sink().uid, QUERY)

    def _sink(self, death: Death | None) -> Any:
        return self._site.sink() if death is None else DyingSink(self._site.sink(), death)

    def _loop(self, sink: Any, sink_id: str) -> EpochLoop[Any, Any, Any]:
        ports = Ports(clock=SystemClock(), ids=self._ids, runner=SerialRunner())
        return EpochLoop(sink, sink.open_ledger(sink_id), ports=ports, options=EpochOptions())

    def _schema(self) -> pa.Schema:
        return self._site.batch([0]).schema


def breaking(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """An input that breaks at its end."""
    yield from batches
    raise RuntimeError("the source broke")
