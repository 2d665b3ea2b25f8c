"""The Spark session of the programs that tests start and kill."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def start(master: str = "local[2,4]", **settings: str) -> SparkSession:
    """A quiet session; ``settings`` have ``__`` for the dots of their names."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(master)
        .appName("filesink-program")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def say(word: str) -> None:
    """Tell the test how far the program is."""
    print(word, flush=True)  # noqa: T201 - the test reads it
