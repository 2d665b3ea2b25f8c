"""Writes through every door, in several threads too, without having told Spark which Python to take.

    python -m tests.spark.programs.doors <base path>

Says ``done`` when all is visible.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

import filesink
from filesink import FileSink
from filesink.spark.runner import SparkRunner
from formats import ParquetWriterFactory
from tests.spark import sessions


def main(base: Path) -> None:
    """Batches, one by one and at a time, a job of a merge, and the data source."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    df = spark.range(10)

    def write(name: str) -> None:
        FileSink.for_bulk_format(base / name, ParquetWriterFactory()).build().write(df)

    write("sink")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, [f"beside-{number}" for number in range(12)]))
    assert SparkRunner(spark).run(lambda _: sys.executable, [0]) == [sys.executable]
    filesink.register(spark)
    df.write.format("filesink").mode("append").save(os.fspath(base / "source"))
    assert spark.sparkContext.pythonExec != sys.executable
    sessions.say("done")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
