"""The life of a part file. The table is the code: nothing about states lives elsewhere.

    in-progress ──close──▶ pending ──publish──▶ finished
         │                    ▲
         └──hold──▶ held ──promote
    (in-progress, held and pending files may also be discarded; a finished one never is)

* in-progress: being written by one attempt of one task, under a hidden name.
* held: closed, durable, hidden, kept by the ledger's state for a later epoch.
* pending: closed, durable, hidden, to be published by the epoch that decides on it.
* finished: visible under its final name and never touched again. Publishing it again is a replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from filesink.errors import InternalError


class State(Enum):
    """Where a part file stands."""

    IN_PROGRESS = "in-progress"
    HELD = "held"
    PENDING = "pending"
    FINISHED = "finished"
    DISCARDED = "discarded"


class Event(Enum):
    """What may happen to a part file."""

    WRITE = "write"
    CLOSE = "close"
    HOLD = "hold"
    PROMOTE = "promote"
    PUBLISH = "publish"
    DISCARD = "discard"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.IN_PROGRESS: {
        Event.WRITE: State.IN_PROGRESS,
        Event.CLOSE: State.PENDING,
        Event.HOLD: State.HELD,
        Event.DISCARD: State.DISCARDED,
    },
    State.HELD: {Event.PROMOTE: State.PENDING, Event.DISCARD: State.DISCARDED},
    State.PENDING: {Event.PUBLISH: State.FINISHED, Event.DISCARD: State.DISCARDED},
    State.FINISHED: {Event.PUBLISH: State.FINISHED},
    State.DISCARDED: {Event.DISCARD: State.DISCARDED},
}


def advance(state: State, event: Event) -> State:
    """The state after ``event``; an illegal step is an error of this package, never of data."""
    following = TRANSITIONS[state].get(event)
    if following is None:
        raise InternalError(
            f"a {state.value} part file cannot {event.value}; please report this", code="ILLEGAL_STEP"
        )
    return following


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFileInfo:
    """What a rolling policy may know of the open part of a bucket. Flink's ``PartFileInfo``.

    ``size`` counts bytes, those still buffered by a columnar writer included; times are
    milliseconds of the driver's clock; ``rows`` counts records.
    """

    bucket_id: str
    size: int
    rows: int
    creation_time: int
    last_update_time: int
