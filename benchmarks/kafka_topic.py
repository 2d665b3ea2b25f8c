"""Rows into a topic of Kafka: ``KafkaSink`` against Spark's own sink, which may write rows twice.

A broker is started for it, on the loopback interface, with its own defaults. Both read the same Parquet with
two tasks and write to a new topic with two partitions. Spark's tasks send themselves; ours stage files,
and the driver sends them in transactions.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from filesink import KafkaSink
from paired import Contender, compare, seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.sinks.kafka.broker import Broker, running
from tests.sinks.kafka.site import Site

#: Spark's own sink, which its Ivy fetches: the newest that there is.
PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One broker, and rows as Parquet."""

    broker: Broker
    spark: SparkSession
    directory: Path
    rows: int

    def write_by_spark(self) -> float:
        """Spark's own."""
        site = self._site()
        options = {"kafka.bootstrap.servers": site.broker.servers, "topic": site.name}
        taken = seconds(lambda: self._given().write.format("kafka").options(**options).save())
        self._check(site)
        return taken

    def write(self) -> float:
        """Ours."""
        site = self._site()
        sink = KafkaSink(site.cluster(), site.name, ledger=site.directory / "ledger")
        taken = seconds(lambda: sink.write(self._given()))
        self._check(site)
        return taken

    def _given(self) -> DataFrame:
        return self.spark.read.parquet(str(self.directory / "rows"))

    def _site(self) -> Site:
        return Site(self.broker, Path(tempfile.mkdtemp(dir=self.directory)))

    def _check(self, site: Site) -> None:
        found = sum(site.ends(site.name).values())
        marks = 2 * (1 + self.rows // 100_000)  # of transactions: few, and each has a place among the rows
        site.delete(site.name)
        if not self.rows <= found <= self.rows + marks:
            raise SystemExit(
                f"the topic holds {found:,} records instead of {self.rows:,}: nothing was measured"
            )


def compare_kafka(spark: SparkSession, rows: int, rounds: int) -> None:
    """Make the rows once, then measure both."""
    with tempfile.TemporaryDirectory() as name, running() as broker:
        bench = Bench(broker=broker, spark=spark, directory=Path(name), rows=rows)
        given = spark.range(0, rows, numPartitions=2)
        columns = (
            "cast(id AS string) AS key",
            "concat('{\"n\":', id, ',\"s\":\"', sha1(string(id)), '\"}') AS value",
        )
        given.selectExpr(*columns).write.parquet(str(bench.directory / "rows"))
        compare(
            f"Kafka, {rows:,} rows",
            baseline=Contender(name="Spark's own sink", measure=bench.write_by_spark),
            ours=Contender(name="KafkaSink", measure=bench.write),
            unit="seconds",
            rounds=rounds,
        )
