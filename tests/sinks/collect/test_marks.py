"""What client and query tell each other, whatever order it comes in."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.sinks.collect.marks import DIRECTORY, Marks, Run, Told
from filesink.sinks.collect.position import CollectPosition
from filesink.storage.memory import MemoryFiles, MemoryStore

PLACES = st.builds(
    CollectPosition, st.integers(0, 999), st.integers(0, 9), st.sampled_from(["aaaaaaaa", "bbbbbbbb"])
)


@given(st.lists(PLACES, max_size=8))
def test_the_farthest_acknowledgement_counts(places: list[CollectPosition]) -> None:
    """Of each inventory its own, in whatever order they came, and however often."""
    marks = Marks(MemoryStore(MemoryFiles()))
    for place in places:
        marks.acknowledge(place)
        marks.acknowledge(place)
    for inventory in ("aaaaaaaa", "bbbbbbbb"):
        own = [place for place in places if place.inventory == inventory]
        assert marks.told().upto(inventory) == max(own, default=CollectPosition(inventory=inventory))


@given(PLACES)
def test_a_position_is_its_text(place: CollectPosition) -> None:
    """To a client that keeps it in a table."""
    assert CollectPosition.of(str(place)) == place


def test_the_newest_query_counts() -> None:
    """An old driver that wakes says nothing of it."""
    marks = Marks(MemoryStore(MemoryFiles()))
    assert marks.told().run is Run.NONE
    first = marks.begin()
    assert marks.told().run is Run.BEGUN
    second = marks.begin()
    marks.end(first, Run.FAILED)
    assert (marks.told().number, marks.told().run) == (second, Run.BEGUN)
    marks.end(second, Run.ENDED)
    assert marks.told().run is Run.ENDED
    assert marks.begin() == second + 1
    assert marks.told().run is Run.BEGUN


def test_a_query_that_is_refused_was_none() -> None:
    """Clients of the one that runs hear of that one; the next one has a number of its own."""
    marks = Marks(MemoryStore(MemoryFiles()))
    running = marks.begin()
    refused = marks.begin()
    marks.end(refused, Run.REFUSED)
    assert (marks.told().number, marks.told().run) == (running, Run.BEGUN)
    again = marks.begin()
    marks.end(again, Run.REFUSED)
    assert again > refused
    assert (marks.told().number, marks.told().run) == (running, Run.BEGUN)
    marks.end(running, Run.ENDED)
    assert marks.told().run is Run.ENDED
    last = marks.begin()
    marks.end(last, Run.FAILED)
    assert (marks.told().number, marks.told().run) == (last, Run.FAILED)


def test_marks_of_queries_do_not_grow_in_number() -> None:
    """However many there were, and however many of them were refused."""
    store = MemoryStore(MemoryFiles())
    marks = Marks(store)
    for number in range(30):
        marks.end(marks.begin(), Run.REFUSED if number % 3 else Run.ENDED)
    assert len(store.list(DIRECTORY)) < 10


def test_queries_that_begin_at_the_same_moment_have_numbers_of_their_own() -> None:
    """Each has looked before the other one began."""
    store = MemoryStore(MemoryFiles())
    ours, theirs = Marks(store), Marks(store)
    old = ours.told()
    theirs.begin()
    ours.told = lambda: old  # type: ignore[method-assign]
    assert ours.begin() == 1
    assert Marks(store).told().number == 1


@pytest.mark.parametrize("seed", range(5))
def test_names_of_others_tell_nothing(seed: int) -> None:
    """Nor those of files that are being put, in whatever order they are listed."""
    names = ["000000000003.begun", "000000000002.ended", ".000000000009.begun.x", "4.begun", "x", "",
             "000000000001-000000000000002-abcdef01.acknowledged", "1-2-abcdef01.acknowledged"]  # fmt: skip
    random.Random(seed).shuffle(names)  # noqa: S311 - an order
    told = Told.by(names)
    assert (told.number, told.run) == (3, Run.BEGUN)
    assert told.acknowledged == {"abcdef01": CollectPosition(1, 2, "abcdef01")}
