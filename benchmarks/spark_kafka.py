"""Two million rows into a topic of Kafka: ours against Spark's own sink, which may write rows again.

Both read the same Parquet with two tasks and write to the same broker, on the loopback interface. An observer
then counts what is committed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from filesink import KafkaSink
from paired import Contender, compare, seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fetched import kept
from tests.sinks.kafka.broker import running
from tests.sinks.kafka.site import Site

_POM = Path(__file__).with_name("spark_kafka.xml")
_FETCH = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_JARS = ("spark-sql-kafka-*", "spark-token-provider-kafka-*", "kafka-clients-*", "commons-pool2-*")
_PARTITIONS = 4
_WAYS = {1: "sent by the driver", 2: "two senders"}


def spark_jars() -> str:
    """What a session needs for Spark's own sink; Spark brings the rest."""
    command = ["mvn", "-q", "-B", "-f", str(_POM), _FETCH, "-DincludeScope=runtime"]
    home = kept("spark-kafka-4.2.0", lambda made: [*command, f"-DoutputDirectory={made}"])
    return ",".join(str(next(home.glob(name))) for name in _JARS)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A topic, and rows for it."""

    site: Site
    rows: DataFrame
    count: int

    def theirs(self) -> float:
        """Spark's own."""
        return self._measured(self._save)

    def ours(self, senders: int) -> float:
        """``KafkaSink``, whose rows are sent by so many."""
        return self._measured(lambda: self._sink(senders))

    def _save(self) -> None:
        options = {"kafka.bootstrap.servers": self.site.broker.servers, "topic": self.site.name}
        self.rows.write.format("kafka").options(**options).save()

    def _sink(self, senders: int) -> None:
        ledger = tempfile.mkdtemp(dir=self.site.directory)
        KafkaSink(self.site.cluster(senders=senders), self.site.name, ledger=ledger).write(self.rows)

    def _measured(self, write: Callable[[], object]) -> float:
        self.site.empty(_PARTITIONS)
        taken = seconds(write)
        found = self.site.count()
        if found != self.count:
            raise SystemExit(
                f"the topic holds {found:,} rows instead of {self.count:,}: nothing was measured"
            )
        return taken


def compare_kafka(spark: SparkSession, *, rows: int, rounds: int) -> None:
    """Measure both. The session has ``spark_jars``."""
    with tempfile.TemporaryDirectory() as name, running() as broker:
        spark.range(rows, numPartitions=8).selectExpr(
            "cast(id AS string) AS key",
            "to_json(struct(id, id % 150001 AS customer, 'a note, as most have' AS note)) AS value",
        ).write.parquet(f"{name}/rows")
        site = Site(broker, Path(name), partitions=_PARTITIONS)
        bench = Bench(site=site, rows=spark.read.parquet(f"{name}/rows"), count=rows)
        for senders, who in _WAYS.items():
            compare(
                f"Kafka, {rows:,} rows, {who}",
                baseline=Contender(name="df.write, format kafka", measure=bench.theirs),
                ours=Contender(name=f"KafkaSink, {who}", measure=partial(bench.ours, senders)),
                unit="seconds",
                rounds=rounds,
                warm_ups=2,
            )
