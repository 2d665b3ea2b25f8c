"""Data that is not lineitem: 300 columns, nested columns, and 90 % of the rows in one of 51 buckets.

Each against Spark's own writer of the same files. Wide and nested rows are made by Spark once and kept as
Parquet; the skewed ones are lineitem with a bucket column.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

from filesink import BucketAssigner, FileSink
from formats import ParquetWriterFactory
from lineitem import generate, seconds_to_write
from paired import Contender, compare, options
from sessions import start_spark

COLUMNS, WIDE_ROWS = 300, 200_000
NESTED_ROWS = 1_000_000
FILES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of rows. ``bucket`` is a column that becomes a directory, ``""`` for none."""

    title: str
    rows: Callable[[SparkSession, Path], DataFrame]
    bucket: str = ""


def wide(spark: SparkSession, cache: Path) -> DataFrame:
    """A third each of integers, floating-point numbers and short strings."""

    def make() -> DataFrame:
        kinds = (
            lambda n: F.col("id") * n,
            F.rand,
            lambda n: F.concat(F.lit("value-"), F.pmod(F.col("id") * n, F.lit(1000)).cast("string")),
        )
        columns = [kinds[n % 3](n).alias(f"column_{n}") for n in range(COLUMNS)]
        return spark.range(0, WIDE_ROWS, 1, FILES).select(*columns)

    return kept(spark, cache / "wide", make)


def nested(spark: SparkSession, cache: Path) -> DataFrame:
    """A struct, a list of structs and a map in each row."""

    def make() -> DataFrame:
        item = "struct(x as number, concat('item-', x % 100) as name, x * 0.5d as price)"
        return spark.range(0, NESTED_ROWS, 1, FILES).selectExpr(
            "id",
            "struct(id % 1000 as customer, concat('street ', id % 5000) as street) as address",
            f"transform(sequence(id, id + id % 5), x -> {item}) as items",
            "map('a', id % 7, 'b', id % 11) as counts",
        )

    return kept(spark, cache / "nested", make)


def skewed(spark: SparkSession, cache: Path) -> DataFrame:
    """lineitem: nine of ten orders in one bucket, the tenth in fifty."""
    lineitem = spark.read.parquet(str(generate(cache, 1)))
    small = F.concat(F.lit("small-"), F.pmod(F.col("l_partkey"), F.lit(50)).cast("string"))
    is_small = F.pmod(F.xxhash64("l_orderkey"), F.lit(10)) == 0
    return lineitem.withColumn("bucket", F.when(is_small, small).otherwise(F.lit("large")))


SHAPES = {
    "wide": Shape(title=f"{COLUMNS} columns, {WIDE_ROWS:,} rows", rows=wide),
    "nested": Shape(title=f"struct, list and map, {NESTED_ROWS:,} rows", rows=nested),
    "skewed": Shape(title="lineitem SF1, 90 % in one of 51 buckets", rows=skewed, bucket="bucket"),
}


def main() -> None:
    """Measure the chosen shapes."""
    arguments = _arguments()
    spark = start_spark()
    out = arguments.cache / "shapes-out"
    for name in arguments.only or SHAPES:
        shape = SHAPES[name]
        df = shape.rows(spark, arguments.cache)
        run = partial(seconds_to_write, out=out, rows=df.count())
        compare(
            shape.title,
            baseline=Contender(
                name="partitionBy" if shape.bucket else "df.write.parquet",
                measure=partial(run, partial(write_by_spark, shape, df, out)),
            ),
            ours=Contender(name="filesink", measure=partial(run, partial(write_by_ours, shape, df, out))),
            unit="seconds",
            rounds=arguments.rounds,
        )
    spark.stop()


def kept(spark: SparkSession, directory: Path, make: Callable[[], DataFrame]) -> DataFrame:
    """What ``make`` gives, from files that are made once."""
    if not (directory / "_SUCCESS").exists():
        make().write.mode("overwrite").parquet(str(directory))
    return spark.read.parquet(str(directory))


def write_by_spark(shape: Shape, df: DataFrame, out: Path) -> None:
    """Spark's own writer."""
    writer = df.write.partitionBy(shape.bucket) if shape.bucket else df.write
    writer.parquet(str(out), compression="snappy")


def write_by_ours(shape: Shape, df: DataFrame, out: Path) -> None:
    """The same directories by ours."""
    assigner = BucketAssigner.base_path_bucket_assigner()
    if shape.bucket:
        assigner = BucketAssigner.partition_bucket_assigner(shape.bucket)
    builder = FileSink.for_bulk_format(str(out), ParquetWriterFactory(compression="snappy"))
    builder.with_bucket_assigner(assigner).build().write(df)


def _arguments() -> argparse.Namespace:
    parser = options("Batch writes of wide, nested and skewed rows", rounds=3)
    parser.add_argument("--only", action="append", choices=list(SHAPES), help="only this; may be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    main()
