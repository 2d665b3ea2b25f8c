"""Operations beside overwrites that leave old files to readers for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.operations.replacing.rollback import Rollback
from tests.operations.replacing.worlds import Days, kills, written

GRACE_MS = 3_600_000


class Kept(Days):
    """Its overwrites have a grace."""

    def tiers(self):
        return replace(super().tiers(), reader_grace_ms=GRACE_MS)


def overwritten() -> Kept:
    """Two files that an overwrite has replaced, and that stay."""
    made = written(1, 2)
    world = Kept(clock=made.clock)
    world.files = made.files
    world.overwrite("new", bucket="day=2026-01-03")
    assert (world.live(), world.rows()) == (["new"], ["1", "2", "new"])
    return world


def test_a_version_before_an_overwrite_comes_back_and_old_readers_keep_their_time():
    """As copies; what the overwrite has left to readers is theirs until the hour is over."""
    world = overwritten()
    before = [file.path for file in world.directory().snapshot(2).files]
    rollback_of(world).run(world.ports())
    assert world.live() == ["1", "2"]
    assert set(before) <= set(world.visible())
    world.clock.now += GRACE_MS + 1
    Retain(tiers=world.tiers(), retention=Retention(keep=10), base_path="/base").run(world.ports())
    assert set(before).isdisjoint(world.visible())
    world.check()


def test_what_readers_still_have_time_for_makes_nothing_due():
    """No epoch is decided for it, hour after hour."""
    world = overwritten()
    retain = Retain(tiers=world.tiers(), retention=Retention(keep=10), base_path="/base")
    assert retain.plan(world.clock).left == []
    assert retain.run(world.ports()) is None
    world.clock.now += GRACE_MS + 1
    assert len(retain.plan(world.clock).left) == 2
    assert retain.run(world.ports()) is not None
    world.check()


def test_what_retention_drops_may_stay_for_a_while():
    """Readers of the version before have their time; the next epoch after that removes it."""
    made = written(1, 2, 3)
    before = made.directory().snapshot()
    tiers = replace(made.tiers(), reader_grace_ms=GRACE_MS)
    retain = Retain(tiers=tiers, retention=Retention(keep=1), base_path="/base")
    assert retain.run(made.ports()) is not None
    assert made.live() == ["3"]
    assert {file.path for file in before.files} <= set(made.visible())
    assert retain.run(made.ports()) is None
    made.clock.now += GRACE_MS + 1
    assert retain.run(made.ports()) is not None
    made.check()


@pytest.mark.slow
def test_a_rollback_that_is_killed_at_each_step():
    """Afterwards there are the rows of one version or those of the other, each once, and nothing is left."""
    number = 0
    for world in kills(overwritten, lambda world: rollback_of(world).run(world.ports())):
        world.recover()
        if world.live() == ["new"]:
            rollback_of(world).run(world.ports())
        assert world.live() == ["1", "2"]
        world.clock.now += GRACE_MS + 1
        Retain(tiers=world.tiers(), retention=Retention(keep=10), base_path="/base").run(world.ports())
        world.check()
        number += 1
    assert number > 40


def rollback_of(world: Kept) -> Rollback:
    """To the version before the overwrite."""
    return Rollback(tiers=world.tiers(), version=2, base_path="/base")
