"""A query waits for its client, and removes what the client has acknowledged."""

from __future__ import annotations

import pytest

from filesink import DeliveryError, TaskCancelledError
from filesink.ledger.identity import COLLECTED, append_sink_id
from filesink.ledger.record import BatchWrite
from tests.contracts.sink_site import Death, DyingSink, Killed, Moment, Tier
from tests.fakes import micro_batch
from tests.sinks.collect.site import Site, SteppingClock, ids, in_turn, rows


@pytest.fixture
def full(site: Site) -> Site:
    """A path in which there is room for one epoch; nobody has taken it."""
    site.options = {"max_buffered_bytes": 1, "client_timeout": "20 s"}
    site.clock = SteppingClock()
    site.stream(0, [1])
    return site


def test_an_epoch_waits_until_its_client_has_taken_the_last_one(full: Site) -> None:
    """And what was acknowledged is removed by that epoch."""
    taken: list[int] = []
    full.clock.meanwhile = in_turn(lambda: None, lambda: taken.extend(take(full)))
    full.stream(1, [2])
    assert taken == [1]
    assert len(full.files()) == 1
    assert ids(full.new()) == [2]


def take(site: Site) -> list[int]:
    """A client that takes what is there, and acknowledges it."""
    results = site.new()
    found = ids(results)
    results.acknowledge()
    return found


def test_a_client_that_is_slow_is_waited_for(full: Site) -> None:
    """As long as it acknowledges anything now and then, also parts of an epoch."""
    site = full
    take(site)
    site.stream(1, range(10, 20))
    results, calls = site.new(), 0

    def meanwhile() -> None:
        nonlocal calls
        calls += 1
        site.clock.now += 15_000
        if next(results, None) is not None:
            results.acknowledge()

    site.clock.meanwhile = meanwhile
    site.stream(2, [3])
    assert calls == 10
    assert ids(site.new()) == [3]


def test_without_a_client_an_epoch_fails_after_a_while(full: Site) -> None:
    """Nothing of it was written, and it can be repeated."""
    with pytest.raises(DeliveryError, match="none has acknowledged anything") as raised:
        full.stream(1, [2])
    assert raised.value.code == "BUFFER_FULL"
    assert 20_000 <= full.clock.now <= 21_000
    assert take(full) == [1]
    full.stream(1, [2])
    assert take(full) == [2]


def test_a_query_that_is_stopped_waits_no_longer(full: Site) -> None:
    """Its batch is repeated when it is started again."""
    answers = iter([True, True, False])
    with pytest.raises(TaskCancelledError) as raised:
        full.stream(1, [2], wanted=lambda: next(answers))
    assert raised.value.code == "STOPPED"
    assert full.clock.now < 20_000


def test_a_batch_write_waits_as_well(full: Site) -> None:
    """For room, and not for its own rows."""
    full.clock.meanwhile = lambda: take(full)
    full.batch([2], [3])
    assert sorted(take(full)) == [2, 3]


def test_upkeep_and_the_end_remove_what_is_acknowledged(site: Site) -> None:
    """Without data, and without waiting for room; once."""
    site.stream(0, [1])
    site.stream(1, [2])
    loop = site.loop()
    assert loop.upkeep() is None
    results = site.new()
    next(results)
    results.acknowledge()
    assert loop.upkeep() is not None
    assert loop.upkeep() is None
    assert len(site.files()) == 1
    take(site)
    assert site.loop().finish() is not None
    assert site.files() == []
    assert site.loop().finish() is None
    assert ids(site.new()) == []
    site.stream(2, [3])
    assert ids(site.new()) == [3]


def test_the_disk_is_bounded_by_the_buffer(site: Site) -> None:
    """However long a stream is, while its client acknowledges."""
    for number in range(15):
        site.stream(number, [number])
        assert take(site) == [number]
        assert len(site.files()) <= 2


def test_rows_whose_driver_has_died_stay_until_it_is_done(site: Site) -> None:
    """A client sees an epoch before it is complete, and may acknowledge it at once."""
    driver = site.loop(append_sink_id(COLLECTED))
    driver._chain.publisher._ledger.complete = dies  # type: ignore[method-assign]
    with pytest.raises(Killed):
        driver.run(BatchWrite(writer="batch-00000000-0000-4000-8000-000000000000"), site.job([[rows(1)]]))
    assert take(site) == [1]
    site.stream(0, [2])
    assert len(site.files()) == 2
    assert [report.rows for report in site.sink().recover()] == [1]
    site.stream(1, [3])
    assert len(site.files()) == 2
    assert ids(site.new()) == [2, 3]


def dies(*_: object, **__: object) -> None:
    """The end of a driver."""
    raise Killed


def test_a_driver_that_dies_while_it_removes(site: Site) -> None:
    """Another one removes the same, and no row comes again."""
    site.stream(0, [1])
    assert take(site) == [1]
    tiers = site.sink()._sink
    driver = site.loop()
    dying = DyingSink(tiers, Death(Tier.COMMITTER, Moment.BEFORE))
    driver._chain.publisher._committer = dying.create_committer()
    with pytest.raises(Killed):
        driver.run(micro_batch(1), site.job([[rows(2)]]))
    assert ids(site.new()) == []
    site.stream(2, [3])
    assert len(site.files()) == 2
    assert ids(site.new()) == [2, 3]


def test_a_new_driver_counts_what_is_there(full: Site) -> None:
    """What waits, and what was acknowledged while no query ran."""
    take(full)
    full.stream(1, [2])
    take(full)
    full.clock.meanwhile = dies
    full.stream(2, [3])
    assert len(full.files()) == 1
