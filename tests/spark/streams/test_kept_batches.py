"""How many micro-batches the ledger keeps for Spark. Needs no Spark that runs."""

from __future__ import annotations

import pytest

from filesink.errors import ReplayTooOldError
from filesink.spark.engine_options import EngineOptions, open_loop
from tests.fakes import World, micro_batch


class Session:
    """What the engine asks of one: settings."""

    def __init__(self, **conf):
        self.conf = {f"spark.sql.streaming.{name}": value for name, value in conf.items()}


def test_as_many_batches_are_kept_as_spark_keeps():
    """A checkpoint may be rolled back by as many, and each of them is known when it comes back."""
    world = World()
    sink = world.tiers()
    loop = open_loop(sink, EngineOptions(), world.sink_id, Session(minBatchesToRetain="300"))
    for number in range(401):
        loop.run(micro_batch(number), world.job())
    assert loop.run(micro_batch(101), world.job(run_id="run-2")).replayed
    with pytest.raises(ReplayTooOldError, match="the last 300 batches"):
        loop.run(micro_batch(0), world.job(run_id="run-2"))
