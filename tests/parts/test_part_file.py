"""The life of a part file: every step that is in the table, and none that is not."""

from __future__ import annotations

import itertools

import pytest

from filesink.errors import InternalError
from filesink.parts.part_file import TRANSITIONS, Event, State, advance

LEGAL = {
    (State.IN_PROGRESS, Event.WRITE): State.IN_PROGRESS,
    (State.IN_PROGRESS, Event.CLOSE): State.PENDING,
    (State.IN_PROGRESS, Event.HOLD): State.HELD,
    (State.IN_PROGRESS, Event.DISCARD): State.DISCARDED,
    (State.HELD, Event.PROMOTE): State.PENDING,
    (State.HELD, Event.DISCARD): State.DISCARDED,
    (State.PENDING, Event.PUBLISH): State.FINISHED,
    (State.PENDING, Event.DISCARD): State.DISCARDED,
    (State.FINISHED, Event.PUBLISH): State.FINISHED,
    (State.DISCARDED, Event.DISCARD): State.DISCARDED,
}


@pytest.mark.parametrize(("state", "event"), LEGAL)
def test_legal_steps(state, event):
    """Each legal step leads where the picture says."""
    assert advance(state, event) is LEGAL[state, event]


@pytest.mark.parametrize(
    ("state", "event"), [step for step in itertools.product(State, Event) if step not in LEGAL]
)
def test_illegal_steps(state, event):
    """Every other step is one sentence with state and event."""
    with pytest.raises(InternalError, match=f"a {state.value} part file cannot {event.value}") as raised:
        advance(state, event)
    assert raised.value.code == "ILLEGAL_STEP"


def test_every_state_is_in_the_table():
    """Terminal states are present."""
    assert set(TRANSITIONS) == set(State)


def test_a_finished_file_is_never_touched():
    """The only thing that may happen to a finished file is to be published again."""
    assert set(TRANSITIONS[State.FINISHED]) == {Event.PUBLISH}
