"""Stream a year of flights into one directory per day, then read them back with another engine.

    python examples/flights_demo.py [--output demo-output]

Run it twice: the second time everything is committed already and nothing is added.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import SparkSession
from tqdm import tqdm

import flights
from filesink import BucketAssigner, FileSink, ParquetWriterFactory

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run the demo; the exit status is 0 if every flight is there exactly once."""
    output = _arguments().output.resolve()
    print(f"Source: 12 monthly files in {output / 'source'}")
    flights.prepare(output / "source")
    spark = start_spark()
    try:
        added = stream(
            spark, source=output / "source", base=output / "flights", checkpoint=output / "checkpoint"
        )
    finally:
        spark.stop()
    print(f"{added:,} rows added." if added else "Everything was committed before: nothing to add.")
    total = report(output / "flights")
    return 0 if total == flights.ROWS else 1


def stream(spark: SparkSession, *, source: Path, base: Path, checkpoint: Path) -> int:
    """Write whatever the source has that the sink has not; returns the number of rows read."""
    months = (
        spark.readStream.schema(flights.SPARK_SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(source))
    )
    sink = (
        FileSink.for_bulk_format(str(base), ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd", column="time_hour"))
        .with_uid("flights")
        .build()
    )
    query = sink.start(months, checkpoint_location=str(checkpoint), available_now=True)
    return follow(query)


def follow(query: StreamingQuery) -> int:
    """Show the rows of finished micro-batches until the query has ended; returns their number."""
    rows: dict[int, int] = {}
    with tqdm(total=flights.ROWS, unit=" rows", unit_scale=True, desc="Streaming", leave=False) as bar:
        ended = False
        while not ended:
            ended = bool(query.awaitTermination(1))
            rows |= {progress["batchId"]: progress["numInputRows"] for progress in query.recentProgress}
            bar.update(sum(rows.values()) - bar.n)
    return sum(rows.values())


def report(base: Path) -> int:
    """Print what DuckDB finds, without any help from the sink; returns the number of rows."""
    days = duckdb.sql(
        f"""SELECT parse_filename(parse_dirpath(filename)), count(DISTINCT filename), count(*)
            FROM read_parquet('{base}/*/*.parquet', filename = true) GROUP BY 1 ORDER BY 1"""  # noqa: S608
    )
    table = days.fetchall()
    print(f"\nDuckDB reads {base}/*/*.parquet:\n\n  day         files    rows")
    for day, files, rows in table[:4]:
        print(f"  {day}  {files:>5}  {rows:>6,}")
    print("  …")
    for day, files, rows in table[-4:]:
        print(f"  {day}  {files:>5}  {rows:>6,}")
    total = sum(rows for _, _, rows in table)
    files = sum(files for _, files, _ in table)
    print(f"  {len(table)} days   {files:>5} {total:>7,}  (expected {flights.ROWS:,})\n")
    print_tree(base / table[0][0])
    return total


def print_tree(bucket: Path) -> None:
    """Print the files of one bucket, hidden ones too."""
    print(f"{bucket.parent.name}/{bucket.name}/")
    for file in sorted(bucket.iterdir()):
        print(f"  {file.name}  {file.stat().st_size:,} bytes")


def start_spark() -> SparkSession:
    """A local Spark that says nothing but errors."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark starts whatever python3 is on PATH
    quiet = f"-Dlog4j2.configurationFile=file:{HERE / 'log4j2.properties'}"
    return (
        SparkSession.builder.master("local[2]")
        .appName("flights")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", quiet)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="where to put everything")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
