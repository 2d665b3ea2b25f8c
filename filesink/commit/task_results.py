"""The results of all tasks of an epoch, taken together with what the ledger kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from filesink.api import Prepared, Sink
from filesink.commit.task import TaskResult, decode_states
from filesink.errors import InternalError
from filesink.ledger.head import Head
from filesink.ledger.record import Section
from filesink.ports import Losers

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(Generic[S, C]):
    """What the tasks of an epoch reported.

    Attributes:
        prepared: committables of the tasks and the states of all subtasks, those that did not run
            included; what the stages start from.
        reported: the committables as the tasks reported them; what may be discarded.
        digest: of their input, see ``ports.WriteJob.digest``.
    """

    prepared: Prepared[S, C]
    reported: Sequence[C] = ()
    rows: int = 0
    metrics: Mapping[str, int] = field(default_factory=dict)
    losers: Losers = Losers.NONE
    digest: str = ""


def gather(
    sink: Sink[S, C, A],
    kept: Mapping[int, Section],
    results: Sequence[bytes],
    losers: Losers,
    *,
    sink_id: str,
) -> Gathered[S, C]:
    """Decode the results, in the order of their partitions.

    Args:
        sink: whose codecs are used.
        kept: the states in the last record.
        results: one per partition; there may be none, when Spark has optimised an empty input away.
        losers: whether twins may have run; a result of a later attempt says so too.
        sink_id: whose tag is in the names of what they wrote.

    Raises:
        StateError, SecurityError: a result is damaged, or names what no task of ours has written.
    """
    parsed = sorted((TaskResult.from_bytes(data) for data in results), key=lambda result: result.subtask)
    if len({result.subtask for result in parsed}) != len(parsed):
        raise InternalError("two results for one partition; please report this", code="TWO_RESULTS")
    committables: list[C] = []
    for result in parsed:
        found = result.committables.decode(sink.committable_codec)
        states = {result.subtask: decode_states(sink, result.state)}
        sink.check_reported(Prepared(found, states), sink_id=sink_id)
        committables += found
    return Gathered(
        prepared=Prepared(committables, states_of(sink, kept, parsed)),
        reported=tuple(committables),
        rows=sum(result.rows for result in parsed),
        metrics=_added_up(parsed),
        losers=Losers.POSSIBLE if any(result.attempt for result in parsed) else losers,
    )


def _added_up(results: Sequence[TaskResult]) -> dict[str, int]:
    metrics: dict[str, int] = {}
    for result in results:
        for name, value in result.metrics.items():
            metrics[name] = metrics.get(name, 0) + value
    return metrics


def kept_by(head: Head | None) -> Mapping[int, Section]:
    """The states in the newest record."""
    return {} if head is None else head.record.states


def states_of(
    sink: Sink[S, C, A], kept: Mapping[int, Section], results: Sequence[TaskResult] = ()
) -> dict[int, Sequence[S]]:
    """States by subtask: a task that ran replaces its own, all others are carried on."""
    sections = {**kept, **{result.subtask: result.state for result in results}}
    states = {subtask: decode_states(sink, section) for subtask, section in sections.items()}
    return {subtask: values for subtask, values in states.items() if values}
