"""The Spark that all benchmarks run on: two cores, nothing else switched on, errors only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

_LOGGING = Path(__file__).resolve().parents[1] / "examples" / "log4j2.properties"


def start_spark(**settings: str) -> SparkSession:
    """A fresh local session; ``settings`` may have ``_`` for each dot of Spark's names."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark starts whatever python3 is on PATH
    # Spark matches the error of a foreachBatch that stop() has interrupted against a pattern that
    # recurses for each letter; with the usual stack it prints a StackOverflowError.
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("filesink benchmarks")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.extraJavaOptions", f"-Xss16m -Dlog4j2.configurationFile=file:{_LOGGING}")
        .config("spark.sql.parquet.compression.codec", "snappy")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for name, value in settings.items():
        builder = builder.config(name if "." in name else name.replace("_", "."), value)
    return builder.getOrCreate()
