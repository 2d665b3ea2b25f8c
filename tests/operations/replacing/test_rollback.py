"""A version that comes back, as an epoch."""

from __future__ import annotations

import pytest

from filesink.errors import ConcurrentDriverError, ConfigError, StateError, StorageError
from filesink.ledger.identity import batch_write
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.operations.replacing.rollback import Rollback
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from tests.fakes import micro_batch, records
from tests.operations.replacing.worlds import Days, Killed, written


def to(world: Days, version: int) -> Rollback:
    """The operation on a world."""
    return Rollback(tiers=world.tiers(), version=version, base_path="/base")


def test_what_came_since_goes():
    """The plan names the epochs and the files, and touches nothing; the newest version has the old rows."""
    world = written(1, 2, 3)
    before = world.contents()
    plan = to(world, 1).plan(world.clock)
    assert [epoch.version for epoch in plan.epochs] == [2, 3]
    assert ([file.bucket for file in plan.removed], plan.restored) == (
        ["day=2026-01-02", "day=2026-01-03"],
        [],
    )
    assert (plan.newest, plan.rows) == (3, 2)
    assert world.contents() == before
    to(world, 1).run(world.ports())
    assert world.live() == ["1"]
    world.check()
    assert [epoch.kind for epoch in world.directory().epochs()][-1] == "rollback"
    assert to(world, 1).run(world.ports()) is None


def test_the_way_back_is_a_way_forward():
    """Versions only grow: that before the rollback can still be asked for, though its files are gone."""
    world = written(1, 2)
    to(world, 1).run(world.ports())
    assert world.directory().version == 3
    assert [file.bucket for file in world.directory().snapshot(2).files] == [
        "day=2026-01-01",
        "day=2026-01-02",
    ]
    with pytest.raises(StateError) as caught:
        to(world, 2).run(world.ports())
    assert caught.value.code == "FILES_GONE"
    assert "1 of the files that were removed since are gone, such as 'day=2026-01-02/part-" in str(
        caught.value
    )
    assert world.live() == ["1"]


def overwritten() -> Days:
    """Version 3 has replaced two files that are still there, as readers by versions may need them."""
    world = written(1, 2)
    refused = StorageError("not now", code="PERMISSION")
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=refused) if operation == "delete_if_unchanged" else None
    )
    world.overwrite("new", bucket="day=2026-01-03")
    world.fault = lambda _operation, _path: None
    return world


def test_what_went_since_comes_back_while_its_bytes_are_there():
    """Under new names, with the same rows, and no reader sees a row twice."""
    world = overwritten()
    assert (world.live(), world.rows()) == (["new"], ["1", "2", "new"])
    old = {file.path for file in world.directory().snapshot(2).files}
    plan = to(world, 2).plan(world.clock)
    assert ({file.path for file in plan.restored}, plan.rows) == (old, -1)
    to(world, 2).run(world.ports())
    assert world.live() == ["1", "2"]
    assert old.isdisjoint(file.path for file in world.directory().snapshot().files)
    assert world.directory().snapshot().rows == 2
    world.check()


def test_all_of_it_or_nothing():
    """One of two files is gone, or has other bytes: neither comes back."""
    for change in (b"", b"other"):
        world = overwritten()
        path = min(file.path for file in world.directory().snapshot(2).files)
        world.store().delete(path)
        if change:
            world.store().put_if_absent(path, change)
        with pytest.raises(StateError, match="1 of the files that were removed since are gone"):
            to(world, 2).plan(world.clock)
        with pytest.raises(StateError) as caught:
            to(world, 2).run(world.ports())
        assert caught.value.code == "FILES_GONE"
        assert world.live() == ["new"]


def test_to_the_beginning():
    """Version 0 has no file."""
    world = written(1, 2)
    to(world, 0).run(world.ports())
    assert world.live() == []
    world.check()


def test_a_version_that_is_none():
    """It is not there yet."""
    world = written(1)
    with pytest.raises(ConfigError, match="no version 7"):
        to(world, 7).run(world.ports())


def test_a_stream_goes_on_where_it_was():
    """Its batches count as written: their rows do not come back, and the next ones do."""
    world = written(1, 2, 3)
    to(world, 1).run(world.ports())
    again = world.driver().run(
        micro_batch(2, query_id="query-u"), world.job(records("3", bucket="day=2026-01-03"))
    )
    assert again.replayed
    world.write(4)
    assert world.live() == ["1", "4"]
    world.check()


def test_a_named_write_counts_as_written():
    """As the page says: it is repeated under another name."""
    world = written(1)
    sink_id, cause = batch_write(SaveMode.APPEND, "u", "january", world.ids)
    world.driver(sink_id).run(cause, world.job(records("x", bucket="day=2026-01-02")))
    to(world, 1).run(world.ports())
    sink_id, cause = batch_write(SaveMode.APPEND, "u", "january", world.ids)
    assert world.driver(sink_id).run(cause, world.job(records("x", bucket="day=2026-01-02"))).replayed
    assert world.live() == ["1"]


def test_an_epoch_at_work_is_not_rolled_back():
    """Its driver would look for its files: recover comes first."""
    world = written(1)
    world.fault = lambda operation, path: (
        Fault(moment=Moment.BEFORE, error=Killed())
        if operation == "put_if_absent" and path.endswith(".complete")
        else None
    )
    with pytest.raises(Killed):
        world.append("2", bucket="day=2026-01-02")
    world.fault = lambda _operation, _path: None
    for call in (lambda: to(world, 1).plan(world.clock), lambda: to(world, 1).run(world.ports())):
        with pytest.raises(StateError) as caught:
            call()
        assert caught.value.code == "AT_WORK"
    world.recover()
    assert world.live() == ["1", "2"]
    to(world, 1).run(world.ports())
    assert world.live() == ["1"]
    world.check()


def test_retention_at_the_same_time():
    """One of the two is told, and what it would have done is not done."""
    world = written(1, 2, 3)
    other = Retain(tiers=world.tiers(), retention=Retention(keep=1), base_path="/base")

    def fault(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".record"):
            world.fault = lambda _operation, _path: None
            other.run(world.ports())

    world.fault = fault
    with pytest.raises(ConcurrentDriverError):
        to(world, 2).run(world.ports())
    assert world.live() == ["3"]
    world.check()
