"""Retention as an epoch: beside writers, killed, and by two at a time."""

from __future__ import annotations

import pytest

from filesink.errors import CleanupError, ConcurrentDriverError, StateCorruptError, StateError, StorageError
from filesink.operations.changes import _removed
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.ports import Ports
from filesink.storage.faulty import Fault, Moment
from tests.fakes import micro_batch, records
from tests.operations.replacing.worlds import DAY_MS, Days, Killed, kills, written

NEWEST = "_filesink/uid-u/000000000002"
KEEP_TWO = Retention(by="partition time", extractor="$day", keep=2)


def of(world: Days, retention: Retention = KEEP_TWO) -> Retain:
    """The operation on a world."""
    return Retain(tiers=world.tiers(), retention=retention, base_path="/base")


def test_old_directories_go():
    """All readers see the rest; the plan has said it and touched nothing; a second call finds nothing."""
    world = written(1, 2, 3, 4)
    before = world.contents()
    plan = of(world).plan(world.clock)
    assert [(one.bucket, one.files, one.rows, one.left) for one in plan.dropped] == [
        ("day=2026-01-01", 1, 1, 0),
        ("day=2026-01-02", 1, 1, 0),
    ]
    assert world.contents() == before
    outcome = of(world).run(world.ports())
    assert outcome is not None
    assert world.live() == ["3", "4"]
    world.check()
    assert [epoch.kind for epoch in world.directory().epochs()][-1] == "retain"
    assert of(world).run(world.ports()) is None


def test_files_go_by_age():
    """By the time of the store; a younger one of the same directory stays, and the plan says how many."""
    world = written(1, 2)
    world.append("again", bucket="day=2026-01-01")
    plan = of(world, Retention(max_age="1 day")).plan(world.clock)
    assert [(one.bucket, one.files, one.left) for one in plan.dropped] == [("day=2026-01-01", 1, 1)]
    of(world, Retention(max_age="1 day")).run(world.ports())
    assert world.live() == ["2", "again"]
    world.check()


def test_a_clock_that_is_ahead_drops_nothing_young():
    """The store's clock is asked, too."""
    world = written(1, 2)
    store_now = world.clock.now
    world.files.now_ms = lambda: store_now
    world.clock.now += 365 * DAY_MS
    assert of(world, Retention(max_age="7 days")).run(world.ports()) is None
    assert world.live() == ["1", "2"]


def test_what_a_stranger_has_put_there_stays():
    """Nobody knows what it is."""
    world = written(1, 2, 3)
    world.store().put_if_absent("day=2026-01-01/by-hand.txt", b"by hand\n")
    of(world).run(world.ports())
    assert "day=2026-01-01/by-hand.txt" in world.visible()
    assert world.live() == ["2", "3"]


def test_a_stream_goes_on_and_repeats_its_batch():
    """Neither its state nor its batches are touched: what was dropped does not come back with a replay."""
    world = written(1, 2, 3)
    driver = world.driver()
    of(world).run(world.ports())
    driver.run(micro_batch(3, query_id="query-u"), world.job(records("4", bucket="day=2026-01-04")))
    again = world.driver().run(
        micro_batch(3, query_id="query-u"), world.job(records("4", bucket="day=2026-01-04"))
    )
    assert again.replayed
    assert world.live() == ["2", "3", "4"]
    world.check()


@pytest.mark.parametrize("operation", ["publish", "release", "put_if_absent"])
def test_a_file_that_its_driver_still_looks_for_stays(operation: str):
    """A driver has died after its epoch was decided, at any step: it goes on, and finds its file."""
    made = written(1)
    world = Days(clock=made.clock)
    seen = 0

    def fault(called: str, path: str):
        nonlocal seen
        if called != operation or (called == "put_if_absent" and not path.endswith(".complete")):
            return None
        seen += 1
        return Fault(moment=Moment.BEFORE, error=Killed())

    world.write(5, 6)
    world.fault = fault
    with pytest.raises(Killed):
        world.append("old", bucket="day=2026-01-01")
    world.fault = lambda _operation, _path: None
    assert seen
    of(world).run(world.ports())
    world.recover()
    assert world.live() == ["5", "6", "old"]
    world.check()
    of(world).run(world.ports())
    assert world.live() == ["5", "6"]


def damaged() -> Days:
    """The record of its newest epoch cannot be read."""
    world = written(1, 2, 3)
    del world.files.files[f"{NEWEST}.record"]
    world.files.make(f"{NEWEST}.record", b"torn")
    return world


def test_a_damaged_record_of_a_complete_epoch_is_not_asked_for():
    """The inventory has its files."""
    world = damaged()
    of(world).run(world.ports())
    assert world.live() == ["2", "3"]


def test_a_damaged_record_of_an_epoch_that_is_not_complete_ends_it():
    """Nobody knows which files its driver will look for."""
    world = damaged()
    del world.files.files[f"{NEWEST}.complete"]
    before = world.contents()
    with pytest.raises(StateCorruptError):
        of(world).plan(world.clock)
    with pytest.raises(StateCorruptError):
        of(world).run(world.ports())
    assert world.contents() == before


def test_killed_at_each_step_and_recovered():
    """What is dropped goes or stays, nothing else does, and nothing is left behind."""
    number = 0
    for world in kills(lambda: written(1, 2, 3), lambda world: of(world).run(world.ports())):
        assert world.rows() in (["1", "2", "3"], ["2", "3"])
        world.recover()
        world.check()
        assert world.live() in (["1", "2", "3"], ["2", "3"])
        of(world).run(world.ports())
        assert world.live() == ["2", "3"]
        world.check()
        number += 1
    assert number > 20


def test_of_two_one_is_told():
    """The second to decide finds the slot taken; all that goes, goes once."""
    world = written(1, 2, 3)
    other = of(world)

    def fault(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".record"):
            world.fault = lambda _operation, _path: None
            other.run(world.ports())

    world.fault = fault
    with pytest.raises(ConcurrentDriverError):
        of(world).run(world.ports())
    assert world.live() == ["2", "3"]
    world.check()


def test_an_overwrite_meanwhile_wins():
    """And nothing of what it has written is dropped by what was chosen before it."""
    world = written(1, 2, 3)

    def fault(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".record"):
            world.fault = lambda _operation, _path: None
            world.overwrite("new", bucket="day=2026-01-01")

    world.fault = fault
    with pytest.raises(ConcurrentDriverError):
        of(world).run(world.ports())
    assert world.live() == ["new"]
    world.check()


def test_an_append_meanwhile_stays():
    """A late record of an old day, published while the old files go."""
    world = written(1, 2, 3)

    def fault(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path == "_filesink/exclusive/000000000000.record":
            world.fault = lambda _operation, _path: None
            world.append("late", bucket="day=2026-01-01")

    world.fault = fault
    of(world).run(world.ports())
    assert world.live() == ["2", "3", "late"]
    world.check()


def test_a_file_that_cannot_be_removed_is_told_and_tried_again():
    """As one of another user's in a sticky directory: versions do without it, and the error names it."""
    world = written(1, 2, 3)
    refusal = StorageError("not yours", code="PERMISSION")
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=refusal) if operation == "delete_if_unchanged" else None
    )
    with pytest.raises(CleanupError, match=r"1 of 1 files could not be removed, such as 'day=2026-01-01/"):
        _removed(of(world).run(world.ports()))
    assert world.live() == ["2", "3"]
    assert world.rows() == ["1", "2", "3"]
    with pytest.raises(CleanupError):
        _removed(of(world).run(world.ports()))
    world.fault = lambda _operation, _path: None
    assert of(world).plan(world.clock).left == [path for path in world.visible() if "2026-01-01" in path]
    assert _removed(of(world).run(world.ports())) is not None
    assert world.live() == ["2", "3"]
    world.check()
    assert of(world).run(world.ports()) is None


def test_a_file_that_is_gone_already_is_dropped_from_the_inventory():
    """Somebody has removed it by hand."""
    world = written(1, 2, 3)
    (path,) = (path for path in world.visible() if path.startswith("day=2026-01-01"))
    world.store().delete(path)
    of(world).run(world.ports())
    assert world.live() == ["2", "3"]
    world.check()


def test_without_an_inventory_nothing_is_dropped():
    """What is live is not known."""
    world = written(1, 2, 3)
    world.forget_inventory()
    with pytest.raises(StateError, match="adopt"):
        of(world).run(world.ports())
    assert world.rows() == ["1", "2", "3"]


def test_who_did_it_is_on_record():
    """For those who ask later where the rows are."""
    world = written(1, 2, 3)
    ports = world.ports()
    of(world).run(Ports(clock=ports.clock, ids=ports.ids, runner=ports.runner))
    (epoch,) = (epoch for epoch in world.directory().epochs() if epoch.kind == "retain")
    assert (epoch.removed, epoch.files, epoch.rows) == (1, 0, 0)
