"""``HttpSink`` behind its doors, and drivers of it that are killed: at least once, doubles under one key."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink import ConfigError, HttpService, HttpSink, Sending
from tests.sinks.http.server import HangUp, HttpServer, Received, Reply, serving
from tests.spark import inputs, outside
from tests.spark.drivers import Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 100
KILLS = 300  # without Spark there are some for each change, in tests/sinks/http


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A service that takes everything, until it is told otherwise."""
    with serving() as found:
        yield found


def test_a_batch_write(spark: SparkSession, server: HttpServer, tmp_path: Path, monkeypatch) -> None:
    """Each record arrives once, with the token of the environment of its task."""
    monkeypatch.setenv("EVENTS_TOKEN", "of the driver")
    monkeypatch.setitem(spark.sparkContext.environment, "EVENTS_TOKEN", "of the tasks")
    service = HttpService(server.url, token_env="EVENTS_TOKEN")
    sink = HttpSink(service, ledger=tmp_path / "ledger", sending=Sending(records=10))
    df = spark.range(0, 100, numPartitions=4).selectExpr("id", "date '2026-01-01' AS day")
    report = sink.write(df, txn_id="a")
    assert (report.rows, report.metrics["delivered"], report.metrics["requests"]) == (100, 100, 12)
    assert sorted(record["id"] for record in server.records()) == list(range(100))
    assert server.records()[0]["day"] == "2026-01-01"
    assert {request.headers["authorization"] for request in server.received} == {"Bearer of the tasks"}
    assert sink.write(df, txn_id="a").already_committed
    assert len(server.received) == 12


def test_a_stream(spark: SparkSession, server: HttpServer, tmp_path: Path) -> None:
    """What a service has not taken in one epoch comes with the next, or at the end."""
    for number in range(2):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    server.answers = lambda request: Reply(200 if request.key.split("/")[1] == "0" or tried(request) else 503)
    tries: set[str] = set()

    def tried(request: Received) -> bool:
        known = request.key in tries
        tries.add(request.key)
        return known

    sink = HttpSink(server.url, ledger=tmp_path / "ledger", sending=Sending(records=30, at_commit="keep"))
    query = sink.start(
        inputs.flights(spark, tmp_path / "source"),
        checkpoint_location=tmp_path / "checkpoint",
        available_now=True,
    )
    query.awaitTermination()
    assert sorted(record["id"] for record in server.records()) == list(range(2 * ROWS))
    assert [report.rows for report in query.reports] == [ROWS, ROWS, 0]


def test_what_a_task_cannot_send_is_told_as_it_is(
    spark: SparkSession, server: HttpServer, tmp_path: Path
) -> None:
    """By its class and code, to a program; and the commonest slip before a task runs."""
    server.answers = lambda _: Reply(403)
    sink = HttpSink(server.url, ledger=tmp_path / "ledger")
    with pytest.raises(Exception, match="HTTP 403 Forbidden") as raised:
        sink.write(spark.range(1))
    assert (type(raised.value).__name__, raised.value.code) == ("DeliveryError", "UNUSABLE")
    with pytest.raises(ConfigError):
        HttpSink("example.org", ledger=tmp_path / "ledger")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(600 + 120 * KILLS)
def test_nothing_is_lost_whatever_is_killed(server: HttpServer, tmp_path: Path) -> None:
    """Kills of workers, JVM and driver, with a service that breaks: a record that comes twice has one key."""
    seed = time.time_ns()
    moments, lock = random.Random(seed), threading.Lock()  # noqa: S311 - moments, not secrets
    lost: list[Received] = []

    def trouble(request: Received):
        with lock:
            kind = moments.random()
        if kind < 0.05:
            lost.append(request)  # read, and perhaps taken
            return HangUp()
        return Reply(503 if kind < 0.15 else 200)

    server.answers = trouble
    files = 3 * KILLS  # so that each driver has something to send before it is killed
    for number in range(files):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    run_and_kill(server, tmp_path, moments)
    keys: defaultdict[int, set[str]] = defaultdict(set)
    for request in (*server.taken, *lost):
        for record in request.records():
            keys[record["id"]].add(request.key)
    assert {record["id"] for record in server.records()} == set(range(files * ROWS)), f"seed {seed}"
    assert [found for found in keys.values() if len(found) > 1] == [], f"seed {seed}"


def run_and_kill(server: HttpServer, directory: Path, moments: random.Random) -> None:
    """Start, kill and start again."""
    arguments = ("http_stream", server.url, directory)
    drivers: list[Driver] = []
    try:
        for kill in range(KILLS):
            known = len(server.received)
            driver = Driver(*arguments, log=directory / "log")
            drivers.append(driver)
            driver.wait_for("started")
            outside.eventually(lambda: not driver.runs or len(server.received) > known, seconds=300)  # noqa: B023
            driver.kill_a_worker()
            time.sleep(moments.uniform(0, 1))
            driver.kill_jvm() if kill % 2 == 0 else driver.kill()
        with Driver(*arguments, log=directory / "log") as last:
            last.wait_for("done")
            assert last.wait() == 0
    finally:
        for driver in drivers:
            driver.__exit__()
