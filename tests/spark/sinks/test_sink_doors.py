"""Any sink behind the doors of ``SparkSink``: batch writes, streams and foreachBatch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink import ConfigError, RepeatedTxnError, SparkSink
from tests.sinks.letters import Letters
from tests.spark import inputs
from tests.spark.checkpoints import forget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 10


@pytest.fixture
def letters(tmp_path: Path) -> Letters:
    """A sink below the test's directory."""
    (tmp_path / "box").mkdir()
    return Letters(tmp_path)


def numbers(spark: SparkSession, count: int) -> DataFrame:
    """Values that are numbers."""
    return spark.range(0, count, numPartitions=2).selectExpr("cast(id AS string) AS value")


def flights(spark: SparkSession, letters: Letters) -> DataFrame:
    """A stream of two files; the value is the id of the flight."""
    for number in range(2):
        inputs.add_file(letters.directory / "source", number, rows=ROWS)
    return inputs.flights(spark, letters.directory / "source").selectExpr("cast(id AS string) AS value")


def all_flights() -> list[str]:
    """The values of the stream."""
    return sorted(str(number) for number in range(2 * ROWS))


def test_write(spark: SparkSession, letters: Letters) -> None:
    """Every row arrives; a txn_id that comes back is known, and refused with other data."""
    sink = SparkSink(letters)
    report = sink.write(numbers(spark, 4), txn_id="a")
    assert (report.epoch, report.rows, report.batch_id, report.already_committed) == (0, 4, None, False)
    assert letters.arrived() == ["0", "1", "2", "3"]
    assert sink.write(numbers(spark, 4), txn_id="a").already_committed
    with pytest.raises(RepeatedTxnError):
        sink.write(numbers(spark, 5), txn_id="a")
    assert letters.arrived() == ["0", "1", "2", "3"]


def test_start(spark: SparkSession, letters: Letters) -> None:
    """Each micro-batch is an epoch; one that comes back is not written again."""
    checkpoint = letters.directory / "checkpoint"
    for replayed in ([(0, False), (1, False)], [(1, True)]):
        query = SparkSink(letters).start(
            flights(spark, letters), checkpoint_location=checkpoint, available_now=True
        )
        query.awaitTermination()
        assert [(report.batch_id, report.already_committed) for report in query.reports] == replayed
        assert letters.arrived() == all_flights()
        forget(checkpoint, "commits", 1)


def test_foreach_batch(spark: SparkSession, letters: Letters) -> None:
    """A query that Spark starts writes the same; at its end nothing is left to be finished."""
    sink = SparkSink(letters)
    stream = flights(spark, letters).writeStream.foreachBatch(sink.foreach_batch)
    stream.trigger(availableNow=True).start(
        checkpointLocation=str(letters.directory / "checkpoint")
    ).awaitTermination()
    assert letters.arrived() == all_flights()
    assert sink.finish() is None


def test_a_mode_that_the_sink_lacks(spark: SparkSession, letters: Letters) -> None:
    """Most sinks only append, and say so."""
    with pytest.raises(ConfigError, match=r"Letters cannot write in mode 'overwrite'; it has 'append'"):
        SparkSink(letters).write(numbers(spark, 1), mode="overwrite")
