"""Values of an epoch on the driver: what it works with, and what it is about to decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from filesink.api.metrics import Metrics
from filesink.ports import Clock, Ids, TaskRunner
from filesink.save_mode import SaveMode
from filesink.system import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa

StateT = TypeVar("StateT")
CommittableT = TypeVar("CommittableT")
AggregatedT = TypeVar("AggregatedT")


def always() -> bool:
    """``True``."""
    return True


class Input(Enum):
    """Whether an epoch may be followed by others."""

    GOES_ON = "goes on"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochContext:
    """The epoch a stage works for: its slot, the driver's time (ms), and whether input has ended.

    Attributes:
        sink_id: the same as ``WriterContext.sink_id``; ``slot`` is the same as ``WriterContext.epoch``.
        runner: runs larger pieces of work where there is room for them.
        waiting: what the aggregated committer has put off in earlier epochs.
        clock: for measuring and waiting only; decisions follow from ``now_ms``.
        metrics: what stages count; they are reported with those of the tasks.
        pressing: names of what must be whole after this epoch, such as buckets about to be announced.
            A stage adds them for later stages, which could otherwise keep pieces waiting.
        mode: the save mode of a batch write; all other epochs append.
        replaces: see ``EpochRecord``.
        supersedes: committables of an earlier write, which this one replaces.
        left: committables of earlier epochs that are still to be carried out; the record gets them as well.
        schema: columns of the input; ``None`` for an epoch without input.
        takes_over: whether all that readers see now goes between the tasks and the stages of this epoch.
        is_wanted: whether anybody still waits for this epoch. A stage that waits asks it about once a
            second, and raises ``TaskCancelledError`` if not: a query that was stopped waits for it.
    """

    sink_id: str
    slot: int
    now_ms: int
    input: Input
    ids: Ids
    runner: TaskRunner
    waiting: Sequence[Any] = ()
    clock: Clock = field(default_factory=SystemClock)
    metrics: Metrics = field(default_factory=Metrics)
    pressing: set[str] = field(default_factory=set)
    mode: SaveMode = SaveMode.APPEND
    replaces: Mapping[str, int] = field(default_factory=dict)
    supersedes: Sequence[Any] = ()
    left: Sequence[Any] = ()
    schema: pa.Schema | None = None
    takes_over: bool = False
    is_wanted: Callable[[], bool] = always


@dataclass(frozen=True, slots=True)
class Prepared(Generic[StateT, CommittableT]):
    """What an epoch is about to decide: committables, and states by subtask index."""

    committables: Sequence[CommittableT]
    states: Mapping[int, Sequence[StateT]]


@dataclass(frozen=True, slots=True)
class Announcements(Generic[AggregatedT]):
    """What an aggregated committer commits with this epoch, and what it puts off to a later one."""

    now: Sequence[AggregatedT] = ()
    later: Sequence[AggregatedT] = ()
