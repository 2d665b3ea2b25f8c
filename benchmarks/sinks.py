r"""How fast are sinks other than that of files? PostgreSQL against ``psql \copy`` of the same rows.

What ``CollectSink`` hands to a program is in ``collect``, a thousand tables are in ``many_tables``, letters
of other threads in ``letters``, a topic of Kafka in ``spark_kafka``.

The server is started for it, on the loopback interface, with its own defaults but for prepared
transactions. ``psql`` copies a CSV file that lies there, over one connection, into a table that is
empty; nobody has to make the file first. Ours reads Parquet, with two tasks, and is exactly once:
staged rows are written twice, and a second time into the server's log.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.csv as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from collect import compare_collect
from filesink import PostgresSink, PostgresTable
from letters import compare_letters
from many_tables import compare_tables
from paired import Contender, compare, options, seconds
from sessions import start_spark
from spark_kafka import compare_kafka, spark_jars

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.sinks.postgres.server import TestServer, running

_COLUMNS = """
    id bigint, customer bigint, quantity integer, price numeric(12,2), discount double precision,
    shipped date, ordered timestamptz, status text, note text
"""
_ROWS = (
    "id", "id % 150001 AS customer", "cast(id % 50 AS int) AS quantity",
    "cast(id % 1000000 AS decimal(12,2)) / 100 AS price0", "id / 1e6 AS discount",
    "date_add(date'1992-01-01', cast(id % 2500 AS int)) AS shipped",
    "timestamp_millis(1600000000000 + id * 37) AS ordered",
    "elt(1 + id % 4, 'DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN') AS status",
    "concat('note of row ', id, ', which is as long as most') AS note",
)  # fmt: skip
_PARTS = ("letters", "collect", "tables", "postgres", "kafka")
_WAYS: dict[str, dict[str, Any]] = {"staged": {}, "prepared": {"commit": "prepared"}}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One server, and the same rows as Parquet and as CSV."""

    server: TestServer
    spark: SparkSession
    directory: Path
    rows: int

    def copy(self) -> float:
        r"""``psql \copy``."""
        self._empty_table()
        statement = f"\\copy orders from {self.directory}/rows.csv csv"
        command = ["psql", "-q", self.server.conninfo, "-c", statement]
        taken = seconds(lambda: subprocess.run(command, check=True))
        self._check()
        return taken

    def write(self, way: str) -> float:
        """Ours."""
        self._empty_table()
        sink = PostgresSink(
            self.server.conninfo,
            PostgresTable("orders", **_WAYS[way]),
            ledger=tempfile.mkdtemp(dir=self.directory),
        )
        rows = self.spark.read.parquet(str(self.directory / "rows"))
        taken = seconds(lambda: sink.write(rows))
        self._check()
        return taken

    def _empty_table(self) -> None:
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS orders, filesink_epochs")
            connection.execute(f"CREATE TABLE orders ({_COLUMNS})")
            connection.execute("CHECKPOINT")

    def _check(self) -> None:
        with psycopg.connect(self.server.conninfo) as connection:
            found = connection.execute("SELECT count(*), count(DISTINCT id) FROM orders").fetchone()
        if found != (self.rows, self.rows):
            raise SystemExit(f"orders holds {found} rows instead of {self.rows:,}: nothing was measured")


def main() -> None:
    """Measure all, or one of them."""
    arguments = _arguments()
    wanted = {arguments.only} if arguments.only else set(_PARTS)
    if "letters" in wanted:
        compare_letters(arguments.rounds)
    spark = start_spark(**({"spark_jars": spark_jars()} if "kafka" in wanted else {}))
    if "collect" in wanted:
        compare_collect(spark, arguments.rows, arguments.rounds)
    if "tables" in wanted:
        compare_tables(spark, arguments.rows, arguments.rounds)
    if "postgres" in wanted:
        _compare_postgres(spark, arguments)
    if "kafka" in wanted:
        compare_kafka(spark, rows=arguments.rows, rounds=arguments.rounds)
    spark.stop()


def _compare_postgres(spark: SparkSession, arguments: argparse.Namespace) -> None:
    """Make the rows once, then compare each way."""
    with tempfile.TemporaryDirectory() as name, running(fsync="on", shared_buffers="128MB") as server:
        bench = Bench(server=server, spark=spark, directory=Path(name), rows=arguments.rows)
        _generate(bench)
        for way in _WAYS:
            compare(
                f"PostgreSQL, {arguments.rows:,} rows, {way}",
                baseline=Contender(name="psql \\copy", measure=bench.copy),
                ours=Contender(name=f"PostgresSink, {way}", measure=partial(bench.write, way)),
                unit="seconds",
                rounds=arguments.rounds,
            )


def _generate(bench: Bench) -> None:
    """The rows as eight Parquet files, and as one CSV file of the very same values."""
    given = bench.spark.range(0, bench.rows, numPartitions=8).selectExpr(*_ROWS)
    given = given.selectExpr(
        *("cast(price0 AS decimal(12,2)) AS price" if one == "price0" else one for one in given.columns)
    )
    given.write.parquet(str(bench.directory / "rows"))
    pc.write_csv(
        pq.read_table(bench.directory / "rows"),
        bench.directory / "rows.csv",
        pc.WriteOptions(include_header=False),
    )


def _arguments() -> argparse.Namespace:
    parser = options("Sinks other than that of files", rounds=5)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", choices=_PARTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
