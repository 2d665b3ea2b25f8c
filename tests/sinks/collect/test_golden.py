"""Paths that earlier code has left: today's client goes on in them, and today's driver completes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink.sinks.collect.marks import Run
from filesink.sinks.collect.position import CollectPosition
from tests.golden.states.archive import unpack
from tests.sinks.collect.frozen import ARCHIVES, DECIDED, EPOCHS, WAITING
from tests.sinks.collect.site import Site, ids


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """A copy of what was left."""
    unpack(request.param, tmp_path / "collected")
    return Site(tmp_path / "collected")


def told(site: Site) -> CollectPosition:
    """How far its client had acknowledged."""
    (place,) = site.marks().told().acknowledged.values()
    return place


def test_there_is_a_path_of_the_first_release() -> None:
    """It is read for ever."""
    assert ARCHIVES[0].name == "collected-1.tar.gz"


def test_what_was_told_is_known(left: Site) -> None:
    """How far the client was, and that a query runs."""
    assert (told(left).version, told(left).row) == (2, 2)
    assert left.marks().told().run is Run.BEGUN


def test_a_client_goes_on_where_it_was(left: Site) -> None:
    """From the text of its position, in the midst of an epoch; what is not visible yet is no row."""
    place = str(told(left))
    assert ids(left.new(place)) == WAITING
    left.sink().recover()
    assert ids(left.new(place)) == [*WAITING, *DECIDED]


def test_a_client_without_a_position_begins_at_what_is_needed(left: Site) -> None:
    """What was acknowledged does not come again."""
    assert ids(left.new()) == WAITING


def test_the_driver_that_comes_back_completes_the_epoch(left: Site) -> None:
    """The same batch writes nothing, the next one goes on, and what is acknowledged goes."""
    assert left.stream(3, *EPOCHS[3]).replayed
    left.stream(4, [8])
    results = left.new(str(told(left)))
    assert ids(results) == [*WAITING, *DECIDED, 8]
    results.acknowledge()
    left.loop().finish()
    assert left.files() == []


def test_a_query_that_was_begun_is_over_when_it_is_ended(left: Site) -> None:
    """By the number that earlier code gave it."""
    left.sink().recover()
    left.marks().end(left.marks().told().number, Run.ENDED, "")
    results = left.sink().results()
    assert ids(results) == [*WAITING, *DECIDED]
    assert results.is_complete
