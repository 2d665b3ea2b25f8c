"""What a sink that announces partitions leaves behind when its uid is changed."""

from __future__ import annotations

from filesink.ledger.identity import OnNewQuery
from tests.metastore.tables.test_partition_commit import Told, timed, write_times


def test_a_watermark_keeps_nobody_under_its_old_uid() -> None:
    """Once the stream is finished no partition waits for it, so the new uid may go on."""
    told = Told()
    world = timed(told)
    old = world.driver("uid-old")
    write_times(world, old, 0, d01="2024-01-01T10:00")
    old.finish()
    new = world.driver("uid-new", on_new_query=OnNewQuery.APPEND)
    write_times(world, new, 1, d02="2024-01-03T10:00")
    assert told.take() == ["day=2024-01-01", "day=2024-01-02"]
