"""A query with another checkpoint that comes to a sink after the first one: refused, or appended.

Asked at the end of a history, see ``epilogue``. Both have the uid of the sink, and so one ledger.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from filesink.errors import CheckpointMismatchError, IdentityError, ReplayTooOldError
from filesink.ledger.identity import OnNewQuery
from property_tests.simulation import epilogue
from property_tests.simulation.fake_spark import Checkpoint
from property_tests.simulation.workload import Source

if TYPE_CHECKING:
    from property_tests.simulation.history import History


def comes(history: History) -> None:
    """It is refused and changes nothing (I14), or adds its rows once; replays add none (I1, I2, I9)."""
    source, checkpoint = Source(history.scenario.shape), Checkpoint("another")
    for number in range(2):
        source.add_batch(f"{70 + number}", 3, Random(number))  # with all columns
    history.observer.sources.append(source)
    before = epilogue.picture(history)
    epilogue.expect(history, _run(history, source, checkpoint, OnNewQuery.REFUSE), IdentityError)
    if epilogue.picture(history) != before:
        history.world.fail("I14: a query that was refused has changed something")
    checkpoint = Checkpoint("another")
    error = _run(history, source, checkpoint, OnNewQuery.APPEND)
    missing = source.buckets.keys() - history.observer.rows.keys()
    if error is not None or missing:
        history.world.fail(f"I7: another query cannot append: {error}; {len(missing)} rows are missing")
    before = epilogue.picture(history)
    _replay(history, source, checkpoint)
    _replay(history, history.source, history.checkpoint)
    if epilogue.picture(history) != before:
        history.world.fail("I9: a replay beside another query was not a no-op")
    _bring_back(history)
    if epilogue.picture(history) != before:
        history.world.fail("I9: a checkpoint from long ago has added rows beside another query")


def _bring_back(history: History) -> None:
    """Somebody restores the checkpoint of the first query as it was before its first batch was done."""
    checkpoint = Checkpoint(history.checkpoint.query_id, {0: history.checkpoint.offsets[0]})
    error = _run(history, history.source, checkpoint, OnNewQuery.APPEND)
    if error is not None and not isinstance(error, ReplayTooOldError | CheckpointMismatchError):
        history.world.fail(f"I7: a checkpoint from long ago is not told so: {error}")


def _replay(history: History, source: Source, checkpoint: Checkpoint) -> None:
    checkpoint.commits.discard(len(source.batches) - 1)
    error = _run(history, source, checkpoint, OnNewQuery.APPEND)
    folded = any(chain.mark >= 0 for chain in history.observer.chains.values())
    if error is not None and not (folded and isinstance(error, ReplayTooOldError)):
        history.world.fail(f"I7: a replay beside another query fails: {error}")


def _run(history: History, source: Source, checkpoint: Checkpoint, action: OnNewQuery) -> Exception | None:
    driver = history.start(checkpoint, source=source, on_new_query=action)
    history.until(lambda: driver.ended)
    history.end_process(driver, workers=True)
    return driver.error
