"""The states of jobs and pipelines, under Zeta's names, and every step between them, as tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from filesink.errors import JobError


class State(StrEnum):
    """Of a pipeline or of a job."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    DOING_SAVEPOINT = "DOING_SAVEPOINT"
    FAILING = "FAILING"
    CANCELING = "CANCELING"
    SAVEPOINT_DONE = "SAVEPOINT_DONE"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"


_OVER: Final[frozenset[State]] = frozenset()
#: Where a pipeline may go. One that failed is scheduled again as often as ``job.retry.times`` says.
PIPELINE: Final[dict[State, frozenset[State]]] = {
    State.CREATED: frozenset({State.SCHEDULED, State.CANCELED}),
    State.SCHEDULED: frozenset({State.INITIALIZING, State.CANCELED}),
    State.INITIALIZING: frozenset({State.RUNNING, State.FAILING, State.CANCELING}),
    State.RUNNING: frozenset({State.FINISHED, State.FAILING, State.CANCELING, State.DOING_SAVEPOINT}),
    State.DOING_SAVEPOINT: frozenset({State.SAVEPOINT_DONE, State.FAILING, State.CANCELING}),
    State.FAILING: frozenset({State.SCHEDULED, State.FAILED, State.CANCELING}),
    State.CANCELING: frozenset({State.CANCELED}),
    State.SAVEPOINT_DONE: frozenset({State.SCHEDULED}),  # by restore, as the following
    State.FAILED: frozenset({State.SCHEDULED}),
    State.CANCELED: frozenset({State.SCHEDULED}),
    State.FINISHED: _OVER,
}
#: Where a job may go.
JOB: Final[dict[State, frozenset[State]]] = {
    State.CREATED: frozenset({State.RUNNING, State.CANCELED, State.FAILED}),
    State.RUNNING: frozenset(
        {
            State.FINISHED,
            State.FAILED,
            State.CANCELING,
            State.CANCELED,
            State.DOING_SAVEPOINT,
            State.SAVEPOINT_DONE,
        }
    ),
    State.DOING_SAVEPOINT: frozenset(
        {State.SAVEPOINT_DONE, State.FAILED, State.CANCELING, State.CANCELED, State.FINISHED}
    ),
    State.CANCELING: frozenset({State.CANCELED, State.FINISHED, State.FAILED, State.SAVEPOINT_DONE}),
    State.SAVEPOINT_DONE: frozenset({State.RUNNING}),
    State.FAILED: frozenset({State.RUNNING}),
    State.CANCELED: frozenset({State.RUNNING}),
    State.FINISHED: _OVER,
    State.SCHEDULED: _OVER,  # only pipelines
    State.INITIALIZING: _OVER,
    State.FAILING: _OVER,
}
#: States in which nothing runs.
ENDED: Final = frozenset({State.FINISHED, State.FAILED, State.CANCELED, State.SAVEPOINT_DONE})


def step(table: dict[State, frozenset[State]], before: State, after: State, of: str) -> State:
    """``after``, if it may follow ``before``.

    Raises:
        JobError: ``JOB_STATE``.
    """
    if after not in table[before]:
        allowed = ", ".join(sorted(table[before])) or "nothing"
        raise JobError(f"{of} is {before}, which {allowed} may follow, and not {after}", code="JOB_STATE")
    return after


def together(pipelines: list[State]) -> State:
    """The state of a job whose pipelines have all ended."""
    for state in (State.FAILED, State.CANCELED, State.SAVEPOINT_DONE):
        if state in pipelines:
            return state
    return State.FINISHED
