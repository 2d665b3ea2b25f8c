"""How do I keep files of changes from a database, and today's state of the table?

    python examples/changes_to_files.py [--output demo-output/changes]

A tool such as Debezium tells each change as JSON: ``op`` is ``c`` (created), ``u`` (updated) or ``d``
(deleted), ``ts_ms`` the time, ``before`` and ``after`` the row. The stream of changes is kept as it came, by
day, and never replaced. The state is made from it, as often as you like, in one write that may be repeated.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from filesink import BucketAssigner, FileSink, FileSource, ParquetWriterFactory
from flights_demo import start_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW = "STRUCT<id: BIGINT, name: STRING, city: STRING>"
SCHEMA = f"op STRING, ts_ms BIGINT, position BIGINT, before {ROW}, after {ROW}"
DAY_1, DAY_2 = 1_767_225_600_000, 1_767_312_000_000  # the first and the second of January 2026
CHANGES = [
    ("c", DAY_1, None, (1, "Ada", "London")),
    ("c", DAY_1, None, (2, "Alan", "Wilmslow")),
    ("c", DAY_1, None, (3, "Grace", "New York")),
    ("u", DAY_2, (1, "Ada", "London"), (1, "Ada", "Paris")),
    ("d", DAY_2, (2, "Alan", "Wilmslow"), None),
]


def keep_changes(spark: SparkSession, source: Path, base: str, checkpoint: str) -> None:
    """Append what is new below ``source`` to the files of changes, one directory a day."""
    changes = spark.readStream.schema(SCHEMA).json(str(source))
    dated = changes.selectExpr(
        "op", "position", "timestamp_millis(ts_ms) AS ts", "coalesce(after.id, before.id) AS id", "after"
    )
    sink = (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("'day='yyyy-MM-dd", column="ts"))
        .with_uid("changes")
        .build()
    )
    sink.start(dated, checkpoint_location=checkpoint, available_now=True).awaitTermination()


def make_state(spark: SparkSession, changes: str, base: str) -> int:
    """Replace the state by the newest row of each id; returns the number of rows."""
    kept = FileSource.for_bulk_file_format(ParquetWriterFactory(), changes).build().read(spark)
    newest = kept.groupBy("id").agg({"position": "max"}).withColumnRenamed("max(position)", "position")
    state = kept.join(newest, ["id", "position"]).where("op <> 'd'").select("after.*")
    flat = BucketAssigner.base_path_bucket_assigner()
    builder = FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(flat)
    return builder.with_uid("state").build().write(state, mode="overwrite").visible_rows


def write_source(source: Path) -> None:
    """What a tool would bring: a file of changes."""
    names = ("id", "name", "city")
    lines = [
        {
            "op": op,
            "ts_ms": ts,
            "position": position,
            "before": before and dict(zip(names, before, strict=True)),
            "after": after and dict(zip(names, after, strict=True)),
        }
        for position, (op, ts, before, after) in enumerate(CHANGES)
    ]
    source.mkdir(parents=True)
    (source / "changes.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def table(spark: SparkSession, base: str) -> DataFrame:
    """Today's rows, as any reader of Parquet sees them."""
    return spark.read.parquet(base).orderBy("id")


def main() -> int:
    """Keep the changes, make the state, show it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("demo-output/changes"), help="where to put all")
    output = parser.parse_args().output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    write_source(output / "source")
    spark = start_spark()
    try:
        keep_changes(spark, output / "source", str(output / "changes"), str(output / "checkpoint"))
        make_state(spark, str(output / "changes"), str(output / "state"))
        table(spark, str(output / "state")).show()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
