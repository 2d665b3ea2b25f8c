"""Clients of ``CollectSink`` while Spark writes, and after it has been stopped, has failed, or was killed."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from filesink import CollectSink, SourceError
from tests.spark import inputs, outside
from tests.spark.drivers import Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 100
MANY = 100  # kills, half of them of clients


def stream(spark: SparkSession, directory: Path, **source: Any) -> Any:
    """Flights, a micro-batch for each file."""
    return inputs.flights(spark, directory / "source", **source)


def test_a_client_beside_a_running_query(spark: SparkSession, tmp_path: Path) -> None:
    """Gets rows while it runs, in the order of its batches, and comes to its end; another one goes on."""
    for number in range(3):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    sink = CollectSink(tmp_path / "collected")
    query = sink.start(
        stream(spark, tmp_path), checkpoint_location=tmp_path / "checkpoint", available_now=True
    )
    results = sink.results()
    ids = [row["id"] for row in results]
    assert [one // ROWS for one in ids] == sorted(one // ROWS for one in ids)
    assert sorted(ids) == list(range(3 * ROWS))
    assert results.is_complete
    assert query.awaitTermination(60)
    place = str(results.position)
    inputs.add_file(tmp_path / "source", 3, rows=ROWS)
    sink = CollectSink(tmp_path / "collected")
    sink.start(stream(spark, tmp_path), checkpoint_location=tmp_path / "checkpoint", available_now=True)
    more = CollectSink(tmp_path / "collected").results(place).to_pandas()
    assert sorted(more["id"]) == list(range(3 * ROWS, 4 * ROWS))
    assert str(more["day"].iloc[0]).startswith("2013-01-0")
    assert len([*(tmp_path / "collected").glob("*.arrow")]) == 1


def test_rows_come_while_the_micro_batch_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Its only task waits for a client that has taken its first rows; all others come once."""
    inputs.add_file(tmp_path / "source", 0, rows=ROWS)
    taken = tmp_path / "taken"

    def held(batches: Any) -> Any:
        for number, batch in enumerate(batches):
            if number == 4:  # the end of a batch leaves a worker of Spark's with the next one
                outside.eventually(taken.exists, seconds=120)
            yield batch

    padded = "id BIGINT, padding STRING"  # so that no buffer of Spark's holds a batch back
    df = stream(spark, tmp_path).selectExpr("id", "repeat('x', 100000) padding").mapInArrow(held, padded)
    sink = CollectSink(tmp_path / "collected", delivery="at_least_once")
    with few_rows_at_a_time(spark):
        query = sink.start(df, checkpoint_location=tmp_path / "checkpoint", available_now=True)
        results = sink.results(wait="120 s")
        first = next(results)["id"]
        assert query.lastProgress is None
        taken.touch()
        ids = [first, *(row["id"] for row in results)]
    assert query.awaitTermination(60)
    assert sorted(ids) == list(range(ROWS))
    assert results.is_complete


@contextmanager
def few_rows_at_a_time(spark: SparkSession) -> Iterator[None]:
    """Record batches of ten rows."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, 10)
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def test_a_second_query_that_is_refused_is_not_the_end_of_the_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Clients of the one that runs hear neither of its failure nor of an end; its own comes when it ends."""
    inputs.add_file(tmp_path / "source", 0, rows=ROWS)
    sink = CollectSink(tmp_path / "collected")
    query = sink.start(stream(spark, tmp_path), checkpoint_location=tmp_path / "checkpoint")
    try:
        results = sink.results()
        assert len([next(results) for _ in range(ROWS)]) == ROWS
        other = CollectSink(tmp_path / "collected")
        refused = other.start(stream(spark, tmp_path), checkpoint_location=tmp_path / "another")
        with pytest.raises(StreamingQueryException, match="NEW_QUERY_OLD_DATA"):
            refused.awaitTermination(60)
        inputs.add_file(tmp_path / "source", 1, rows=ROWS)
        assert len([next(results) for _ in range(ROWS)]) == ROWS
    finally:
        query.stop()
    assert list(results) == []
    assert results.is_complete


def test_a_query_that_waits_for_its_client_can_be_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """At once, and its restart goes on where it was; clients see the stop as an end."""
    for number in range(3):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    sink = CollectSink(tmp_path / "collected", max_buffered_bytes=1)
    query = sink.start(stream(spark, tmp_path), checkpoint_location=tmp_path / "checkpoint")
    results = sink.results()
    assert [next(results)["id"] for _ in range(ROWS)] == list(range(ROWS))
    outside.eventually((tmp_path / "checkpoint" / "offsets" / "1").exists)
    query.stop()
    assert list(results) == []
    query = CollectSink(tmp_path / "collected", max_buffered_bytes="1GiB").start(
        stream(spark, tmp_path), checkpoint_location=tmp_path / "checkpoint", available_now=True
    )
    assert [row["id"] for row in sink.results(results.position)] == list(range(ROWS, 3 * ROWS))
    assert query.awaitTermination(60)


def test_a_query_that_fails_is_told_to_its_client(spark: SparkSession, tmp_path: Path) -> None:
    """Behind the rows that it had committed."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    failing = stream(spark, tmp_path).selectExpr(
        f"CASE WHEN id = {2 * ROWS - 1} THEN raise_error('broken') ELSE id END AS id"
    )
    sink = CollectSink(tmp_path / "collected")
    query = sink.start(failing, checkpoint_location=tmp_path / "checkpoint", available_now=True)
    results, ids = sink.results(), []
    with pytest.raises(SourceError) as raised:
        ids.extend(row["id"] for row in results)
    assert raised.value.code == "QUERY_FAILED"
    assert ids == list(range(ROWS))
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()


def test_a_foreach_batch_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    """Ends for clients with ``finish``, which removes what they have acknowledged."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    sink = CollectSink(tmp_path / "collected")
    query = (
        stream(spark, tmp_path)
        .writeStream.foreachBatch(sink.foreach_batch)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    results = sink.results(wait=False)
    assert len(list(results)) == 2 * ROWS
    assert not results.is_complete
    results.acknowledge()
    assert sink.finish() is not None
    assert list(sink.results()) == []
    assert [*(tmp_path / "collected").glob("*.arrow")] == []


def test_a_batch_write(spark: SparkSession, tmp_path: Path) -> None:
    """And one that is repeated under its name."""
    sink = CollectSink(tmp_path / "collected")
    df = spark.range(0, 10_000, numPartitions=3).selectExpr(
        "id", "array(id, null) AS list", "map('a', id) AS map"
    )
    assert sink.write(df, txn_id="a").rows == 10_000
    assert sink.write(df, txn_id="a").already_committed
    rows = list(sink.results())
    assert sorted(row["id"] for row in rows) == list(range(10_000))
    assert all(row["list"] == [row["id"], None] and row["map"] == [("a", row["id"])] for row in rows[:100])


@pytest.mark.nightly
@pytest.mark.timeout(600 + 60 * MANY)
def test_every_row_once_whatever_is_killed(tmp_path: Path) -> None:
    """Kills of JVM, driver and client at random moments; the small form is in ``tests/sinks/collect``."""
    seed = time.time_ns()
    print("seed", seed)  # noqa: T201 - shown if the test fails
    files = 4 * MANY
    for number in range(files):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    ended = threading.Event()
    clients = threading.Thread(target=run_clients, args=(tmp_path, random.Random(seed + 1), ended))  # noqa: S311
    for kill in range(MANY // 2):
        driver = Driver("collect_stream", tmp_path, log=tmp_path / "log")
        driver.wait_for("started")
        if not kill:
            clients.start()
        time.sleep(moments.uniform(0, 3))
        driver.kill_jvm() if kill % 3 == 1 else driver.kill()
        driver.__exit__()
    with Driver("collect_stream", tmp_path, log=tmp_path / "log") as last:
        last.wait_for("done")
    ended.set()
    clients.join()
    with closing(sqlite3.connect(tmp_path / "taken.db")) as database:
        ids = [one for (one,) in database.execute("SELECT id FROM taken ORDER BY rowid")]
    assert ids == sorted(ids)
    assert ids == list(range(files * ROWS))


def run_clients(directory: Path, moments: random.Random, ended: threading.Event) -> None:
    """Start clients, kill and start them again, until the query has come to its end; then let one end."""
    while not ended.is_set():
        with Driver("collect_client", directory, log=directory / "client-log") as client:
            ended.wait(moments.uniform(0.5, 4))
            client.kill()
    with Driver("collect_client", directory, log=directory / "client-log") as client:
        client.wait_for("done")
