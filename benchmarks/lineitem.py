"""Batch throughput: TPC-H lineitem at scale factor 1 (6,001,215 rows), against Spark's own writer.

Flat into one directory, and by month of l_shipdate into 84. Same input files, cores and codec.
Spark's writer syncs nothing; ours has every file and directory on disk before it returns.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink import BucketAssigner, FileSink, FileSinkBuilder
from formats import ParquetWriterFactory
from paired import Contender, compare, options, seconds
from sessions import start_spark

PARTS = 8


def main() -> None:
    """Make the data once, then measure both layouts."""
    arguments = _arguments()
    source = generate(arguments.cache, arguments.scale)
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    monthly = lineitem.withColumn("l_shipmonth", F.date_format("l_shipdate", "yyyy-MM"))
    out = arguments.cache / "lineitem-out"
    rows = lineitem.count()
    run = partial(seconds_to_write, out=out, rows=rows)
    compare(
        f"lineitem SF{arguments.scale} flat",
        baseline=Contender(name="df.write.parquet", measure=partial(run, lambda: spark_flat(lineitem, out))),
        ours=Contender(name="filesink", measure=partial(run, lambda: ours_flat(lineitem, out))),
        unit="seconds",
        rounds=arguments.rounds,
    )
    compare(
        f"lineitem SF{arguments.scale} by month",
        baseline=Contender(name="partitionBy", measure=partial(run, lambda: spark_monthly(monthly, out))),
        ours=Contender(name="filesink", measure=partial(run, lambda: ours_monthly(lineitem, out))),
        unit="seconds",
        rounds=arguments.rounds,
    )
    spark.stop()


def spark_flat(lineitem: DataFrame, out: Path) -> None:
    """Spark's writer, one directory."""
    lineitem.write.parquet(str(out), compression="snappy")


def ours_flat(lineitem: DataFrame, out: Path) -> None:
    """Ours, one directory."""
    flat = BucketAssigner.base_path_bucket_assigner()
    _builder(out).with_bucket_assigner(flat).build().write(lineitem)


def spark_monthly(monthly: DataFrame, out: Path) -> None:
    """Spark's writer, one directory per month; the month is a column it drops from the files."""
    monthly.write.partitionBy("l_shipmonth").parquet(str(out), compression="snappy")


def ours_monthly(lineitem: DataFrame, out: Path) -> None:
    """Ours, one directory per month, computed from the date itself."""
    by_month = BucketAssigner.date_time_bucket_assigner("yyyy-MM", column="l_shipdate")
    _builder(out).with_bucket_assigner(by_month).build().write(lineitem)


def generate(cache: Path, scale: int) -> Path:
    """The directory of lineitem's Parquet files, made with tpchgen-cli if it is not there yet."""
    source = cache / f"tpch-sf{scale}"
    if not (source / "lineitem").is_dir():
        unfinished = cache / f"tpch-sf{scale}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        tool = Path(sys.executable).with_name("tpchgen-cli")
        options = ["--scale-factor", str(scale), "--tables", "lineitem", "--parts", str(PARTS), "--quiet"]
        subprocess.run([tool, "parquet", *options, "--output-dir", unfinished], check=True)
        unfinished.rename(source)
    return source / "lineitem"


def seconds_to_write(work: Callable[[], object], *, out: Path, rows: int) -> float:
    """How long ``work`` takes to write Parquet files below ``out``; they must hold ``rows`` rows."""
    shutil.rmtree(out, ignore_errors=True)
    taken = seconds(work)
    pattern = f"{out}/**/*.parquet"
    found = duckdb.sql(f"SELECT count(*) FROM read_parquet('{pattern}')").fetchall()[0][0]  # noqa: S608
    if found != rows:
        raise SystemExit(f"{out} holds {found:,} rows instead of {rows:,}: nothing was measured")
    shutil.rmtree(out)
    return taken


def _builder(out: Path) -> FileSinkBuilder:
    return FileSink.for_bulk_format(str(out), ParquetWriterFactory(compression="snappy"))


def _arguments() -> argparse.Namespace:
    parser = options("Batch throughput on TPC-H lineitem", rounds=5)
    parser.add_argument("--scale", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
