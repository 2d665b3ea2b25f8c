"""Table formats on Spark: lineitem and micro-batches into Delta Lake and Apache Iceberg, paired with ours.

A table format keeps the list of its files in a log or in metadata, so that only its readers see a table;
ours are seen by whoever lists. Both are taken as they come, but for the codec and one number: Delta
keeps its state in 50 Spark partitions, made for clusters, which take most of a small commit on two
cores; it gets two. Iceberg shuffles a partitioned write so that few tasks write to a month, Delta and
ours do not. Neither syncs its files.

Their jars know one minor version of Spark, and not the newest: the program makes an environment with
the newest PySpark that both know, once, and goes on there. Spark fetches the jars itself; they are put
beside its own, as a cluster has them, since those of ``spark.jars`` are read again by each Python task.
Hudi has no jar for a Spark that ours runs on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.streaming import StreamingQuery

from environments import environment, own_packages_only
from lineitem import generate, ours_flat, ours_monthly, seconds_to_write
from micro_batch import WARM_UP, make_source, milliseconds_of_a_batch, start_ours
from paired import Contender, compare, options
from sessions import start_spark

SPARK = "4.1"
JARS = (
    f"io.delta:delta-spark_{SPARK}_2.13:4.4.0",
    f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_2.13:1.12.0",
)
_THEIRS = ("io.delta_", "io.unitycatalog_", "org.apache.iceberg_")
BATCH_ROWS = 10_000
_ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Make the environment, and measure there."""
    arguments = _arguments()
    if not pyspark.__version__.startswith(f"{SPARK}."):
        wanted = (f"pyspark=={SPARK}.*", f"{_ROOT}[bench]")
        python = environment(arguments.cache / "lakes", *wanted)
        command = [python, __file__, *sys.argv[1:]]
        # The filesink that is there is the one of the day on which the environment was made.
        variables = {**own_packages_only(), "PYTHONPATH": str(_ROOT)}
        sys.exit(subprocess.run(command, env=variables, check=False).returncode)
    if fetch_jars(Path(pyspark.__file__).parent / "jars"):
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - anew, with a JVM that has them
    work = Path(tempfile.mkdtemp(prefix="filesink-lakes-"))
    source = generate(arguments.cache, 1)
    make_source(work / "source", batches=arguments.batches + WARM_UP, rows=BATCH_ROWS)
    spark = start_spark(**_settings(work / "iceberg"))
    try:
        compare_batches(spark.read.parquet(str(source)), work, rounds=arguments.rounds)
        compare_micro_batches(spark, work, rounds=arguments.rounds)
    finally:
        spark.stop()
        shutil.rmtree(work)


def fetch_jars(beside: Path) -> bool:
    """Whether the jars were not among Spark's own yet; now they are."""
    if any(beside.glob(f"{_THEIRS[0]}*")):
        return False
    spark = start_spark(**{"spark.jars.packages": ",".join(JARS)})
    fetched = spark.conf.get("spark.jars") or ""
    spark.stop()
    for jar in map(Path, fetched.replace("file://", "").split(",")):
        if jar.name.startswith(_THEIRS):  # all others are Spark's, too
            shutil.copy(jar, beside)
    return True


def compare_batches(lineitem: DataFrame, work: Path, *, rounds: int) -> None:
    """Flat and by month, each table format against ours."""
    monthly = lineitem.withColumn("l_shipmonth", F.date_format("l_shipdate", "yyyy-MM"))
    rows = lineitem.count()
    fresh = _fresh_names()
    delta, iceberg, out = work / "delta", work / "iceberg", work / "out"
    ours = {"flat": partial(ours_flat, lineitem, out), "by month": partial(ours_monthly, lineitem, out)}
    peers: dict[tuple[str, str], tuple[Path, Callable[[], None]]] = {
        ("flat", "Delta"): (delta, lambda: delta_table(lineitem, delta / next(fresh))),
        ("flat", "Iceberg"): (iceberg, lambda: iceberg_table(lineitem, next(fresh))),
        ("by month", "Delta"): (delta, lambda: delta_table(monthly, delta / next(fresh), "l_shipmonth")),
        ("by month", "Iceberg"): (iceberg, lambda: iceberg_table(monthly, next(fresh), "l_shipmonth")),
    }
    for (layout, name), (where, write) in peers.items():
        theirs = partial(seconds_to_write, write, out=where, rows=rows)
        compare(
            f"lineitem SF1 {layout}, {name} on Spark",
            baseline=Contender(name=name, measure=theirs),
            ours=Contender(
                name="filesink", measure=partial(seconds_to_write, ours[layout], out=out, rows=rows)
            ),
            unit="seconds",
            rounds=rounds,
        )


def compare_micro_batches(spark: SparkSession, work: Path, *, rounds: int) -> None:
    """A stream into each table format against ours."""
    run = partial(milliseconds_of_a_batch, spark=spark, work=work)
    for name, start in {"Delta": start_delta, "Iceberg": start_iceberg}.items():
        compare(
            f"micro-batch of {BATCH_ROWS:,} rows, {name} on Spark",
            baseline=Contender(name=name, measure=partial(run, start=partial(start, fresh=_fresh_names()))),
            ours=Contender(name="filesink", measure=partial(run, start=start_ours)),
            unit="ms per addBatch",
            rounds=rounds,
        )


def delta_table(rows: DataFrame, path: Path, *by: str) -> None:
    """A new table; a path of its own, since Delta remembers what it has seen at a path."""
    rows.write.format("delta").partitionBy(*by).save(str(path))


def iceberg_table(rows: DataFrame, name: str, *by: str) -> None:
    """A new table of the session's catalog."""
    writer = rows.writeTo(f"ice.db.{name}").tableProperty("write.parquet.compression-codec", "snappy")
    if by:
        writer = writer.partitionedBy(*(F.col(column) for column in by))
    writer.create()


def start_delta(stream: DataFrame, work: Path, *, fresh: Iterator[str]) -> StreamingQuery:
    """A query that appends to a new table."""
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(work / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(work / "out" / next(fresh)))


def start_iceberg(stream: DataFrame, work: Path, *, fresh: Iterator[str]) -> StreamingQuery:
    """A query that appends to a new table, which it does not create by itself."""
    name = f"stream_{next(fresh)}"
    iceberg_table(stream.sparkSession.createDataFrame([], stream.schema), name)
    writer = stream.writeStream.format("iceberg").option("checkpointLocation", str(work / "checkpoint"))
    return writer.trigger(availableNow=True).toTable(f"ice.db.{name}")


def _fresh_names() -> Iterator[str]:
    return (f"t{number}" for number in count())


def _settings(warehouse: Path) -> dict[str, str]:
    extensions = (
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    return {
        "spark.sql.extensions": ",".join(extensions),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(warehouse),
    }


def _arguments() -> argparse.Namespace:
    parser = options("Table formats on Spark", rounds=3)
    parser.add_argument("--batches", type=int, default=20, help="measured micro-batches of each query")
    return parser.parse_args()


if __name__ == "__main__":
    main()
