"""The Spark sessions of tests, and of the programs that tests start and kill."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

#: Of every session: no server of its own, UTC, and no more work than a test needs.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The default one starts processes (readlink, chmod) for each file of a checkpoint on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def start(master: str = "local[2,4]", **settings: str) -> SparkSession:
    """A quiet session; ``settings`` have ``__`` for the dots of their names."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(master)
        .appName("filesink-program")
        .config(map=SETTINGS)
        .config("spark.log.level", "OFF")
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def say(word: str) -> None:
    """Tell the test how far the program is."""
    print(word, flush=True)  # noqa: T201 - the test reads it
