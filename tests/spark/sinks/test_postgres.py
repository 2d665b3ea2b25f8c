"""Spark writes into a table of PostgreSQL, by every door, and is killed while it does."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from filesink import ConfigError, DataError, PostgresSink, PostgresTable, RepeatedTxnError
from tests.sinks.postgres.server import TestServer, running
from tests.sinks.postgres.site import Site
from tests.spark import inputs
from tests.spark.checkpoints import forget
from tests.spark.drivers import Driver
from tests.spark.programs.postgres_stream import OPTIONS, sink_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 200
KILLS = 100  # of each kind of commit; without Spark there are some for each change, in tests/sinks/postgres
DDL = "id bigint, day date, carrier text"


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table of flights."""
    return Site(postgres, tmp_path, ddl=DDL)


def sink(site: Site, **options: Any) -> PostgresSink:
    """The sink, as a user makes it."""
    table = PostgresTable(f"{site.schema}.{site.table}", **options)
    return PostgresSink(site.conninfo, table, ledger=site.directory / "ledger")


DECIMAL = "-12345678901234567890.123456789012345678"
#: What Spark calls a value, and what an observer sees.
VALUES = {
    "true": True,
    "tinyint(-1)": -1,
    "smallint(2)": 2,
    "3": 3,
    "4L": 4,
    "float(0.5)": 0.5,
    "0.1D": 0.1,
    f"cast('{DECIMAL}' AS decimal(38,18))": DECIMAL,
    "'ß🦆'": "ß🦆",
    "X'00ff'": b"\x00\xff",
    "date'2024-02-29'": "2024-02-29",
    "timestamp'2024-02-29 12:00:00.123456'": "2024-02-29 12:00:00.123456+00:00",
    "timestamp_ntz'2024-02-29 12:00:00'": "2024-02-29 12:00:00",
    "time'12:34:56.123456'": "12:34:56.123456",
    "interval '1 02:03:04.5' day to second": "1 day, 2:03:04.500000",
    "array(1, null)": [1, None],
    "cast(null AS string)": None,
}


def test_every_type_of_spark(spark: SparkSession, site: Site) -> None:
    """From Spark's own values to an observer, in a table that the sink has made."""
    columns = [f"{text} AS c{number}" for number, text in enumerate(VALUES)]
    own = site.beside(ddl="")
    sink(own, on_missing="create").write(spark.range(2).selectExpr(*columns))
    expected = [value if not isinstance(value, str) else str(value) for value in VALUES.values()]
    for row in own.do("SELECT * FROM {t}"):
        seen = [
            str(one) if isinstance(want, str) else one for one, want in zip(row, VALUES.values(), strict=True)
        ]
        assert seen == expected


def test_a_batch_write_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Of the tasks that had ended when one could not: the server prepares fewer transactions.

    With one task more than the server has room for, none is still at work when that one fails.
    """
    with running(max_prepared_transactions="2") as server:
        site = Site(server, tmp_path, ddl="id bigint")
        own = sink(site, commit="prepared")
        with pytest.raises(ConfigError) as raised:
            own.write(spark.range(0, 10, 1, 3))
        assert (raised.value.code, site.leftovers()) == ("POSTGRES_PREPARED", [])
        assert own.write(spark.range(0, 10, 1, 2)).rows == 10


def test_write(spark: SparkSession, site: Site) -> None:
    """A batch write; a txn_id that comes back is known, and refused with other data."""
    inputs.add_file(site.directory / "source", 0, rows=ROWS)
    df = spark.read.parquet(str(site.directory / "source")).repartition(3)
    report = sink(site).write(df, txn_id="a")
    assert (report.rows, report.already_committed) == (ROWS, False)
    assert sink(site).write(df.coalesce(1), txn_id="a").already_committed
    with pytest.raises(RepeatedTxnError):
        sink(site).write(df.limit(3), txn_id="a")
    assert site.ids_there() == list(range(ROWS))
    assert site.leftovers() == []


def test_an_error_of_a_task_shows_no_value(spark: SparkSession, site: Site) -> None:
    """Not even where Spark prints it with all that led to it."""
    with pytest.raises(DataError, match="'carrier'") as raised:
        sink(site).write(spark.range(1).selectExpr("id", "'hush' || char(0) AS carrier"))
    assert "hush" not in repr(raised.value)
    assert "hush" not in repr(raised.value.__cause__)
    assert site.leftovers() == []


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_stream_and_its_replay(spark: SparkSession, site: Site, kind: str) -> None:
    """What Spark forgets to have done comes again with other partitions, and changes nothing."""
    if kind == "keys":
        site.do("ALTER TABLE {t} ADD PRIMARY KEY (id)")
    for number in range(2):
        inputs.add_file(site.directory / "source", number, rows=ROWS)
    checkpoint = site.directory / "checkpoint"
    for partitions, replayed in ((2, [False, False]), (3, [True])):
        query = sink(site, **OPTIONS[kind]).start(
            inputs.flights(spark, site.directory / "source").repartition(partitions),
            checkpoint_location=checkpoint,
            available_now=True,
        )
        query.awaitTermination()
        assert [report.already_committed for report in query.reports] == replayed
        assert site.ids_there() == list(range(2 * ROWS))
        forget(checkpoint, "commits", 1)
    assert site.leftovers() == []


@contextmanager
def observed(site: Site) -> Iterator[list[int]]:
    """How many rows somebody sees who looks all the time, while the server lets him."""
    seen: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            with suppress(psycopg.OperationalError):
                seen.append(site.do("SELECT count(*) FROM {t}")[0][0])
            time.sleep(0.02)

    observer = threading.Thread(target=look)
    observer.start()
    try:
        yield seen
    finally:
        ended.set()
        observer.join()


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(600 + 120 * KILLS)
@pytest.mark.parametrize("kind", OPTIONS)
def test_every_row_once_whatever_is_killed(site: Site, kind: str) -> None:
    """Kills of workers, JVM, driver and server at random moments, while an observer looks.

    With staged rows he never sees a part of an epoch, and what he has seen never goes.
    """
    seed = time.time_ns()
    print("seed", seed)  # noqa: T201 - shown if the test fails
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    if kind == "keys":
        site.do("ALTER TABLE {t} ADD PRIMARY KEY (id)")
    files = 4 * KILLS
    for number in range(files):
        inputs.add_file(site.directory / "source", number, rows=ROWS)
    with observed(site) as seen:
        run_and_kill(site, kind, moments)
    table = f"{site.schema}.{site.table}"
    assert sink_of(kind, site.conninfo, table, site.directory).recover() == []
    assert site.ids_there() == list(range(files * ROWS))
    assert seen == sorted(seen)
    assert kind == "prepared" or {count % ROWS for count in seen} == {0}
    assert site.leftovers() == []


def run_and_kill(site: Site, kind: str, moments: random.Random) -> None:
    """Start, kill and start again, until the stream comes to its end."""
    table = f"{site.schema}.{site.table}"
    arguments = ("postgres_stream", kind, site.conninfo, table, site.directory)
    log = site.directory / "log"
    drivers: list[Driver] = []
    try:
        for kill in range(KILLS):
            driver = Driver(*arguments, log=log)
            drivers.append(driver)
            driver.wait_for("started")
            before = site.do("SELECT count(*) FROM {t}")[0][0]
            while driver.runs and site.do("SELECT count(*) FROM {t}")[0][0] == before:
                time.sleep(0.05)
            time.sleep(moments.uniform(0, 1))
            if kill % 2 == 0:
                site.server.crash()
                time.sleep(moments.uniform(0, 1))
                site.server.start()
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
