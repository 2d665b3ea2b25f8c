"""A query with another checkpoint that comes to a sink after the first one: refused, or appended.

Asked at the end of a history, see ``epilogue``. Both have the uid of the sink, and so one ledger.
"""

from __future__ import annotations

from random import Random

from filesink.errors import CheckpointMismatchError, IdentityError, ReplayTooOldError
from filesink.ledger.identity import OnNewQuery
from property_tests.simulation.picture import expect, picture
from property_tests.simulation.spark.fake_spark import Checkpoint
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import Source


def comes(stage: Stage) -> None:
    """It is refused and changes nothing (I14), or adds its rows once; replays add none (I1, I2, I9)."""
    source, checkpoint = Source(stage.scenario.shape), Checkpoint("another")
    for number in range(2):
        source.add_batch(f"{70 + number}", 3, Random(number))  # with all columns
    stage.observer.sources.append(source)
    before = picture(stage)
    expect(stage, stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.REFUSE), IdentityError)
    if picture(stage) != before:
        stage.world.fail("I14: a query that was refused has changed something")
    checkpoint = Checkpoint("another")
    error = stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.APPEND)
    missing = source.buckets.keys() - stage.observer.rows.keys()
    if error is not None or missing:
        stage.world.fail(f"I7: another query cannot append: {error}; {len(missing)} rows are missing")
    before = picture(stage)
    _replay(stage, source, checkpoint)
    _replay(stage, stage.source, stage.checkpoint)
    if picture(stage) != before:
        stage.world.fail("I9: a replay beside another query was not a no-op")
    _bring_back(stage)
    if picture(stage) != before:
        stage.world.fail("I9: a checkpoint from long ago has added rows beside another query")


def _bring_back(stage: Stage) -> None:
    """Somebody restores the checkpoint of the first query as it was before its first batch was done."""
    checkpoint = Checkpoint(stage.checkpoint.query_id, {0: stage.checkpoint.offsets[0]})
    error = stage.run_query(checkpoint, source=stage.source, on_new_query=OnNewQuery.APPEND)
    if error is not None and not isinstance(error, ReplayTooOldError | CheckpointMismatchError):
        stage.world.fail(f"I7: a checkpoint from long ago is not told so: {error}")


def _replay(stage: Stage, source: Source, checkpoint: Checkpoint) -> None:
    checkpoint.commits.discard(len(source.batches) - 1)
    error = stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.APPEND)
    folded = any(chain.mark >= 0 for chain in stage.observer.chains.values())
    if error is not None and not (folded and isinstance(error, ReplayTooOldError)):
        stage.world.fail(f"I7: a replay beside another query fails: {error}")
