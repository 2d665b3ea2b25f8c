"""What does a crash leave in the directory? Spark's own file sink and filesink, killed at the same moment.

    python examples/crash_demo.py [--output demo-output/crash] [--svg docs/images/crash.svg]

Each sink gets the same stream: 1,000 rows in four tasks. Three tasks finish; the fourth kills the driver's
JVM. Then the query is started again with its checkpoint and runs to its end. Both times DuckDB counts the
rows of ``*.parquet``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from crash_picture import Column, Listing, picture

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

ROWS = 1000
TASKS = 4
SINKS = {"spark": "Spark's file sink", "filesink": "filesink"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """The directories of one sink."""

    root: Path

    @property
    def source(self) -> Path:
        """What the stream reads."""
        return self.root / "source"

    @property
    def base(self) -> Path:
        """Where the files go."""
        return self.root / "events"

    @property
    def checkpoint(self) -> Path:
        """Where Spark notes its progress."""
        return self.root / "checkpoint"

    @property
    def died(self) -> Path:
        """There once the driver has been killed."""
        return self.root / "died"


def main() -> int:
    """Kill and restart both sinks; the exit status is 0 if ours has every row once."""
    arguments = _arguments()
    if arguments.run:
        _stream(arguments.run, Place(root=arguments.output))
        return 0
    shutil.rmtree(arguments.output, ignore_errors=True)
    columns = [_killed_and_restarted(sink, arguments.output.resolve() / sink) for sink in SINKS]
    for column in columns:
        rows = f"{column.killed.rows:,} rows after the kill, {column.restarted.rows:,} in the end"
        print(f"{column.title}: {rows}")
    if arguments.svg:
        arguments.svg.write_text(picture(columns, expected=ROWS))
    return 0 if columns[-1].restarted.rows == ROWS else 1


def _killed_and_restarted(sink: str, root: Path) -> Column:
    place = Place(root=root)
    place.base.mkdir(parents=True)
    place.source.mkdir()
    pq.write_table(pa.table({"id": range(ROWS)}), place.source / "rows.parquet")
    listings = []
    for _ in ("killed", "restarted"):
        program = [sys.executable, __file__, "--run", sink, "--output", str(root)]
        subprocess.run(program, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        listings.append(_listing(place.base))
    if not place.died.exists():
        sys.exit(f"The driver of {sink} was not killed, so there is nothing to show.")
    return Column(title=SINKS[sink], killed=listings[0], restarted=listings[1])


def _stream(sink: str, place: Place) -> None:
    from flights_demo import start_spark

    spark = start_spark()
    rows = _rows(spark, place)
    if sink == "spark":
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(place.checkpoint))
        writer.trigger(availableNow=True).start(str(place.base)).awaitTermination()
    else:
        from filesink import BucketAssigner, FileSink, ParquetWriterFactory

        flat = BucketAssigner.base_path_bucket_assigner()
        builder = FileSink.for_bulk_format(str(place.base), ParquetWriterFactory())
        ours = builder.with_bucket_assigner(flat).with_uid("events").build()
        ours.start(rows, checkpoint_location=str(place.checkpoint), available_now=True).awaitTermination()
    spark.stop()


def _rows(spark: SparkSession, place: Place) -> DataFrame:
    """The stream; its first run ends in a kill once all tasks but one have written."""
    rows = spark.readStream.schema("id BIGINT").parquet(str(place.source)).repartition(TASKS)
    driver = int(spark._jvm.ProcessHandle.current().pid())  # noqa: SLF001 - whom to kill
    base, died = place.base, place.died

    def pass_on(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        if context is not None and context.partitionId() == TASKS - 1 and not died.exists():
            _wait_for_files(base, TASKS - 1)
            died.touch()
            os.kill(driver, signal.SIGKILL)
            time.sleep(60)

    return rows.mapInPandas(pass_on, rows.schema)


def _wait_for_files(base: Path, number: int) -> None:
    """Until ``number`` tasks have closed their file; a minute at most."""
    for _ in range(600):
        files = [file for file in base.rglob("*part-*") if "_filesink" not in file.parts]
        if sum(file.stat().st_size > 0 and not file.name.endswith(".crc") for file in files) >= number:
            time.sleep(2)  # their tasks end
            return
        time.sleep(0.1)


def _listing(base: Path) -> Listing:
    names = sorted(file.name for file in base.iterdir() if not file.name.endswith(".crc"))
    visible = [name for name in names if name.endswith(".parquet") and not name.startswith(".")]
    rows = 0
    if visible:
        rows = duckdb.sql(f"SELECT count(*) FROM '{base}/*.parquet'").fetchall()[0][0]  # noqa: S608
    return Listing(names=tuple(names), rows=rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("demo-output/crash"), help="where to put all")
    parser.add_argument("--svg", type=Path, help="where to draw the picture")
    parser.add_argument("--run", choices=SINKS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
