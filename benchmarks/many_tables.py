"""A thousand tables in one epoch, against one table of a thousand buckets: as many files of the same rows."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from filesink import BucketAssigner, FileSink, ParquetWriterFactory
from paired import Contender, compare, seconds

_TABLES = 1_000
_ROWS = ("id", "id / 1e6 AS discount", "concat('note of row ', id) AS note")
_WAYS = {
    "one table of 1,000 buckets": BucketAssigner.partition_bucket_assigner("bucket"),
    "1,000 tables": BucketAssigner.table_bucket_assigner("bucket", path="${schema_name}/${table_name}"),
}


def compare_tables(spark: SparkSession, rows: int, rounds: int) -> None:
    """Measure both; the rows of a table lie among all others."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        names = f"concat('shop.t', pmod(xxhash64(id), {_TABLES})) AS bucket"
        spark.range(0, rows, numPartitions=2).selectExpr(*_ROWS, names).write.parquet(str(directory / "rows"))
        given = spark.read.parquet(str(directory / "rows"))
        theirs, ours = (
            Contender(name=way, measure=partial(_write, given, assigner, directory / "out", rows))
            for way, assigner in _WAYS.items()
        )
        compare(
            f"{rows:,} rows into {_TABLES:,} tables",
            baseline=theirs,
            ours=ours,
            unit="seconds",
            rounds=rounds,
        )


def _write(given: DataFrame, assigner: BucketAssigner, out: Path, rows: int) -> float:
    shutil.rmtree(out, ignore_errors=True)
    sink = FileSink.for_bulk_format(out, ParquetWriterFactory()).with_bucket_assigner(assigner).build()
    taken = seconds(lambda: sink.write(given))
    found = ds.dataset(out, format="parquet")
    if found.count_rows() != rows or len({str(Path(one).parent) for one in found.files}) != _TABLES:
        raise SystemExit(
            f"{out} does not hold {rows:,} rows in {_TABLES:,} directories: nothing was measured"
        )
    return taken
