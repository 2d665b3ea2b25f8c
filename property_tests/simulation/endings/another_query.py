"""A query with another checkpoint that comes to a sink after the first one: refused, appended, in its place.

Asked at the end of a history, see ``epilogue``. Both have the uid of the sink, and so one ledger.
"""

from __future__ import annotations

import sys
from random import Random

from filesink.errors import CheckpointMismatchError, IdentityError, ReplayTooOldError
from filesink.ledger.identity import OnNewQuery
from property_tests.simulation.picture import expect, picture
from property_tests.simulation.spark.fake_spark import Checkpoint
from property_tests.simulation.stage import Stage
from property_tests.simulation.workload import Source
from property_tests.simulation.world.plans import Chance


def comes(stage: Stage) -> None:
    """It is refused and changes nothing (I14), or adds its rows once; replays add none (I1, I2, I9)."""
    source, checkpoint = _source(stage), Checkpoint("another")
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


def replaces(stage: Stage) -> None:
    """Whoever dies, its rows are all that is there at the end, once; the first query is refused (I21)."""
    source, checkpoint = _source(stage), Checkpoint("another")
    before = picture(stage)
    if "uid-neighbour" in stage.observer.chains:  # another stream: it would not write its rows again
        error = stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.REPLACE)
        expect(stage, error, IdentityError)
        if picture(stage) != before:
            stage.world.fail("I14: a query that would replace another stream's rows has changed something")
        return
    random = Random(f"replaces {stage.world.operations}")
    stage.world.plan = Chance(random, spacing=20, faults=random.choice((0, 1, 2, 3)))
    for _ in range(3):
        stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.REPLACE)
    stage.world.plan = None
    for late in stage.world.late.due(sys.maxsize):
        stage.world.carry_out(late)
    error = stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.REPLACE)
    if error is not None or _shown(stage) != source.buckets.keys():
        stage.world.fail(f"I21: a query cannot replace what is there: {error}; {_differ(stage, source)}")
    before = picture(stage)
    stage.checkpoint.commits.discard(len(stage.source.batches) - 1)
    error = stage.run_query(stage.checkpoint, source=stage.source, on_new_query=OnNewQuery.REPLACE)
    expect(stage, error, IdentityError)
    checkpoint.commits.discard(len(source.batches) - 1)
    error = stage.run_query(checkpoint, source=source, on_new_query=OnNewQuery.REPLACE)
    if error is not None or picture(stage) != before:
        stage.world.fail(f"I21: after a refresh, a replay or the first query has changed something: {error}")


def _source(stage: Stage) -> Source:
    """What the other query reads: two batches, known to the observer."""
    source = Source(stage.scenario.shape)
    for number in range(2):
        source.add_batch(f"{70 + number}", 3, Random(number))  # with all columns
    stage.observer.sources.append(source)
    return source


def _shown(stage: Stage) -> set[str]:
    """Rows that readers see; dead letters of the earlier query stay, and those of the new one join them."""
    old = {row for one in stage.observer.sources[:-1] for row in one.buckets}
    left = stage.observer.replaced.ever_left  # replaced before, and kept for readers or not to be removed
    return {
        row
        for row, file in stage.observer.rows.items()
        if row not in old or not (file.startswith("_dead_letters") or file in left)
    }


def _differ(stage: Stage, source: Source) -> str:
    there, due = _shown(stage), source.buckets.keys()
    return f"{len(due - there)} rows are missing, {len(there - due)} should have gone"


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
