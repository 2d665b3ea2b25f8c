"""What the tasks of an epoch have reported, taken together."""

from __future__ import annotations

import pytest

from filesink.commit.task import WriteTask
from filesink.commit.task_results import gather
from filesink.errors import InternalError
from filesink.ports import Losers
from tests.fakes import World, records


def result(world, subtask, attempt=0):
    """What a task of one row reports."""
    task = WriteTask(sink=world.tiers(), sink_id=world.sink_id, slot=0, driver_ms=0, time_zone="UTC")
    return task.run_with(subtask, attempt, [records("1")], clock=world.clock, ids=world.ids)


@pytest.mark.parametrize("attempt", [0, 1])
def test_two_results_of_one_partition_are_refused(attempt):
    """Its rows would be there twice, whether by one attempt or by two, and whatever stands between."""
    world = World()
    results = [result(world, 0), result(world, 1), result(world, 0, attempt)]
    with pytest.raises(InternalError) as raised:
        gather(world.tiers(), {}, results, Losers.POSSIBLE, sink_id=world.sink_id)
    assert raised.value.code == "TWO_RESULTS"
    both = gather(world.tiers(), {}, results[:2], Losers.POSSIBLE, sink_id=world.sink_id)
    assert (both.rows, both.metrics["files_written"]) == (2, 2)


@pytest.mark.parametrize(("attempt", "losers"), [(0, Losers.NONE), (1, Losers.POSSIBLE)])
def test_one_task_that_was_tried_again_is_enough_to_look_for_leftovers(attempt, losers):
    """Its first attempt may have left files, whatever became of the other tasks."""
    world = World()
    results = [result(world, 0), result(world, 1, attempt), result(world, 2)]
    assert gather(world.tiers(), {}, results, Losers.NONE, sink_id=world.sink_id).losers is losers
