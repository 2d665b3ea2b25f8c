"""Sinks and checkpoints that earlier code has left on disk: today's queries and batch writes go on with them.

The states and the sinks are those of ``tests/golden/states``. They lie in another directory than they were
written in, as if the user had moved sink and checkpoint. Rows are read by the names of files alone.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from tests.golden.states import reading
from tests.golden.states.frozen import FROZEN, Frozen, twice
from tests.golden.states.pieces import FIRST_OF_TWO, ROWS, STREAMS, Stream, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OF_STREAMS = [one for one in FROZEN if one.name in STREAMS]
OF_BATCHES = [one for one in FROZEN if one.name not in STREAMS]
FOLDED = [one for one in FROZEN if one.name == "two-queries-folded"]
WRITES = [one for one in FROZEN if one.known["committed"] or one.known["free"]]


@pytest.fixture
def sink(frozen: Frozen, tmp_path: Path) -> Path:
    """The state, unpacked."""
    return frozen.unpacked(tmp_path)


def restart(spark: SparkSession, sink: Path, stream: Stream, checkpoint: str = "checkpoint") -> None:
    """One more micro-batch of a query, or the one that was planned; then its input has ended."""
    if stream.options is not None:
        stream.through_data_source(spark, sink)
        return
    query = stream.sink(sink / "base").build()
    started = query.start(stream.frame(spark), checkpoint_location=sink / checkpoint, once=True)
    started.awaitTermination()


def expected(frozen: Frozen, planned: int) -> tuple[list[int], list[int]]:
    """Good and bad ids when a query has written all it has planned, with what others had written before."""
    given = range(planned * ROWS)
    others = [number for number in frozen.known["recovered"] if number < 0 or number >= 1000]
    if frozen.name == "two-queries-folded":
        return sorted([*others, *given[::20]]), []
    if frozen.name == "dead-letters":
        return [number for number in given if number % 5], list(given[::5])
    return sorted([*given, *others]), []


@pytest.mark.parametrize("frozen", OF_STREAMS, ids=str)
def test_a_query_goes_on_where_it_was(spark: SparkSession, frozen: Frozen, sink: Path) -> None:
    """Restarted twice from its checkpoint it has every row once, the old ones and the new, none hidden."""
    base, checkpoint = sink / "base", sink / "checkpoint"
    before = reading.batches(checkpoint)
    for _ in range(2):
        restart(spark, sink, STREAMS[frozen.name])
    planned = reading.batches(checkpoint)
    assert planned > before
    assert (reading.visible_ids(base), reading.dead_letters(base)) == expected(frozen, planned)
    assert [path for path in base.rglob(".*") if path.is_file()] == []
    if frozen.name.startswith("announcements"):
        days = sorted({str(path.parent.relative_to(base)) for path in reading.visible(base)})
        assert reading.success_files(base) == days


@pytest.mark.parametrize("frozen", [one for one in OF_STREAMS if one.known["held"]], ids=str)
def test_recovered_first_it_goes_on_as_well(spark: SparkSession, frozen: Frozen, sink: Path) -> None:
    """What an operator calls before the restart takes nothing from it, and ``finish`` closes what is open."""
    stream = STREAMS[frozen.name]
    stream.sink(sink / "base").build().recover()
    stream.sink(sink / "base").build().sweep(1)
    if frozen.name != "without-uid":  # known by its query alone, and that has not run in this process
        assert stream.sink(sink / "base").build().finish() is not None
        assert reading.visible_ids(sink / "base") == frozen.known["held"]
    restart(spark, sink, stream)
    good, bad = expected(frozen, reading.batches(sink / "checkpoint"))
    assert (reading.visible_ids(sink / "base"), reading.dead_letters(sink / "base")) == (good, bad)


@pytest.mark.parametrize("frozen", WRITES, ids=str)
def test_a_repeated_write_is_recognised(spark: SparkSession, frozen: Frozen, sink: Path) -> None:
    """The very same call again, without recovery before: it was committed, and writes nothing."""
    built = frozen.builder(sink).build()
    for _ in range(2):
        for txn in frozen.committed:
            again = built.write(rows(spark, txn.ids[0], txn.ids[-1] + 1), mode=txn.mode, txn_id=txn.txn_id)
            assert again.already_committed
        assert reading.visible_ids(sink / "base") == frozen.known["recovered"] or frozen.free
        for txn in frozen.free:
            built.write(rows(spark, txn.ids[0], txn.ids[-1] + 1), mode=txn.mode, txn_id=txn.txn_id)
    for txn in frozen.free:  # all of them overwrite
        assert reading.visible_ids(sink / "base") == txn.ids


@pytest.mark.parametrize("frozen", OF_BATCHES, ids=str)
def test_more_is_written_and_everything_replaced(spark: SparkSession, frozen: Frozen, sink: Path) -> None:
    """The next append adds its rows, the next overwrite leaves nothing but its own."""
    base = sink / "base"
    built = frozen.builder(sink).build()
    built.recover()
    built.write(rows(spark, 2000, 2004))
    assert reading.visible_ids(base) == [*frozen.known["recovered"], *range(2000, 2004)]
    built.write(rows(spark, 2004, 2006), mode="overwrite_partitions")
    built.write(rows(spark, 3000, 3004), mode="overwrite", txn_id="new")
    assert reading.visible_ids(base) == list(range(3000, 3004))
    assert built.write(rows(spark, 3000, 3004), mode="overwrite", txn_id="new").already_committed
    assert [path for path in base.rglob(".*") if path.is_file()] == []


@pytest.mark.parametrize(
    "frozen", [one for one in OF_BATCHES if one.name.endswith(("-decided", "-half-done"))], ids=str
)
def test_everything_is_replaced_beside_what_is_decided(
    spark: SparkSession, frozen: Frozen, sink: Path
) -> None:
    """Nobody recovers first: what was visible goes, what was decided comes once or goes as well."""
    base = sink / "base"
    before = frozen.known["visible"]
    decided = set(frozen.known["recovered"]) - set(before)
    frozen.builder(sink).build().write(rows(spark, 3000, 3004), mode="overwrite")
    for _ in range(2):
        found = reading.visible_ids(base)
        assert twice(found) == []
        assert set(range(3000, 3004)) <= set(found) <= {*range(3000, 3004), *decided}
        frozen.builder(sink).build().recover()


@pytest.mark.parametrize("frozen", FOLDED, ids=str)
def test_a_query_whose_records_are_folded_away_doubles_nothing(
    spark: SparkSession, frozen: Frozen, sink: Path
) -> None:
    """Its only batch, which Spark has not noted as done, comes again: recognised or refused."""
    before = reading.visible_ids(sink / "base")
    with suppress(StreamingQueryException):
        restart(spark, sink, FIRST_OF_TWO, "first-checkpoint")
    found = reading.visible_ids(sink / "base")
    assert twice(found) == []
    assert set(before) <= set(found)
    del frozen
