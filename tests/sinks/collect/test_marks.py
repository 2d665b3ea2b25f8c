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
    first = marks.begin("r")
    assert marks.told().run is Run.BEGUN
    second = marks.begin("r")
    marks.end(first, Run.FAILED, "r")
    assert (marks.told().number, marks.told().run) == (second, Run.BEGUN)
    marks.end(second, Run.ENDED, "r")
    assert marks.told().run is Run.ENDED
    assert marks.begin("r") == second + 1
    assert marks.told().run is Run.BEGUN


def test_a_query_that_is_refused_was_none() -> None:
    """Clients of the one that runs hear of that one; the next one has a number of its own."""
    marks = Marks(MemoryStore(MemoryFiles()))
    running = marks.begin("r")
    refused = marks.begin("r")
    marks.end(refused, Run.REFUSED, "r")
    assert (marks.told().number, marks.told().run) == (running, Run.BEGUN)
    again = marks.begin("r")
    marks.end(again, Run.REFUSED, "r")
    assert again > refused
    assert (marks.told().number, marks.told().run) == (running, Run.BEGUN)
    marks.end(running, Run.ENDED, "r")
    assert marks.told().run is Run.ENDED
    last = marks.begin("r")
    marks.end(last, Run.FAILED, "r")
    assert (marks.told().number, marks.told().run) == (last, Run.FAILED)


def test_of_many_that_only_began_any_may_count() -> None:
    """Two are refused while one runs, in whatever order they came and went."""
    marks = Marks(MemoryStore(MemoryFiles()))
    running = marks.begin("a")
    others = [marks.begin("b"), marks.begin("c")]
    for number, run in zip(others, "bc", strict=True):
        marks.end(number, Run.REFUSED, run)
    assert (marks.told().number, marks.told().run) == (running, Run.BEGUN)


def test_a_path_that_was_begun_anew_hears_nothing_of_the_query_before() -> None:
    """It has the same number, and is another one."""
    files = MemoryFiles()
    old = Marks(MemoryStore(files))
    number = old.begin("a")
    anew = Marks(MemoryStore(MemoryFiles()))
    assert anew.begin("b") == number
    for how in (Run.REFUSED, Run.FAILED, Run.ENDED):
        anew.end(number, how, "a")
        assert anew.told().run is Run.BEGUN
    anew.end(number, Run.FAILED, "b")
    assert anew.told().run is Run.FAILED


STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["begin", "refused", "failed", "ended"])), max_size=14
)


@given(STEPS)
def test_the_newest_that_was_one_counts_whatever_the_order(steps: list[tuple[int, str]]) -> None:
    """Six drivers, each of which begins once and may never say how it ended."""
    marks = Marks(MemoryStore(MemoryFiles()))
    numbers: dict[int, int] = {}
    said: dict[int, Run] = {}
    for driver, step in steps:
        if step == "begin" and driver not in numbers:
            numbers[driver] = marks.begin(str(driver))
            said[driver] = Run.BEGUN
        elif step != "begin" and said.get(driver) is Run.BEGUN:
            said[driver] = Run(step)
            marks.end(numbers[driver], said[driver], str(driver))
        counting = [driver for driver in numbers if said[driver] is not Run.REFUSED]
        newest = max(counting, key=numbers.__getitem__, default=None)
        assert marks.told().run is (Run.NONE if newest is None else said[newest])


def test_marks_of_queries_do_not_grow_in_number() -> None:
    """However many there were, and however many of them were refused."""
    store = MemoryStore(MemoryFiles())
    marks = Marks(store)
    for number in range(30):
        marks.end(marks.begin("r"), Run.REFUSED if number % 3 else Run.ENDED, "r")
    assert len(store.list(DIRECTORY)) < 10


def test_queries_that_begin_at_the_same_moment_have_numbers_of_their_own() -> None:
    """Each has looked before the other one began."""
    store = MemoryStore(MemoryFiles())
    ours, theirs = Marks(store), Marks(store)
    old = ours.told()
    theirs.begin("r")
    ours.told = lambda: old  # type: ignore[method-assign]
    assert ours.begin("r") == 1
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
