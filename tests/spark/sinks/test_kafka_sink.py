"""Spark writes into topics of Kafka, by every door, and is killed while it does."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filesink import DataError, KafkaSink, RepeatedTxnError
from filesink.sinks.kafka import checks
from filesink.sinks.kafka.sender import Sender
from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.site import Site
from tests.spark import inputs
from tests.spark.checkpoints import forget
from tests.spark.drivers import Driver
from tests.spark.programs.kafka_stream import sink_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 200
KILLS = 50


@pytest.fixture
def site(kafka: Broker, tmp_path: Path) -> Site:
    """A topic with two partitions."""
    return Site(kafka, tmp_path)


def sink(site: Site, topic: str | None = "", **options: Any) -> KafkaSink:
    """The sink, as a user makes it."""
    named = site.name if topic == "" else topic
    return KafkaSink(site.cluster(), named, ledger=site.directory / "ledger", **options)


def numbers(spark: SparkSession, count: int) -> DataFrame:
    """Rows with a key and a value, in two partitions."""
    return spark.range(count, numPartitions=2).selectExpr("cast(id AS string) AS key", "'v' AS value")


def test_write(spark: SparkSession, site: Site) -> None:
    """A batch write; a txn_id that comes back is known, and refused with other data."""
    df = numbers(spark, ROWS)
    report = sink(site).write(df, txn_id="a")
    assert (report.rows, report.already_committed) == (ROWS, False)
    assert sink(site).write(df.coalesce(1), txn_id="a").already_committed
    with pytest.raises(RepeatedTxnError):
        sink(site).write(df.limit(3), txn_id="a")
    assert site.ids_there() == list(range(ROWS))
    assert site.staged() == []


def test_columns_of_spark(spark: SparkSession, site: Site) -> None:
    """All of them, as they leave a DataFrame, in topics that rows name."""
    df = spark.sql(
        f"""SELECT X'00ff' AS value, 'k' AS key, '{site.name}' AS topic, 1 AS partition,
        array(named_struct('key', 'h', 'value', X'01')) AS headers, current_timestamp() AS timestamp"""
    )
    sink(site, None).write(df)
    (message,) = site.read()
    assert (message.value(), message.key(), message.partition()) == (b"\x00\xff", b"k", 1)
    assert message.headers() == [("h", b"\x01")]


def test_an_error_of_a_task_shows_no_value(spark: SparkSession, site: Site) -> None:
    """Not even where Spark prints it with all that led to it."""
    with pytest.raises(DataError, match="partition") as raised:
        sink(site).write(spark.sql("SELECT 'hush' AS value, -5 AS partition"))
    assert "hush" not in repr(raised.value)
    assert site.staged() == []


def test_a_stream_and_its_replay(spark: SparkSession, site: Site) -> None:
    """What Spark forgets to have done comes again with other partitions, and changes nothing."""
    for number in range(2):
        inputs.add_file(site.directory / "source", number, rows=ROWS)
    checkpoint = site.directory / "checkpoint"
    for partitions, replayed in ((2, [False, False]), (3, [True])):
        df = inputs.flights(spark, site.directory / "source").repartition(partitions)
        query = sink(site).start(
            df.selectExpr("cast(id AS string) AS key", "carrier AS value"),
            checkpoint_location=checkpoint,
            available_now=True,
        )
        query.awaitTermination()
        assert [report.already_committed for report in query.reports] == replayed
        assert site.ids_there() == list(range(2 * ROWS))
        forget(checkpoint, "commits", 1)
    assert site.staged() == []


def test_senders(spark: SparkSession, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job sends each share of what is large under a name of its own; what is small, the driver sends."""
    monkeypatch.setattr(checks, "_SHARE", 1_000)
    by_driver: list[int] = []
    send = Sender.send
    monkeypatch.setattr(Sender, "send", lambda self, epoch: (by_driver.append(epoch.rows), send(self, epoch)))
    cluster = site.cluster(senders=2)
    writer = KafkaSink(cluster, site.name, ledger=site.directory / "ledger", uid="u")
    writer.write(numbers(spark, ROWS), txn_id="a")
    writer.write(numbers(spark, ROWS).selectExpr("cast(key + 200 AS string) AS key", "value"))
    writer.write(spark.sql("SELECT '400' AS key, 'v' AS value"))
    assert site.ids_there() == list(range(2 * ROWS + 1))
    assert site.staged() == []
    assert by_driver == [1]
    inputs.add_file(site.directory / "source", 0, rows=ROWS)
    flights = inputs.flights(spark, site.directory / "source").repartition(2)
    stream = flights.selectExpr("cast(id + 401 AS string) AS key", "carrier AS value")
    writer.start(
        stream, checkpoint_location=site.directory / "checkpoint", available_now=True
    ).awaitTermination()
    assert site.ids_there() == list(range(3 * ROWS + 1))
    assert by_driver == [1]


@pytest.mark.nightly
@pytest.mark.timeout(600 + 120 * KILLS)
@pytest.mark.parametrize("senders", [1, 2])
def test_every_row_once_whatever_is_killed(site: Site, senders: int) -> None:
    """Kills of workers, JVM, driver and broker; without Spark, tests/sinks/kafka does so for each change."""
    seed = time.time_ns()
    print("seed", seed)  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    files = 4 * KILLS
    for number in range(files):
        inputs.add_file(site.directory / "source", number, rows=ROWS)
    run_and_kill(site, moments, senders)
    named = (site.broker.servers, site.name, site.markers, site.directory, senders)
    assert sink_of(*named).recover() == []
    assert site.ids_there() == list(range(files * ROWS))
    assert site.staged() == []


def run_and_kill(site: Site, moments: random.Random, senders: int) -> None:
    """Start, kill and start again, until the stream comes to its end."""
    arguments = ("kafka_stream", site.broker.servers, site.name, site.markers, site.directory, senders)
    log = site.directory / "log"
    drivers: list[Driver] = []
    try:
        for kill in range(KILLS):
            driver = Driver(*arguments, log=log)
            drivers.append(driver)
            driver.wait_for("started")
            before = rows_of(site)
            while driver.runs and rows_of(site) == before:
                time.sleep(0.05)
            time.sleep(moments.uniform(0, 1))
            if kill % 2 == 0:
                site.broker.crash()
                time.sleep(moments.uniform(0, 1))
                site.broker.start()
                time.sleep(moments.uniform(0, 1))
            driver.kill_a_worker()
            time.sleep(moments.uniform(0, 1))
            driver.kill_jvm() if kill % 3 == 1 else driver.kill()
        with Driver(*arguments, log=log) as last:
            last.wait_for("done")
            assert last.wait() == 0
    finally:
        for driver in drivers:
            driver.__exit__()


def rows_of(site: Site) -> int:
    """Records that were written so far, committed or not, marks of transactions among them."""
    return sum(site.ends(site.name).values())
